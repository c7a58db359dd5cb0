"""How values, digests and ranges are written in the SQL of MySQL, MariaDB and TiDB. Pure.

The digest of a row is SHA2 over its values. CRC32 would not do: it is linear, so two rows that swap a value keep the sum of their CRC32s'
bits; and MySQL 9.7 no longer has MD5. Values are joined with commas: numbers and times have none, other values have their length before
them. CONCAT_WS skips NULLs, so a digit for each nullable column says whether it is one.
"""

from collections.abc import Sequence
from typing import Final

from applier.ddl.column_type import UTF8_CHARSETS, ColumnType, TypeFamily
from applier.mysql.literals import comparable_of, decimal, float64, hexadecimal, integer, text
from applier.mysql.names import quote_identifier, quote_table
from applier.mysql.session_variables import SQL_MODE
from applier.sinks.table_pair import VARIABLE, ColumnPair, Form, ServerKind, SideColumn, SideTable, TablePair
from applier.sinks.table_reader import DIGEST_BITS, SUMMED_DIGITS, WIDE_MARK, Key, Scope, read_float, read_text

_REPAIRING: Final = (
    "SET NAMES utf8mb4",
    f"SET SESSION sql_mode = '{SQL_MODE},STRICT_ALL_TABLES', time_zone = '+00:00', foreign_key_checks = 0",
    "BEGIN",
)
_LENIENT: Final = (f"SET SESSION sql_mode = '{SQL_MODE}'", f"SET SESSION sql_mode = '{SQL_MODE},STRICT_ALL_TABLES'")
MYSQL: Final = ServerKind(name="MySQL", begins=_REPAIRING, lenient=_LENIENT)
MARIADB: Final = ServerKind(name="MariaDB", begins=_REPAIRING, lenient=_LENIENT)
TIDB: Final = ServerKind(name="TiDB", has_history=True, is_wide=True, begins=_REPAIRING, lenient=_LENIENT)
_NAMED_BYTES: Final = ("uuid", "inet4", "inet6")


def kind_of_version(version: str) -> ServerKind:
    """Return which server shows this version."""
    shown = version.casefold()
    if "tidb" in shown:
        return TIDB
    return MARIADB if "mariadb" in shown else MYSQL


