"""Images of one shape to values, and values to an image. An image is the JSON object that came, or, of Avro, a msgpack map of values.

Compiled per shape; what the compiled decoder refuses takes the exact way (``value``), which knows what is wrong, or that nothing is. The
two give the same values: the compiled one reads texts and nulls of exactly these columns, and converts only what it has seen to be plain.
"""

import re
from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter
from typing import Any, Final, TypeAlias

import msgspec

from applier.model.errors import ProtocolError
from applier.model.events import Column as ImageColumn
from applier.model.events import ColumnShape, Image, Shape, Value
from applier.planner.port import ImageDecoder, ImagesDecoder
from applier.sources.compiled import MAX_SHAPES, CompiledShapes
from applier.sources.simple.value import IN_TWO_FORMS, ValueForm, as_sent, form_of, of_avro, of_json, range_of
from applier.sources.ticdc.json_text import parse_object, write

JSON: Final = b""
AVRO: Final = b"avro"
"""``Shape.encoding``: which form the images have."""

FEW_IMAGES: Final = 16
"""Where one of so many images is refused, all of them are decoded alone. More are divided first."""

_FOREIGN_TEXT: Final = 1

_INTEGERS: Final = re.compile(r"-?[0-9]{1,20}(?:\n-?[0-9]{1,20})*+", re.ASCII)
_NUMBERS: Final = re.compile(r"-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?(?:\n-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)*+", re.ASCII)

ColumnFix: TypeAlias = Callable[[Sequence[Any]], Sequence[Value]]
"""Values of one column, none NULL, as the compiled decoder reads them -> the values. ValueError if the exact way must look."""


class StampText(msgspec.Struct, gc=False, frozen=True):
    """A TIMESTAMP in JSON."""

    location: str
    value: str


# --- the exact way ---------------------------------------------------------------------------------------------------


def read_members(image: bytes, encoding: bytes) -> dict[str, Any]:
    """Return the members of an image, unread. ProtocolError (json)."""
    if encoding != AVRO:
        return parse_object(image)
    try:
        return _unpack_members(image)
    except (ValueError, RecursionError) as cause:
        raise ProtocolError.at(None, "avro", "an image cannot be read") from cause


def read_value(column: ColumnShape, wire: Any, encoding: bytes) -> Value:
    """Return the value of a member. ProtocolError (value_type, base64)."""
    return of_avro(column, wire) if encoding == AVRO else of_json(column, wire)


def read_columns(shape: Shape, members: dict[str, Any]) -> Image:
    """Return the members of an image as columns. ProtocolError (value_type, base64)."""
    keys = frozenset(shape.keys.handle or ())
    return {
        column.name: ImageColumn(
            column.mysql_type, column.flags, read_value(column, members[column.name], shape.encoding), column.name in keys
        )
        for column in shape.columns
    }


def _exact_decoder(shape: Shape) -> ImageDecoder:
    names = frozenset(column.name for column in shape.columns)

    def decode_exactly(image: bytes) -> Sequence[Value]:
        try:
            members = read_members(image, shape.encoding)
            if members.keys() != names:
                raise ProtocolError.at(None, "field_type", "an image has other columns")
            return [read_value(column, members[column.name], shape.encoding) for column in shape.columns]
        except ProtocolError as cause:
            facts = {"schema": shape.schema, "table": shape.table} | cause.facts
            kind = facts.pop("kind")
            raise ProtocolError.at(None, kind, f"an image cannot be read: {cause.message}", **facts) from cause

    return decode_exactly


# --- the compiled way ------------------------------------------------------------------------------------------------


class RowReader(msgspec.Struct, eq=False, frozen=True):
    """The compiled reader of the images of one shape.

    ``rows``: images -> what ``columns`` take, and give the values of one column of all images. Each raises ValueError or RecursionError for
    images of another shape, and for values that need care. ``handle``: the positions of the key's columns, in the order of a key.
    ``stamps``: of JSON, what gives the TIMESTAMP values of a row, which name their zone.
    """

    shape: Shape
    rows: Callable[[Sequence[bytes]], list[Any]]
    columns: tuple[Callable[[list[Any]], Sequence[Value]], ...]
    handle: tuple[int, ...]
    stamps: tuple[Callable[[Any], StampText | None], ...] = ()


def row_reader(shape: Shape) -> RowReader | None:
    """Return the compiled reader; None: its columns cannot be compiled, or compiling does not pay yet."""
    return _readers.get(shape)


