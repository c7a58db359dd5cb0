"""The hot path: many rows of one table and operation are checked, and their keys found, by two calls into C.

Rows of one table and operation begin with the same bytes, up to ``,"es":``. What the full parse has found for them once, a ``RowMatcher``
checks of all others: a msgspec struct with what the record must be (names, operation, types of all columns) and what is wanted of it (the
timestamp, and the old values of the key). The image is cut out by its bytes. What a matcher refuses takes the full parse (``placing``): a
refusal costs time and never decides anything. Values outside of the key are not looked at: the image decoder finds what is wrong there.

Why the bytes between ``,"data":[`` and ``],"_tidb":{"commitTs":`` + digits + ``}}`` at the record's end are its image. The matcher has read
the record as one JSON object. ``_tidb`` holds no brace, so the two at the end close it and the record: it is a member of the record, and
the array before it is one. The bytes between form one JSON object, by a second matcher. So they are all of an array that is the member
``data`` of the record, the last of this name. (No text holds ``,"data":[``: its quotes would be escaped.)

Records and images are read as lines of one text: see ``open_protocol.row_run`` for why that accepts what each of them alone is.

Measured with 5 columns and 490 bytes: 1.4 us a row, of which the matchers take 0.8; 12 us for the full parse.
"""

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any, Final, Literal, NamedTuple

import msgspec

from applier.model.errors import ProtocolError
from applier.model.events import RowKind, RowOperation, Shape, TableName
from applier.sources.canal_json.record import MAX_TS, CanalRow
from applier.sources.canal_json.value import ReadValues, key_values_of
from applier.sources.compiled import MAX_SHAPES, CompiledShapes, forget_shapes, intern_shape
from applier.sources.row_key import KEYLESS, encode_plain

HEAD_END: Final = b',"es":'
DATA: Final = b',"data":[{'
TAIL: Final = b'}],"_tidb":{"commitTs":'
END: Final = b"}}"
IMAGE_AT: Final = len(DATA) - 1
TS_AT: Final = len(TAIL)
USUAL_TS: Final = slice(-18 - len(END), -len(END))
"""The timestamp, if it has 18 digits, as in the years 2010 to 2085."""
USUAL_TAIL: Final = slice(-len(TAIL) - 18 - len(END), -18 - len(END))
USUAL_IMAGE_END: Final = -len(TAIL) - 18 - len(END) + 1
TAIL_BYTES: Final = len(TAIL) + 20 + len(END)
"""Where TAIL is looked for: no timestamp has more than 20 digits."""


class Matched(NamedTuple):
    """Rows that a matcher has read: their timestamps and keys. ``olds``: the images that they replace, where each replaces one."""

    commit_ts: Sequence[int]
    keys: Sequence[bytes]
    olds: Sequence[bytes] = ()


class RowMatcher(msgspec.Struct, eq=False, frozen=True):
    """Reads rows of one shape and operation. ``match`` returns None if one of them is not such a row."""

    shape: Shape
    kind: int
    read_records: Callable[[bytes], list[Any]]
    read_images: Callable[[bytes], list[Any]]
    keys_of: Callable[[list[Any]], Sequence[bytes]]
    keep_keys: Callable[[list[Any], list[Any]], bool]
    read_olds: Callable[[bytes], list[Any]] | None = None
    """Of updates whose key is not known: reads old images, which must be whole."""

    def match(self, records: Sequence[bytes], images: Sequence[bytes]) -> Matched | None:
        """Return the timestamps and the keys of some rows."""
        try:
            rows, found = self.read_records(b"\n".join(records)), self.read_images(b"\n".join(images))
            if not len(rows) == len(found) == len(records) or any(map(_is_ddl, rows)) or not self.keep_keys(rows, found):
                return None
            commit_ts, olds = list(map(_commit_ts, rows)), self._olds_of(rows)
            if olds is None or not 0 < min(commit_ts) <= max(commit_ts) <= MAX_TS:
                return None
            return Matched(commit_ts, self.keys_of(found), olds)
        except (ValueError, RecursionError, ProtocolError):  # ValueError: msgspec's errors and UnicodeDecodeError
            return None

    def _olds_of(self, rows: list[Any]) -> Sequence[bytes] | None:
        if self.read_olds is None:
            return ()
        olds = [bytes(old) for (old,) in map(_old, rows)]
        return olds if len(self.read_olds(b"\n".join(olds))) == len(olds) else None


_commit_ts: Final = attrgetter("_tidb.commitTs")
_is_ddl: Final = attrgetter("isDdl")
_old: Final = attrgetter("old")


def begin_range() -> None:
    """Forget the shapes of earlier ranges if they are many. Within a range none is forgotten: its report names each of them once."""
    forget_shapes(matcher.shape for matcher in _matchers.kept() if matcher is not None)


def matcher_of(shape: Shape, name: TableName, row: CanalRow, pk_names: Any) -> RowMatcher | None:
    """Return the matcher of rows like this one, of a table that upstream calls ``name``. None: such rows need the full parse."""
    described = (shape.encoding, row.operation, name, list(row.types.items()), pk_names)
    try:
        packed = msgspec.msgpack.encode(described)
    except UnicodeEncodeError:  # bytes that are not UTF-8, in the elements of an ENUM
        return None
    return _matchers.get(shape._replace(encoding=packed))