class TableText:
    """The SQL of one side of a table."""

    def __init__(self, pair: TablePair, kind: ServerKind, *, is_upstream: bool) -> None:
        self._kind = kind
        self._is_upstream = is_upstream
        side: SideTable = pair.upstream if is_upstream else pair.sink
        self._pair = pair
        self.table = quote_table(side.name.schema, side.name.table)
        self.row_digest = f"SHA2({self._joined(pair.columns)},256)"
        self.key_digest = f"CRC32({self._joined(pair.key)})" if pair.key else "0"

    def checksum(self, scope: Scope) -> str:
        """Write the query of ``Reader.checksum``."""
        return f"SELECT COUNT(*), {self._total} FROM {self.table} WHERE {self.condition(scope)}"  # noqa: S608 - rendered here

    def checksums(self, scope: Scope, bits: int) -> str:
        """Write the query of ``Reader.checksums``."""
        part = f"{self.key_digest} >> {DIGEST_BITS - bits}"
        return f"SELECT {part} AS part, COUNT(*), {self._total} FROM {self.table} WHERE {self.condition(scope)} GROUP BY part"  # noqa: S608

    def digests(self, scope: Scope) -> str:
        """Write the query of ``Reader.digests``."""
        key = ", ".join(self.value(column) for column in self._pair.key)
        return f"SELECT {key}, {self.row_digest} FROM {self.table} WHERE {self.condition(scope)}"  # noqa: S608 - rendered here

    def rows(self, keys: Sequence[Key]) -> str:
        """Write the query of ``Reader.rows``."""
        values = ", ".join(self.value(column) for column in self._pair.columns)
        return f"SELECT {values} FROM {self.table} WHERE {self._among(keys)}"  # noqa: S608 - rendered here

    def bound(self, low: Key | None, rows: int) -> str:
        """Write the query of ``Reader.bound``."""
        values = ", ".join(self.value(column) for column in self._pair.ranged)
        order = ", ".join(self._name(column) for column in self._pair.ranged)
        # LIMIT with an offset: only keys are read, in the order of the index.
        above = self.condition(Scope(low=low))
        return f"SELECT {values} FROM {self.table} WHERE {above} ORDER BY {order} LIMIT 1 OFFSET {rows - 1}"  # noqa: S608 - rendered here

    def is_above(self, key: Key, low: Key) -> str:
        """Write a query of one truth value: whether ``key`` comes after ``low`` in the columns' collations."""
        ranged = self._pair.ranged
        constants = [self._constant(column, value) for column, value in zip(ranged, key, strict=True)]
        limits = [self._constant(column, value) for column, value in zip(ranged, low, strict=True)]
        return f"SELECT {_beyond(constants, limits, '>', is_strict=True)}"

    def condition(self, scope: Scope) -> str:
        """Write the condition of a scope."""
        names = [self._name(column) for column in self._pair.ranged]
        conditions = []
        if scope.low is not None:
            conditions.append(_beyond(names, self._literals(scope.low), ">", is_strict=True))
        if scope.high is not None:
            conditions.append(_beyond(names, self._literals(scope.high), "<", is_strict=False))
        if scope.bits:
            conditions.append(f"{self.key_digest} >> {DIGEST_BITS - scope.bits} IN ({','.join(map(str, scope.parts))})")
        return " AND ".join(conditions) or "TRUE"

    # Values

    def value(self, column: ColumnPair) -> str:
        """Write the expression of a value as text or bytes; NULL remains NULL."""
        expression = self._plain(column)
        return expression if column.form in VARIABLE else f"CAST({expression} AS CHAR)"

    @property
    def _total(self) -> str:
        digits = f"CAST(CONV(LEFT({self.row_digest},{SUMMED_DIGITS}),16,10) AS UNSIGNED)"
        return f"CAST(COALESCE(SUM({digits}),0) AS CHAR)"

    def _joined(self, columns: Sequence[ColumnPair]) -> str:
        parts = [f"ISNULL({self._name(column)})" for column in columns if column.is_nullable]
        for column in columns:
            expression = self._plain(column)
            if column.is_large:
                parts.append(f"SHA2({expression},256)")
            elif column.form in VARIABLE:
                parts += [f"LENGTH({expression})", expression]
            else:
                parts.append(expression)
        return f"CONCAT_WS(',',{','.join(parts)})"

    def _side(self, column: ColumnPair) -> SideColumn:
        return column.upstream if self._is_upstream else column.sink

    def _name(self, column: ColumnPair) -> str:
        return quote_identifier(self._side(column).name)

    def _plain(self, column: ColumnPair) -> str:  # noqa: PLR0911 - one per form
        """Write the value so that both sides print the same text for it."""
        name, side = self._name(column), self._side(column)
        kind = side.type
        if kind is None:
            return name
        match column.form:
            case Form.INTEGER:
                # BIT is bytes, ZEROFILL pads with zeros.
                return f"{name}+0" if kind.zerofill or kind.family is not TypeFamily.INTEGER else name
            case Form.DECIMAL:
                return self._decimal(column, name, kind)
            case Form.DOUBLE:
                return _double(name, kind, column)
            case Form.ORDINAL:
                # Not CAST: where bit 63 of a SET is set, MariaDB warns, and not all servers print the same sign.
                return f"HEX({name}+0)"
            case Form.MOMENT:
                return _moment(name, kind, column)
            case Form.TEXT | Form.LABEL | Form.BYTES | Form.JSON | Form.VECTOR:
                return self._bytes(name, side, kind)

    def _decimal(self, column: ColumnPair, name: str, kind: ColumnType) -> str:
        if kind.family is TypeFamily.DECIMAL and kind.scale == column.scale and not kind.zerofill:
            return name
        return f"CAST({name}{'+0' if kind.family is TypeFamily.BIT else ''} AS DECIMAL(65,{column.scale}))"

    def _bytes(self, name: str, side: SideColumn, kind: ColumnType) -> str:
        match kind.family:
            case TypeFamily.BINARY:
                # MariaDB prints UUID and INET as text; elsewhere they are bytes.
                is_named = side.description.sql_type.casefold().startswith(_NAMED_BYTES)
                return f"CAST({name} AS BINARY({kind.max_characters}))" if is_named else name
            case TypeFamily.JSON:
                return f"CAST(CAST({name} AS CHAR CHARACTER SET utf8mb4) AS BINARY)"
            case TypeFamily.VECTOR:
                return f"VEC_AS_TEXT({name})" if self._kind == TIDB else f"HEX({name})"
            case _ if side.charset in UTF8_CHARSETS:
                return f"CAST({name} AS BINARY)"
            case _:
                return f"CAST(CONVERT({name} USING utf8mb4) AS BINARY)"

    # Keys

    def _literals(self, key: Key) -> list[str]:
        return [self.literal(column, value) for column, value in zip(self._pair.ranged, key, strict=True)]

    def literal(self, column: ColumnPair, value: bytes) -> str:
        """Write a value of a key so that its comparison with the column is exact."""
        match column.form:
            case Form.INTEGER:
                return integer(int(value))
            case Form.DECIMAL:
                return decimal(read_text(value))
            case Form.DOUBLE:
                return float64(read_float(value))
            case Form.BYTES:
                return hexadecimal(value)
            case Form.ORDINAL:
                return comparable_of(self._side(column).description)(integer(int(value, 16)))
            case Form.TEXT | Form.LABEL | Form.MOMENT | Form.JSON | Form.VECTOR:
                return text(read_text(value))

    def _constant(self, column: ColumnPair, value: bytes) -> str:
        """Write a value of a key with the column's collation, for a comparison without the column."""
        literal, side = self.literal(column, value), self._side(column)
        if column.form is not Form.TEXT or not side.charset:
            return literal
        return f"CONVERT({literal} USING {side.charset}) COLLATE {side.collation}"

    def _among(self, keys: Sequence[Key]) -> str:
        columns = self._pair.key
        if len(columns) == 1:
            return f"{self._name(columns[0])} IN ({','.join(self.literal(columns[0], key[0]) for key in keys)})"
        each = (
            " AND ".join(f"{self._name(column)} = {self.literal(column, value)}" for column, value in zip(columns, key, strict=True))
            for key in keys
        )
        return f"(({') OR ('.join(each)}))"


