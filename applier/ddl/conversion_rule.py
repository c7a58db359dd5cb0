"""The table of conversions: what becomes of the values in old rows when a column gets another type. Pure; every sink asks it.

Upstream has converted its rows by its own rules, and the new values are not in the stream. So a sink may convert a value only where every
server of the family converts it alike. Tried with TiDB's source, MySQL 9.7 and MariaDB 10.11: they disagree on fractions (rounded or
cut), on text that is not the plain form of the new type, on the spelling of floats and of JSON. Where a type becomes smaller, upstream's
sql_mode decides whether a value is cut or refused: so the result for a value that does not fit is not known either.
"""

from collections.abc import Callable, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final, NamedTuple, TypeAlias

from applier.ddl.column_type import UTF8_CHARSETS, ColumnType, TypeFamily


class Certainty(StrEnum):
    """What is known of a pair of types."""

    EXACT = "exact"
    """Each server gives each value the same."""
    SERVER = "depends on the server"
    """Except for the values of ``ConversionRule.plain``."""
    REFUSED = "refused"
    """No server is known to convert it."""


class PlainValues(StrEnum):
    """Values that each server converts alike, where others differ."""

    IN_RANGE = "numbers that the new type holds"
    SHORT = "values that are not longer than the new type"
    WHOLE = "times without further digits"
    MIDNIGHT = "times of midnight"
    INTEGER_TEXT = "plain integers in range"
    DECIMAL_TEXT = "plain numbers in range"
    YEAR_TEXT = "years of four digits"
    DATE_TEXT = "plain dates of the calendar"
    DATETIME_TEXT = "plain dates and times of the calendar"
    TIME_TEXT = "plain times"
    LABELS = "labels of the new type"
    UTF8 = "UTF-8"
    IN_CHARSET = "texts of the new character set"
    AS_SENT = "text that is kept as it was sent"
    """JSON and VECTOR: upstream's own text of them is on the wire. A server that has stored the value prints it by its own rules."""


class ConversionRule(NamedTuple):
    """An entry of the table."""

    certainty: Certainty
    plain: PlainValues | None = None


EXACT: Final = ConversionRule(Certainty.EXACT)
REFUSED: Final = ConversionRule(Certainty.REFUSED)
SERVER: Final = ConversionRule(Certainty.SERVER)

_F: TypeAlias = TypeFamily
_Entry: TypeAlias = ConversionRule | Callable[[ColumnType, ColumnType], ConversionRule]


def conversion_rule(old: ColumnType, new: ColumnType) -> ConversionRule:
    """Return what is known of the conversion of every value of ``old`` to ``new``.

    Between TIMESTAMP and other types the rule is that of DATETIME, in the zone of upstream's session (``zone_use``).
    """
    if old == new:
        return EXACT
    entry = CONVERSIONS.get((old.family, new.family), REFUSED if _has_no_values_for_others(old, new) else SERVER)
    return entry if isinstance(entry, ConversionRule) else entry(old, new)


def _has_no_values_for_others(old: ColumnType, new: ColumnType) -> bool:
    return TypeFamily.VECTOR in (old.family, new.family)


def _plain(values: PlainValues) -> ConversionRule:
    return ConversionRule(Certainty.SERVER, values)


# Numbers


def _to_whole_number(old: ColumnType, new: ColumnType) -> ConversionRule:
    """INTEGER and BIT to one another, and DECIMAL to INTEGER, which each server rounds half away from zero."""
    if old.family is _F.DECIMAL:
        return _plain(PlainValues.IN_RANGE)
    return EXACT if new.lowest <= old.lowest and old.highest <= new.highest else _plain(PlainValues.IN_RANGE)


def _to_decimal(old: ColumnType, new: ColumnType) -> ConversionRule:
    is_signed = not old.unsigned and old.family is not _F.BIT
    digits = old.precision - old.scale if old.family is _F.DECIMAL else len(str(max(old.highest, -old.lowest)))
    # Rounded half away from zero, everywhere; 9.99 may need one more digit then.
    carries = old.family is _F.DECIMAL and old.scale > new.scale
    fits = digits + carries <= new.precision - new.scale and not (new.unsigned and is_signed)
    return EXACT if fits else _plain(PlainValues.IN_RANGE)


