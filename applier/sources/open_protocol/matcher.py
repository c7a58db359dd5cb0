"""Matchers: compiled per shape, they check that rows have it, and find their keys, without decoding anything else.

A matcher is a msgspec struct with one field per column: ``t`` and ``f`` as literals, ``v`` only where the column is part of the handle
key, unknown columns forbidden. An image that it accepts has exactly this shape. For one that it refuses the caller uses the full parse
(``body``): a refusal costs time and never decides anything. Measured on a row of 5 columns: 0.56 us, and 12 us for the full parse.
"""

from collections.abc import Callable
from functools import lru_cache
from operator import attrgetter
from typing import Any, Final, Literal

import msgspec

from applier.model.events import ColumnShape, Shape
from applier.sources.compiled import MAX_SHAPES, CompiledShapes, forget_shapes
from applier.sources.open_protocol.value import VALUE_CLASSES, Fix, ValueClass, fix_of, value_type, values_of
from applier.sources.row_key import KEYLESS, canonical_float, encode_plain


class Matcher(msgspec.Struct, eq=False, frozen=True):
    """Finds the key of rows of one shape.

    ``match`` takes an image and returns a row, ``key_of`` the row's key; ``match_old`` takes an old image, which may lack columns, and
    ``keeps_key(old, row)`` returns whether it has the same handle key (never without one). ValueError or ProtocolError for images that
    are not of this shape or not in order. The others do the same for lines of images, for lists of rows, and for all of them.
    """

    shape: Shape
    match: Callable[[bytes], Any]
    match_lines: Callable[[bytes], list[Any]]
    key_of: Callable[[Any], bytes]
    keys_of: Callable[[list[Any]], list[bytes]]
    match_old: Callable[[bytes], Any]
    match_old_lines: Callable[[bytes], list[Any]]
    keeps_key: Callable[[Any, Any], bool]
    keep_keys: Callable[[list[Any], list[Any]], bool]


def begin_range() -> None:
    """Forget the shapes of earlier ranges if they are many. Within a range none is forgotten: its report names each of them once."""
    forget_shapes(matcher.shape for matcher in _matchers.kept() if matcher is not None)


def compile_matcher(shape: Shape) -> Matcher | None:
    """Return the matcher of a shape. None: its rows need the full parse; its columns cannot be compiled, or compiling does not pay."""
    return _matchers.get(shape)


def _compile_matcher(shape: Shape) -> Matcher | None:
    key = shape.handle_key
    fields = [(f"f{index}", _matching_column(column, is_key=column in key)) for index, column in enumerate(shape.columns)]
    optional: list[Any] = [(name, kind | msgspec.UnsetType, msgspec.UNSET) for name, kind in fields]
    names = {f"f{index}": column.name for index, column in enumerate(shape.columns)}
    try:
        whole = msgspec.defstruct("Whole", fields, rename=names, forbid_unknown_fields=True, gc=False)
        partial = msgspec.defstruct("Partial", optional, rename=names, forbid_unknown_fields=True, gc=False)
        rows, old_rows = msgspec.json.Decoder(whole), msgspec.json.Decoder(partial)
    except ValueError:  # a name with quotes, backslashes or control characters
        return None
    handle = [f"f{shape.columns.index(column)}" for column in shape.handle_key]
    fixes = [_key_fix(column) for column in shape.handle_key]
    key_of, keeps_key = _key_of(handle, fixes), _keeps_key(handle)
    return Matcher(
        shape=shape,
        match=rows.decode,
        match_lines=rows.decode_lines,
        key_of=key_of,
        keys_of=_keys_of(handle, key_of, is_plain=not any(fixes)),
        match_old=old_rows.decode,
        match_old_lines=old_rows.decode_lines,
        keeps_key=keeps_key,
        keep_keys=_keep_keys(handle, keeps_key),
    )


def _matching_column(column: ColumnShape, *, is_key: bool) -> type[msgspec.Struct]:
    key_type = value_type(column.mysql_type, is_unsigned=column.is_unsigned) if is_key else None
    return _matching_struct(column.mysql_type, column.flags, key_type)


@lru_cache(maxsize=MAX_SHAPES)
def _matching_struct(mysql_type: int, flags: int, key_type: Any) -> type[msgspec.Struct]:
    """Make the struct of a column. Without ``f`` the flags are 0 if ``h`` is absent; with ``h`` alone (oldest producers) it refuses."""
    fields: list[Any] = [("t", Literal[mysql_type])]
    fields += [("f", Literal[flags], 0), ("h", None, None)] if flags == 0 else [("f", Literal[flags]), ("h", bool | None, None)]
    if key_type is not None:
        fields.append(("v", key_type))
    return msgspec.defstruct("Column", fields, gc=False, kw_only=True)


def _key_fix(column: ColumnShape) -> Fix | None:
    return canonical_float if VALUE_CLASSES[column.mysql_type] is ValueClass.FLOAT else fix_of(column)


def _keeps_key(fields: list[str]) -> Callable[[Any, Any], bool]:
    """Return a function of (partial old image, row): whether each handle-key column of the old image, if there, has the row's value."""
    unset = msgspec.UNSET
    pairs = [(attrgetter(field), attrgetter(f"{field}.v")) for field in fields]

    def keeps_key(old: Any, row: Any) -> bool:
        for column_of, value_of in pairs:
            column = column_of(old)
            if column is not unset and column.v != value_of(row):
                return False
        return bool(pairs)

    return keeps_key


def _keep_keys(fields: list[str], keeps_key: Callable[[Any, Any], bool]) -> Callable[[list[Any], list[Any]], bool]:
    """Return a function of (partial old images, rows): whether ``keeps_key`` holds for each pair, and there are as many of both."""
    getters = [attrgetter(f"{field}.v") for field in fields]

    def keep_keys(olds: list[Any], rows: list[Any]) -> bool:
        if len(olds) != len(rows) or not getters:
            return False
        try:
            return all(list(map(value_of, olds)) == list(map(value_of, rows)) for value_of in getters)
        except AttributeError:  # an old image without a key column
            return all(map(keeps_key, olds, rows))

    return keep_keys


def _keys_of(fields: list[str], key_of: Callable[[Any], bytes], *, is_plain: bool) -> Callable[[list[Any]], list[bytes]]:
    """Return a function of rows: ``key_of`` each. Without calls of ours where no value needs a fix: half the time."""
    if not fields or not is_plain:
        return lambda rows: list(map(key_of, rows))
    getter = attrgetter(*(f"{field}.v" for field in fields))
    if len(fields) > 1:
        return lambda rows: list(map(encode_plain, map(getter, rows)))
    return lambda rows: list(map(encode_plain, zip(map(getter, rows), strict=True)))


def _key_of(fields: list[str], fixes: list[Fix | None]) -> Callable[[Any], bytes]:
    """Return a function of a row: its key. The decoder accepts valid UTF-8 only, so no value needs more than its fix."""
    if not fields:
        return lambda _row: KEYLESS
    if not any(fixes):
        getter = attrgetter(*(f"{field}.v" for field in fields))
        return (lambda row: encode_plain(getter(row))) if len(fields) > 1 else (lambda row: encode_plain((getter(row),)))
    values = values_of(fields)

    def key_of(row: Any) -> bytes:
        pairs = zip(fixes, values(row), strict=True)
        return encode_plain([value if fix is None or value is None else fix(value) for fix, value in pairs])

    return key_of


_matchers: Final = CompiledShapes(_compile_matcher, MAX_SHAPES)