def _compile(shape: Shape) -> RowReader | None:
    is_avro = shape.encoding == AVRO
    fields = [(f"f{index}", _avro_type(column) if is_avro else _json_type(column)) for index, column in enumerate(shape.columns)]
    names = {f"f{index}": column.name for index, column in enumerate(shape.columns)}
    try:
        row = msgspec.defstruct("Row", fields, rename=names, forbid_unknown_fields=True, gc=False)
        rows = _packed_rows(msgspec.msgpack.Decoder(list[row]).decode) if is_avro else _line_rows(msgspec.json.Decoder(row).decode_lines)  # type: ignore[valid-type] # made here
    except ValueError:  # a name with quotes, backslashes or control characters
        return None
    columns = tuple(
        _column_reader(attrgetter(name), _fix_of(column, is_avro=is_avro)) for (name, _), column in zip(fields, shape.columns, strict=True)
    )
    handle = tuple(shape.columns.index(column) for column in shape.handle_key)
    stamps = [attrgetter(name) for (name, _), column in zip(fields, shape.columns, strict=True) if form_of(column) is ValueForm.TIMESTAMP]
    return RowReader(shape=shape, rows=rows, columns=columns, handle=handle, stamps=() if is_avro else tuple(stamps))


def kept_shapes() -> Iterator[Shape]:
    """Yield the shapes that have a reader now."""
    return (reader.shape for reader in _readers.kept() if reader is not None)


def _line_rows(decode: Callable[[bytes], list[Any]]) -> Callable[[Sequence[bytes]], list[Any]]:
    # Every image begins with { and ends with }, JSON refuses a line feed within a string, and } is followed by { only between two
    # documents. So no document reaches over the end of an image; if there are as many documents as images, each image is one.
    def rows(images: Sequence[bytes]) -> list[Any]:
        found = decode(b"\n".join(images))
        if len(found) != len(images):
            raise ValueError("an image is not one document")
        return found

    return rows


def _packed_rows(decode: Callable[[bytes], list[Any]]) -> Callable[[Sequence[bytes]], list[Any]]:
    return lambda images: decode(b"\xdd" + len(images).to_bytes(4, "big") + b"".join(images))


def _json_type(column: ColumnShape) -> Any:
    match form_of(column):
        case ValueForm.BYTES:
            return bytes | None
        case ValueForm.TIMESTAMP:
            return StampText | None
        case _:
            return str | None


def _avro_type(column: ColumnShape) -> Any:
    match form_of(column):
        case ValueForm.INTEGER if column.mysql_type in IN_TWO_FORMS:
            return int | str | None
        case ValueForm.INTEGER:
            return int | None
        case ValueForm.FLOAT:
            return float | None
        case ValueForm.BYTES:
            return bytes | None
        case _:
            return str | None


def _fix_of(column: ColumnShape, *, is_avro: bool) -> ColumnFix | None:
    match form_of(column):
        case ValueForm.INTEGER if is_avro and column.mysql_type in IN_TWO_FORMS:
            return lambda values: _one_by_one(column, values)
        case ValueForm.INTEGER:
            check = _checked_integers(*range_of(column))
            return check if is_avro else lambda texts: check(_integers(texts))
        case ValueForm.FLOAT:
            return _checked_floats if is_avro else lambda texts: _checked_floats(_floats(texts))
        case ValueForm.TIMESTAMP:
            return None if is_avro else lambda stamps: [stamp.value for stamp in stamps]
        case ValueForm.TEXT if column.is_bytes:
            return lambda texts: [as_sent(column, text) for text in texts]
        case _:
            return None


def _one_by_one(column: ColumnShape, values: Sequence[Any]) -> list[Value]:
    try:
        return [of_avro(column, value) for value in values]
    except ProtocolError as cause:
        raise ValueError("a value does not fit") from cause


def _integers(texts: Sequence[str]) -> list[int]:
    if not _INTEGERS.fullmatch("\n".join(texts)):
        raise ValueError("a text is not an integer")
    return list(map(int, texts))


def _floats(texts: Sequence[str]) -> list[float]:
    if not _NUMBERS.fullmatch("\n".join(texts)):
        raise ValueError("a text is not a number")
    return list(map(float, texts))


def _checked_integers(low: int, high: int) -> Callable[[Sequence[int]], Sequence[int]]:
    def check(numbers: Sequence[int]) -> Sequence[int]:
        if min(numbers) < low or max(numbers) > high:
            raise ValueError("an integer is out of range")
        return numbers

    return check