def _to_real(old: ColumnType, new: ColumnType) -> ConversionRule:
    """To FLOAT and DOUBLE: the nearest one. FLOAT(7,2) rounds by rules of the server."""
    if new.arguments and new.arguments != old.arguments:
        return SERVER
    is_signed = not old.unsigned and old.family is not _F.BIT
    narrows = new.family is _F.FLOAT and old.family is _F.DOUBLE
    return _plain(PlainValues.IN_RANGE) if narrows or (new.unsigned and is_signed) else EXACT


# Texts


def capacity(column: ColumnType) -> int:
    """Return the longest value of a text or of bytes, in bytes: a character has up to four."""
    if column.max_characters is None:
        return column.max_bytes or 0
    return column.max_characters * (4 if column.family is TypeFamily.CHARACTER else 1)


def _within_text(old: ColumnType, new: ColumnType) -> ConversionRule:
    if old.charset != new.charset and new.charset not in UTF8_CHARSETS:
        return _plain(PlainValues.IN_CHARSET)
    if old.max_characters is not None and new.max_characters is not None:
        return EXACT if old.max_characters <= new.max_characters else _plain(PlainValues.SHORT)
    return EXACT if capacity(old) <= capacity(new) else _plain(PlainValues.SHORT)


def _as_text(old: ColumnType, new: ColumnType) -> ConversionRule:
    """Integers, decimals, years, dates and times, labels. ZEROFILL adds zeros, and BIT gives bytes."""
    if old.zerofill:
        return SERVER
    longest = _longest_text(old)
    limit = new.max_bytes if new.max_characters is None else new.max_characters
    return EXACT if limit is None or longest <= limit else _plain(PlainValues.SHORT)


def _longest_text(old: ColumnType) -> int:
    fraction = old.scale + 1 if old.scale else 0
    match old.family:
        case _F.INTEGER:
            return max(len(str(old.lowest)), len(str(old.highest)))
        case _F.DECIMAL:
            return old.precision + 3
        case _F.ENUM:
            return max(map(len, old.labels), default=0) * 4
        case _F.SET:
            return len(",".join(old.labels)) * 4
        case _:
            return {_F.YEAR: 4, _F.DATE: 10, _F.TIME: 10 + fraction}.get(old.family, 19 + fraction)


def _text_as_bytes(old: ColumnType, new: ColumnType) -> ConversionRule:
    """The bytes of another character set than UTF-8 are not on the wire."""
    if old.charset not in UTF8_CHARSETS:
        return SERVER
    return EXACT if capacity(old) <= capacity(new) else _plain(PlainValues.SHORT)


def _text_as_vector(old: ColumnType, _new: ColumnType) -> ConversionRule:
    """A server without the type VECTOR has the text (``adaptation``), which stays."""
    return EXACT if old.base == "longtext" else REFUSED


def _bytes_as_text(_old: ColumnType, new: ColumnType) -> ConversionRule:
    return _plain(PlainValues.UTF8) if new.charset in UTF8_CHARSETS else SERVER


def _labels(old: ColumnType, new: ColumnType) -> ConversionRule:
    """Within ENUM and within SET: by label, in whichever order."""
    return EXACT if set(old.labels) <= set(new.labels) else _plain(PlainValues.LABELS)


def _as_ordinal(old: ColumnType, new: ColumnType) -> ConversionRule:
    highest = len(old.labels) if old.family is _F.ENUM else (1 << len(old.labels)) - 1
    return EXACT if highest <= new.highest else _plain(PlainValues.IN_RANGE)


# Times


def _digits(old: ColumnType, new: ColumnType) -> ConversionRule:
    """Fewer digits of a second: TiDB and MySQL round, MariaDB cuts; each has a sql_mode for the other."""
    return EXACT if old.scale <= new.scale else _plain(PlainValues.WHOLE)