def _compile(described: Shape) -> RowMatcher | None:
    encoding, operation, name, types, pk_names = msgspec.msgpack.decode(described.encoding)
    shape = intern_shape(described._replace(encoding=encoding))
    try:
        record = _record_type(shape, operation, name, types, pk_names)
        image = _key_type("Image", shape, str)
        read_records, read_images = msgspec.json.Decoder(record), msgspec.json.Decoder(image)
        read_olds = msgspec.json.Decoder(_whole_type(shape))
    except (ValueError, TypeError):  # a name with quotes, backslashes or control characters
        return None
    is_update = operation == RowOperation.UPDATE
    # An update of a row whose key is not known is a delete and an upsert.
    replaces = is_update and shape.has_unknown_key
    return RowMatcher(
        shape=shape,
        kind=int(RowKind.DELETE if operation == RowOperation.DELETE else RowKind.UPSERT),
        read_records=read_records.decode_lines,
        read_images=read_images.decode_lines,
        keys_of=_keys_of(shape),
        keep_keys=_keep_keys(len(shape.handle_key)) if is_update and not replaces else lambda _rows, _found: True,
        read_olds=read_olds.decode_lines if replaces else None,
    )


def _record_type(shape: Shape, operation: str, name: Sequence[str], types: Sequence[Sequence[str]], pk_names: Any) -> type[msgspec.Struct]:
    type_fields: list[Any] = [(f"t{index}", Literal[text]) for index, (_, text) in enumerate(types)]
    type_names = {f"t{index}": column for index, (column, _) in enumerate(types)}
    old = tuple[_key_type("Old", shape, str | msgspec.UnsetType, msgspec.UNSET)]  # type: ignore[misc,valid-type] # made here
    fields: list[Any] = [
        ("database", Literal[name[0]]),
        ("table", Literal[name[1]]),
        # One that is repeated with another value would count instead of the first.
        ("pkNames", None if pk_names is None else tuple[tuple(Literal[column] for column in pk_names)]),  # type: ignore[misc] # made here
        ("isDdl", bool),
        ("type", Literal[operation.upper()]),
        ("mysqlType", msgspec.defstruct("Types", type_fields, rename=type_names, forbid_unknown_fields=True, gc=False)),
        ("old", None if operation != RowOperation.UPDATE else tuple[msgspec.Raw] if shape.has_unknown_key else old),
        ("_tidb", _Extension),
    ]
    return msgspec.defstruct("Record", fields, gc=False, kw_only=True)


class _Extension(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    commitTs: int  # noqa: N815 - the name on the wire


def _whole_type(shape: Shape) -> type[msgspec.Struct]:
    """Make the struct of a whole image."""
    fields: list[Any] = [(f"f{index}", str | None) for index in range(len(shape.columns))]
    names = {f"f{index}": column.name for index, column in enumerate(shape.columns)}
    return msgspec.defstruct("WholeImage", fields, rename=names, forbid_unknown_fields=True, gc=False)


def _key_type(kind: str, shape: Shape, value_type: Any, *default: Any) -> type[msgspec.Struct]:
    """Make the struct of an image, of which the key alone is read."""
    fields: list[Any] = [(f"k{index}", value_type, *default) for index in range(len(shape.handle_key))]
    names = {f"k{index}": column.name for index, column in enumerate(shape.handle_key)}
    return msgspec.defstruct(kind, fields, rename=names, gc=False)


def _keys_of(shape: Shape) -> Callable[[list[Any]], Sequence[bytes]]:
    if not shape.handle_key:
        return lambda rows: [KEYLESS] * len(rows)
    readers = [(attrgetter(f"k{index}"), key_values_of(column, is_bytes=column.is_bytes)) for index, column in enumerate(shape.handle_key)]

    def keys_of(rows: list[Any]) -> Sequence[bytes]:
        columns = [_read(list(map(getter, rows)), reader) for getter, reader in readers]
        return list(map(encode_plain, zip(*columns, strict=True)))

    return keys_of


def _read(texts: list[str], reader: ReadValues | None) -> Sequence[Any]:
    return texts if reader is None else reader(texts)


def _keep_keys(count: int) -> Callable[[list[Any], list[Any]], bool]:
    """Return a function of records and images: whether no update has changed a value of the key."""
    getters = [attrgetter(f"k{index}") for index in range(count)]
    unset = msgspec.UNSET

    def keep_keys(rows: list[Any], images: list[Any]) -> bool:
        olds = [old for (old,) in map(_old, rows)]
        for getter in getters:
            before, after = list(map(getter, olds)), list(map(getter, images))
            # An old image may hold changed columns only.
            if before != after and any(one is not unset and one != other for one, other in zip(before, after, strict=True)):
                return False
        return True

    return keep_keys


_matchers: Final = CompiledShapes(_compile, MAX_SHAPES)