def _beyond(values: Sequence[str], limits: Sequence[str], sign: str, *, is_strict: bool) -> str:
    """Write the comparison of two tuples, such that servers use an index for it: they do not for ``(a, b) > (1, 2)``."""
    (value, *rest), (limit, *further) = values, limits
    if not rest:
        return f"{value} {sign}{'' if is_strict else '='} {limit}"
    inner = _beyond(rest, further, sign, is_strict=is_strict)
    return f"({value} {sign}= {limit} AND ({value} {sign} {limit} OR ({value} = {limit} AND {inner})))"


def _moment(name: str, kind: ColumnType, column: ColumnPair) -> str:
    """Write a date or time with the digits of the longer one of the two columns: other zeros are the same value."""
    scale = 0 if kind.family is TypeFamily.DATE else kind.scale
    is_day = kind.family is TypeFamily.DATE and not _is_date_pair(column)
    filler = (" 00:00:00" if is_day else "") + ("." if column.scale and not scale else "") + "0" * (column.scale - scale)
    return f"CONCAT({name},'{filler}')" if filler else name


def _is_date_pair(column: ColumnPair) -> bool:
    return all(side.type is not None and side.type.family is TypeFamily.DATE for side in (column.upstream, column.sink))


def _double(name: str, kind: ColumnType, column: ColumnPair) -> str:
    """Write a FLOAT as the double that it is, with all digits; DOUBLE(10,2) without the two decimals that a server would print."""
    # Servers print a column with 17 digits, and an expression with as many as fit into 22 characters: a DOUBLE stays a column.
    is_expression = kind.family is not TypeFamily.DOUBLE or bool(kind.arguments)
    value = f"{name}*1e0" if is_expression else name
    if not column.is_wide and column.has_signed_zero:
        return value
    wide = _wide(value, f"CAST(ABS({value}) AS CHAR)" if is_expression else f"TRIM(LEADING '-' FROM CONCAT({value}))")
    if not column.is_wide and is_expression:
        # MariaDB and MySQL print the same text in this range; elsewhere they choose an exponent for different numbers.
        return f"IF({value}=0,'0',IF(ABS({value})>1e-3 AND ABS({value})<1e14,{value},{wide}))"
    return f"IF({value}=0,'0',{wide if column.is_wide else value})"


def _wide(value: str, printed: str) -> str:
    """Write 12.5 as "125x2": sign, digits without zeros at the ends, and the position of the point. TiDB prints 1e+22, or all zeros."""
    mantissa = f"SUBSTRING_INDEX({printed},'e',1)"
    digits = f"REPLACE({mantissa},'.','')"
    exponent = f"IF(LOCATE('e',{printed})>0,CAST(SUBSTRING_INDEX({printed},'e',-1) AS SIGNED),0)"
    point = f"LENGTH(SUBSTRING_INDEX({mantissa},'.',1))+{exponent}+LENGTH(TRIM(LEADING '0' FROM {digits}))-LENGTH({digits})"
    return f"CONCAT(IF({value}<0,'-',''),TRIM(BOTH '0' FROM {digits}),'{WIDE_MARK}',{point})"