_TIMES: Final = (_F.DATE, _F.DATETIME, _F.TIMESTAMP, _F.TIME)
CONVERSIONS: Final[Mapping[tuple[TypeFamily, TypeFamily], _Entry]] = MappingProxyType(
    {
        **dict.fromkeys([(_F.INTEGER, _F.INTEGER), (_F.BIT, _F.BIT), (_F.INTEGER, _F.BIT), (_F.BIT, _F.INTEGER)], _to_whole_number),
        (_F.DECIMAL, _F.INTEGER): _to_whole_number,
        **{(family, _F.DECIMAL): _to_decimal for family in (_F.INTEGER, _F.BIT, _F.DECIMAL)},
        **{(family, _F.FLOAT): _to_real for family in (_F.INTEGER, _F.BIT, _F.DECIMAL, _F.FLOAT, _F.DOUBLE)},
        **{(family, _F.DOUBLE): _to_real for family in (_F.INTEGER, _F.BIT, _F.DECIMAL, _F.FLOAT, _F.DOUBLE)},
        (_F.YEAR, _F.YEAR): EXACT,
        (_F.CHARACTER, _F.CHARACTER): _within_text,
        (_F.BINARY, _F.BINARY): _within_text,
        (_F.CHARACTER, _F.BINARY): _text_as_bytes,
        (_F.BINARY, _F.CHARACTER): _bytes_as_text,
        **{(family, _F.CHARACTER): _as_text for family in (_F.INTEGER, _F.DECIMAL, _F.YEAR, _F.ENUM, _F.SET, *_TIMES)},
        (_F.CHARACTER, _F.INTEGER): _plain(PlainValues.INTEGER_TEXT),
        **dict.fromkeys(
            [(_F.CHARACTER, _F.DECIMAL), (_F.CHARACTER, _F.FLOAT), (_F.CHARACTER, _F.DOUBLE)], _plain(PlainValues.DECIMAL_TEXT)
        ),
        (_F.CHARACTER, _F.YEAR): _plain(PlainValues.YEAR_TEXT),
        (_F.CHARACTER, _F.DATE): _plain(PlainValues.DATE_TEXT),
        (_F.CHARACTER, _F.DATETIME): _plain(PlainValues.DATETIME_TEXT),
        (_F.CHARACTER, _F.TIMESTAMP): _plain(PlainValues.DATETIME_TEXT),
        (_F.CHARACTER, _F.TIME): _plain(PlainValues.TIME_TEXT),
        (_F.CHARACTER, _F.VECTOR): _text_as_vector,
        (_F.CHARACTER, _F.ENUM): _plain(PlainValues.LABELS),
        (_F.CHARACTER, _F.SET): _plain(PlainValues.LABELS),
        (_F.ENUM, _F.ENUM): _labels,
        (_F.SET, _F.SET): _labels,
        (_F.ENUM, _F.INTEGER): _as_ordinal,
        (_F.SET, _F.INTEGER): _as_ordinal,
        **{(old, new): _digits for old in (_F.DATETIME, _F.TIMESTAMP) for new in (_F.DATETIME, _F.TIMESTAMP)},
        (_F.TIME, _F.TIME): _digits,
        (_F.DATE, _F.DATE): EXACT,
        (_F.DATE, _F.DATETIME): EXACT,
        (_F.DATE, _F.TIMESTAMP): EXACT,
        (_F.DATETIME, _F.DATE): _plain(PlainValues.MIDNIGHT),
        (_F.TIMESTAMP, _F.DATE): _plain(PlainValues.MIDNIGHT),
        (_F.JSON, _F.JSON): EXACT,
        (_F.VECTOR, _F.VECTOR): EXACT,
        (_F.JSON, _F.CHARACTER): _plain(PlainValues.AS_SENT),
        (_F.VECTOR, _F.CHARACTER): _plain(PlainValues.AS_SENT),
    }
)
"""Everything else depends on the server."""