def _checked_floats(numbers: Sequence[float]) -> Sequence[float]:
    # Written so that NaN is refused, too.
    if not all(-1.8e308 < number < 1.8e308 for number in numbers):
        raise ValueError("a number is not finite")
    return numbers


def _column_reader(getter: Callable[[Any], Any], fix: ColumnFix | None) -> Callable[[list[Any]], Sequence[Value]]:
    if fix is None:
        return lambda rows: list(map(getter, rows))

    def read(rows: list[Any]) -> Sequence[Value]:
        values = list(map(getter, rows))
        present = values if None not in values else [value for value in values if value is not None]
        if not present:
            return values
        fixed = fix(present)
        if len(present) == len(values):
            return fixed
        rest = iter(fixed)
        return [None if value is None else next(rest) for value in values]

    return read


def image_decoder(shape: Shape) -> ImageDecoder:
    """Return the function that decodes images of ``shape`` into values in the order of its columns. ProtocolError, without a position."""
    exact = _exact_decoder(shape)
    reader: RowReader | None = None

    def decode_image(image: bytes) -> Sequence[Value]:
        nonlocal reader
        # Kept once there is one: to look a shape up takes as long as to read half of its columns.
        if reader is None:
            reader = row_reader(shape)
        if reader is None:
            return exact(image)
        try:
            rows = reader.rows((image,))
            return [read(rows)[0] for read in reader.columns]
        except (ValueError, RecursionError):
            return exact(image)

    return decode_image


def images_decoder(shape: Shape) -> ImagesDecoder:
    """Return the function that decodes many images of ``shape``: for each column, what ``image_decoder`` gives for each of them."""
    one = image_decoder(shape)

    def decode_images(images: Sequence[bytes]) -> Sequence[Sequence[Value]]:
        reader = row_reader(shape)
        if reader is not None and images:
            try:
                rows = reader.rows(images)
                return [read(rows) for read in reader.columns]
            except (ValueError, RecursionError):
                if len(images) > FEW_IMAGES:
                    # Few images need the exact way, which is much slower: the others are spared it.
                    middle = len(images) // 2
                    halves = decode_images(images[:middle]), decode_images(images[middle:])
                    return [[*first, *second] for first, second in zip(*halves, strict=True)]
        return list(zip(*map(one, images), strict=True))

    return decode_images


_readers: Final = CompiledShapes(_compile, MAX_SHAPES)


# --- writing ---------------------------------------------------------------------------------------------------------

_pack: Final = msgspec.msgpack.Encoder().encode


def pack_values(values: dict[str, Any]) -> bytes:
    """Return the image of what an Avro message has."""
    try:
        return _pack(values)
    except UnicodeEncodeError:  # text that is no UTF-8, of a column whose declared charset is wrong
        return _pack({_packed_text(name): _packed_text(value) if isinstance(value, str) else value for name, value in values.items()})


def _packed_text(text: str) -> Any:
    data = text.encode("utf-8", "surrogateescape")
    try:
        data.decode()
    except UnicodeDecodeError:
        return msgspec.msgpack.Ext(_FOREIGN_TEXT, data)
    return text


def _unpacked_text(code: int, data: memoryview) -> str:
    if code != _FOREIGN_TEXT:
        raise ValueError("these bytes are no image")
    return bytes(data).decode("utf-8", "surrogateescape")


_unpack_members: Final = msgspec.msgpack.Decoder(dict[str, Any], ext_hook=_unpacked_text).decode


def encode_image(shape: Shape, values: Sequence[Value]) -> bytes:
    """Return the image that the decoder of ``shape`` reads as ``values``."""
    if shape.encoding == AVRO:
        return pack_values({column.name: _typed(column, value) for column, value in zip(shape.columns, values, strict=True)})
    return write({column.name: _written(column, value) for column, value in zip(shape.columns, values, strict=True)})


def _typed(column: ColumnShape, value: Value) -> Value:
    match form_of(column):
        case ValueForm.BYTES if isinstance(value, str):
            return value.encode("utf-8", "surrogateescape")
        case ValueForm.TEXT | ValueForm.TIMESTAMP if isinstance(value, bytes):
            return value.decode("utf-8", "surrogateescape")
        case ValueForm.FLOAT if isinstance(value, int):
            return float(value)
        case _:
            return value


def _written(column: ColumnShape, value: Value) -> Any:
    typed = _typed(column, value)
    match typed:
        case None:
            return None
        case bytes():
            return b64encode(typed).decode()
        case str() if form_of(column) is ValueForm.TIMESTAMP:
            return {"location": "", "value": typed}
        case _:
            return str(typed)
