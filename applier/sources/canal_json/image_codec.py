"""Compiled decoders of images, two per shape: one for a single image, one for many, whose values come as columns.

Both are a msgspec struct with a text or null per column; the column's reader converts what is not text. What they refuse takes the full
parse, which knows what is wrong, or that nothing is.

Writes an image as a producer would: for rows that come from elsewhere (upstream itself), so that they go the way of all others.
"""

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any, Final, NamedTuple

import msgspec
from msgspec.structs import astuple

from applier.model.errors import ProtocolError
from applier.model.events import Shape, Value
from applier.planner.port import ImageDecoder, ImagesDecoder
from applier.sources.canal_json.value import bytes_on_wire, read_value_of, read_values_of, text_of
from applier.sources.compiled import MAX_SHAPES, CompiledShapes
from applier.sources.ticdc.json_text import parse, write

FEW_IMAGES: Final = 16
"""Where one of so many images is refused, all of them are decoded alone. More are divided first."""


class _CompiledDecoders(NamedTuple):
    one: ImageDecoder
    many: ImagesDecoder


def image_decoder(shape: Shape) -> ImageDecoder:
    """Return the function that decodes images of ``shape`` into values in the order of its columns; compiled where that pays.

    It raises ProtocolError, without a position, for what the placer does not check: a bad value outside of the handle key.
    """
    found = _decoders.get(shape)
    return _parsing(shape) if found is None else found.one


def images_decoder(shape: Shape) -> ImagesDecoder:
    """Return the function that decodes many images of ``shape``: for each column, what ``image_decoder`` gives for each of them."""
    found = _decoders.get(shape)
    return _each(_parsing(shape)) if found is None else found.many


def _each(decode: ImageDecoder) -> ImagesDecoder:
    return lambda images: list(zip(*map(decode, images), strict=True))


def _compile(shape: Shape) -> _CompiledDecoders:
    parse_one = _parsing(shape)
    fields: list[Any] = [(f"f{index}", str | None) for index in range(len(shape.columns))]
    names = {f"f{index}": column.name for index, column in enumerate(shape.columns)}
    try:
        values = msgspec.defstruct("Values", fields, rename=names, forbid_unknown_fields=True, gc=False)
        decode, decode_all = msgspec.json.Decoder(values).decode, msgspec.json.Decoder(list[values]).decode  # type: ignore[valid-type] # made here
    except ValueError:  # a name with quotes, backslashes or control characters
        return _CompiledDecoders(parse_one, _each(parse_one))
    return _CompiledDecoders(_decoder_of_one(decode, shape, parse_one), _decoder_of_many(decode_all, shape, parse_one))


def _decoder_of_one(decode: Callable[[bytes], Any], shape: Shape, parse_one: ImageDecoder) -> ImageDecoder:
    binary = bytes_on_wire(shape)
    readers = [
        (index, read_value_of(column, is_bytes=column.name in binary))
        for index, column in enumerate(shape.columns)
        if read_values_of(column, is_bytes=column.name in binary) is not None
    ]

    def decode_image(image: bytes) -> Sequence[Value]:
        try:
            values: list[Value] = list(astuple(decode(image)))
            for index, read in readers:
                text = values[index]
                if isinstance(text, str):
                    values[index] = read(text)
        except (ValueError, RecursionError, ProtocolError):
            return parse_one(image)  # it knows what is wrong, or that nothing is
        return values

    return decode_image


def _decoder_of_many(decode_all: Callable[[bytes], list[Any]], shape: Shape, parse_one: ImageDecoder) -> ImagesDecoder:
    binary = bytes_on_wire(shape)
    getters = [attrgetter(f"f{index}") for index in range(len(shape.columns))]
    readers = [read_values_of(column, is_bytes=column.name in binary) for column in shape.columns]
    each = _each(parse_one)

    def decode_images(images: Sequence[bytes]) -> Sequence[Sequence[Value]]:
        try:
            rows = decode_all(b"[%b]" % b",".join(images))
            if len(rows) != len(images):
                return each(images)
            return [
                list(map(getter, rows)) if read is None else read(list(map(getter, rows)))
                for getter, read in zip(getters, readers, strict=True)
            ]
        except (ValueError, RecursionError, ProtocolError):
            if len(images) <= FEW_IMAGES:
                return each(images)
            # Few images need the full parse, which is ten times as slow: the others are spared it.
            middle = len(images) // 2
            halves = decode_images(images[:middle]), decode_images(images[middle:])
            return [[*first, *second] for first, second in zip(*halves, strict=True)]

    return decode_images


def _parsing(shape: Shape) -> ImageDecoder:
    binary = bytes_on_wire(shape)
    readers = {column.name: read_value_of(column, is_bytes=column.name in binary) for column in shape.columns}

    def decode_by_parsing(image: bytes) -> Sequence[Value]:
        try:
            texts = parse(image)
            if not isinstance(texts, dict) or texts.keys() != readers.keys():
                raise ProtocolError.at(None, "field_type", "the image does not have the columns of its row")
            return [_read(texts[name], read) for name, read in readers.items()]
        except ProtocolError as cause:
            facts = {"schema": shape.schema, "table": shape.table} | cause.facts
            kind = facts.pop("kind")
            raise ProtocolError.at(None, kind, "an image cannot be read", **facts) from cause

    return decode_by_parsing


def _read(text: Any, read: Callable[[str], Value]) -> Value:
    if text is None:
        return None
    if not isinstance(text, str):
        raise ProtocolError.at(None, "value_type", "a value is neither text nor null")
    return read(text)


_decoders: Final = CompiledShapes(_compile, MAX_SHAPES)


def encode_image(shape: Shape, values: Sequence[Value]) -> bytes:
    """Return the JSON of a row's image; values in the order of ``shape.columns``."""
    binary = bytes_on_wire(shape)
    return write(
        {column.name: text_of(column, value, is_bytes=column.name in binary) for column, value in zip(shape.columns, values, strict=True)}
    )
