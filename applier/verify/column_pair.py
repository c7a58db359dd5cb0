"""A column of both sides, and the form in which its values are compared.

Equal values must have equal text on both sides, and different ones different text. Servers print FLOAT, DOUBLE and JSON in their own ways,
so the form depends on both. Where no expression of SQL gives one text (``is_loose``), values with different texts are compared by
``equality.py``.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from applier.ddl.column_type import ColumnType, TypeFamily
from applier.verify.side import ServerKind, SideColumn

INTEGERS: Final = frozenset({TypeFamily.INTEGER, TypeFamily.BIT, TypeFamily.YEAR})
FLOATS: Final = frozenset({TypeFamily.FLOAT, TypeFamily.DOUBLE})
NUMBERS: Final = INTEGERS | FLOATS | {TypeFamily.DECIMAL}
MOMENTS: Final = frozenset({TypeFamily.DATE, TypeFamily.DATETIME, TypeFamily.TIMESTAMP})
LARGE: Final = frozenset({"text", "mediumtext", "longtext", "blob", "mediumblob", "longblob", "json", "vector"})
"""Values that may not fit into one packet with others (CONCAT_WS would return NULL): their digests are compared."""
MAX_PRECISION: Final = 65


class Form(StrEnum):
    """How values are written down to be compared."""

    INTEGER = "integer"
    DECIMAL = "decimal"
    DOUBLE = "double"
    TEXT = "text"
    BYTES = "bytes"
    ORDINAL = "ordinal"
    LABEL = "label"
    MOMENT = "moment"
    JSON = "json"
    VECTOR = "vector"


VARIABLE: Final = frozenset({Form.TEXT, Form.BYTES, Form.LABEL, Form.JSON, Form.VECTOR})
"""Forms whose texts may hold any character, the separator among them: their length goes before them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnPair:
    """A column of upstream and the sink's of the same name. ``scale``: digits of DECIMAL, or of a second, on both sides."""

    upstream: SideColumn
    sink: SideColumn
    form: Form
    scale: int = 0
    is_wide: bool = False
    """DOUBLE as digits and exponent: the sides do not print numbers alike."""
    has_signed_zero: bool = True
    """Whether -0 and 0 are different: MariaDB stores 0 for both."""
    is_loose: bool = False
    """Equal values may have different texts."""

    @property
    def name(self) -> str:
        """The name, as upstream spells it."""
        return self.upstream.name

    @property
    def is_nullable(self) -> bool:
        """Whether one of the sides allows NULL."""
        return self.upstream.description.nullable or self.sink.description.nullable

    @property
    def is_large(self) -> bool:
        """Whether the values' digests are compared instead of the values."""
        types = (self.upstream.type, self.sink.type)
        return self.form in VARIABLE and any(each is not None and each.base in LARGE for each in types)

    @property
    def is_generated(self) -> bool:
        """Whether the sink computes the value itself."""
        return self.sink.description.generated


def pair_columns(upstream: SideColumn, sink: SideColumn, kinds: tuple[ServerKind, ServerKind]) -> ColumnPair | None:
    """Return the pair; None if values of these types cannot be compared."""
    one = upstream.type
    # A table of SQLite that the applier did not make does not say what its values are.
    other = one if sink.type is None and kinds[1] is ServerKind.SQLITE else sink.type
    if one is None or other is None:
        return None
    form = _form(one, other, kinds)
    if form is None:
        return None
    loose = form in {Form.JSON, Form.VECTOR} or (form is Form.DOUBLE and one.family is not other.family)
    return ColumnPair(
        upstream=upstream,
        sink=sink,
        form=form,
        scale=max(one.scale, other.scale) if form in {Form.DECIMAL, Form.MOMENT} else 0,
        is_wide=form is Form.DOUBLE and not {ServerKind.MYSQL, ServerKind.MARIADB}.issuperset(kinds),
        has_signed_zero=kinds[0] is kinds[1],
        is_loose=loose,
    )


def _form(one: ColumnType, other: ColumnType, kinds: tuple[ServerKind, ServerKind]) -> Form | None:  # noqa: PLR0911 - one per kind of form
    families = {one.family, other.family}
    if families <= NUMBERS:
        return _number_form(one, other)
    if families <= MOMENTS or families == {TypeFamily.TIME}:
        # The time of day of a TIMESTAMP depends on the session's zone, that of a DATE is midnight.
        return None if families == {TypeFamily.DATE, TypeFamily.TIMESTAMP} else Form.MOMENT
    if len(families) == 1 and families <= {TypeFamily.ENUM, TypeFamily.SET}:
        return Form.ORDINAL if one.labels == other.labels and ServerKind.SQLITE not in kinds else Form.LABEL
    if families == {TypeFamily.CHARACTER}:
        return Form.TEXT
    if families == {TypeFamily.BINARY}:
        return Form.BYTES
    for family, form in ((TypeFamily.JSON, Form.JSON), (TypeFamily.VECTOR, Form.VECTOR)):
        if family in families and families <= {family, TypeFamily.CHARACTER}:
            return form
    return None


def _number_form(one: ColumnType, other: ColumnType) -> Form | None:
    families = {one.family, other.family}
    if families <= INTEGERS:
        return Form.INTEGER
    if families & FLOATS:
        return Form.DOUBLE
    digits = max(each.precision - each.scale if each.family is TypeFamily.DECIMAL else 20 for each in (one, other))
    return Form.DECIMAL if digits + max(one.scale, other.scale) <= MAX_PRECISION else None
