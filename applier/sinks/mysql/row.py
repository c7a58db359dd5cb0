"""Many rows as literals: column by column, so that nearly all of the work is done in C.

For each column some operations over all of its values prove that they may be written as they are: numbers by their sum (of which a NULL
or another type is no part), texts by searches in what they are joined to (no quote, no backslash, no NUL byte, no lone surrogate). A column
that fails the proof is written value by value, as ``literals`` does it; the others are not slowed down by it. One ``%`` then formats all
rows. Measured with five columns (CPython 3.11), 250 rows: 0.8 microseconds a row, where value by value takes 2.0.

In a REPLACE list a quoted DECIMAL is exact, and a bare float is a decimal literal of at most 21 positions that the server rounds
correctly: what ``literals`` guards against beyond that are comparisons.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import chain
from math import copysign, isfinite
from operator import itemgetter
from typing import Any, Final, NamedTuple, TypeAlias

from applier.model.errors import ApplierError
from applier.model.events import STRING_TYPES
from applier.mysql.literals import DECIMAL, ENUM, FLOATS, GREATEST_FLOAT, INTEGERS, SET, TEXTS, greatest_ordinal, is_float32
from applier.planner.port import Literal, RowsText, WireColumn
from applier.sinks.mysql.fitting import (
    MOST_DIGITS,
    TIMES,
    binary_length,
    data_type_of,
    fitting_literal_of,
    fraction_digits,
    needs_every_value,
)

MAX_COLUMNS: Final = 4096
"""Columns of the sink whose functions are kept."""

Values: TypeAlias = Sequence[Any]
Proof: TypeAlias = Callable[[Values], bool]
"""Values without NULLs -> whether the column's format writes them as they are. TypeError if there is a NULL, or another type."""


def _numbers_beside_null(values: Values, null: str) -> list[Any]:
    return [null if value is None else value for value in values]


class _ColumnText(NamedTuple):
    """How the values of one column are written."""

    format: str
    """In the template of a row."""
    is_plain: Proof
    literal: Literal
    null: str | None
    """How NULL is written; None if it is refused."""
    form: Callable[[Any], Any] | None = None
    """What the format takes, made of a value; None: the value itself."""
    beside_null: Callable[[Values, str], list[Any]] = _numbers_beside_null
    """Values with NULLs, as ``%s`` writes them."""

    def written(self, values: Values) -> tuple[str, Iterable[Any]]:
        """Return the format, and what it takes for each value. Raises what ``literal`` raises, then or while they are taken."""
        try:
            if self.is_plain(values):
                return self.format, values if self.form is None else map(self.form, values)
        except TypeError:
            present = [value for value in values if value is not None]
            if self.null is not None and len(present) < len(values) and (not present or self.is_plain(present)):
                return "%s", self.beside_null(values, self.null)
        return "%s", map(self.literal, values)


def rows_text_of(columns: Sequence[WireColumn], most_bytes: int) -> RowsText:
    """Return the function that renders ``(literal,literal,…),(…)``; None for more than ``most_bytes``. Raises as ``fitting_literal_of``."""
    written = [_column(column) for column in columns]

    def text_of(values: Sequence[Values]) -> bytes | None:
        try:
            parts = [column.written(one) for column, one in zip(written, values, strict=True)]
            row = f"({','.join([template for template, _ in parts])}),"
            text = (row * len(values[0]))[:-1] % tuple(chain.from_iterable(zip(*[taken for _, taken in parts], strict=True)))
            encoded = text.encode()
        # Row by row it is seen which value it is.
        except (ApplierError, TypeError, ValueError, AttributeError):
            return None
        return encoded if len(encoded) <= most_bytes else None

    return text_of


# Tables have columns of the same kinds, and each pass asks again: 1,000 small tables cost as much for this as for their rows.
@lru_cache(maxsize=MAX_COLUMNS)
def _column(column: WireColumn) -> _ColumnText:
    literal = fitting_literal_of(column.column, column.mysql_type, is_bytes=column.is_bytes)
    try:
        null = literal(None)
    except (ApplierError, TypeError):
        null = None
    description, mysql_type, is_bytes = column
    if needs_every_value(description, mysql_type):
        return _ColumnText("%s", _never, literal, None)
    if mysql_type in FLOATS:
        return _ColumnText("%r", _are_floats32 if is_float32(description) else _are_floats, literal, null)
    if mysql_type in {ENUM, SET} | INTEGERS:
        greatest = None if mysql_type in INTEGERS else greatest_ordinal(description, mysql_type)
        return _ColumnText("%d", _are_integers if greatest is None else _are_ordinals(greatest), literal, null)
    if mysql_type in STRING_TYPES and is_bytes:
        return _ColumnText("x'%s'", _are_bytes(binary_length(description)), literal, null, bytes.hex, _bytes_beside_null)
    if mysql_type in STRING_TYPES | TEXTS | {DECIMAL}:
        return _ColumnText("'%s'", _are_texts(column), literal, null, beside_null=_texts_beside_null)
    return _ColumnText("%s", _never, literal, None)


def _texts_beside_null(values: Values, null: str) -> list[str]:
    return [null if value is None else f"'{value}'" for value in values]


def _bytes_beside_null(values: Values, null: str) -> list[str]:
    return [null if value is None else f"x'{value.hex()}'" for value in values]


def _never(_: Values) -> bool:
    return False


# --- proofs. A sum, and what is joined, has no NULL and no value of another type in it: Python raises TypeError. --------


def _are_integers(values: Values) -> bool:
    return type(sum(values)) is int


def _are_ordinals(greatest: int) -> Proof:
    return lambda values: _are_integers(values) and min(values) >= 0 and max(values) <= greatest


def _are_floats(values: Values) -> bool:
    if not isfinite(sum(values)):
        return False
    return 0.0 not in values or not any(not value and copysign(1, value) < 0 for value in values)


def _are_floats32(values: Values) -> bool:
    return _are_floats(values) and min(values) >= -GREATEST_FLOAT and max(values) <= GREATEST_FLOAT


def _are_bytes(length: int) -> Proof:
    return lambda values: len(b"".join(values)) >= 0 and (not length or min(map(len, values)) >= length)


def _are_texts(column: WireColumn) -> Proof:
    description, mysql_type, _ = column
    data_type = data_type_of(description)
    digits = fraction_digits(description) if data_type in TIMES else MOST_DIGITS
    strips_end_spaces = data_type == "char" and mysql_type in STRING_TYPES

    def are_texts(values: Values) -> bool:
        joined = "\0".join(values)
        if "'" in joined or "\\" in joined or joined.count("\0") >= len(values) or not _is_utf8(joined):
            return False
        if strips_end_spaces and (" \0" in joined or joined.endswith(" ")):
            return False
        return digits >= MOST_DIGITS or "." not in joined or not _are_cut(values, digits)

    return are_texts


def _are_cut(values: Values, digits: int) -> bool:
    """Return whether a time may have more than so many digits of a second."""
    return not digits or "." in "".join(map(itemgetter(slice(None, -digits - 1)), values))


def _is_utf8(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
