"""What a DDL would do to the rows that are there: a DDL that gives them other values than upstream's is refused before its intent.

The table is asked as it is before the DDL: the types of its columns, and whether it holds rows, or rows with certain values. A change of
a column's type is allowed for values that each server converts alike (``PlainValues``). A DDL that depends on the time zone runs in the
zone of upstream's session.

PARTITION BY KEY distributes rows differently: TiDB takes a CRC-32 of the key, MySQL and MariaDB their own hash. So p0 of the two holds
different rows. That matters to TRUNCATE and EXCHANGE PARTITION only; HASH, RANGE and LIST mean the same everywhere. MySQL and MariaDB
distribute rows alike (tested on MySQL 9.7 and MariaDB 10.11 with numbers, texts, bytes and times), unless a text has a collation that only
one of them has.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from sqlalchemy import Connection, exists, literal, quoted_name, select, text
from sqlalchemy import column as sql_column

from applier.ddl import DdlKind, parse_ddl
from applier.ddl.column_type import ColumnType, TypeFamily
from applier.ddl.conversion_rule import Certainty, PlainValues
from applier.ddl.old_values import OWN_VALUES, OldColumn, Question, is_made_a_point, own_values, refuse_other_values
from applier.ddl.parser import BY_HAND, parse
from applier.ddl.table_draft import emptied_partitions, parse_type, with_charset
from applier.ddl.tokens import Cursor, DdlSyntaxError
from applier.ddl.tree import AlterTableStatement
from applier.ddl.zone_use import TIME_ZONE, in_zone_of_need
from applier.model.errors import NeedsOperator, Remedy
from applier.model.events import DdlEvent, TableName
from applier.mysql.catalogue import COLUMNS, PARTITIONS, read_structures, read_view
from applier.mysql.names import quote_identifier, quote_table, spellings, sql_name
from applier.mysql.session import read_bytes
from applier.mysql.session_variables import zone_on_server
from applier.mysql.structure import ColumnStructure
from applier.sinks.mysql.ddl.rewrite import kind_of


@dataclass
class OldTable:
    """The first table that a DDL needs; ``name`` is None if there is none. Facts that are not asked for cost no statement."""

    connection: Connection
    ddl: DdlEvent

    @cached_property
    def name(self) -> TableName | None:
        """Its name as the server spells it. NeedsOperator: the server has several tables of one folded name."""
        statement = parse_ddl(self.ddl)
        needs = () if statement is None else statement.needs[:1]
        return spellings(self.connection, needs).get(needs[0].fold()) if needs else None

    @cached_property
    def columns(self) -> dict[str, ColumnStructure]:
        """Its columns by casefolded name."""
        if self.name is None:
            return {}
        return {column.name.casefold(): column for column in read_structures(self.connection, [self.name])[self.name.fold()].columns}

    @cached_property
    def types(self) -> dict[str, ColumnType]:
        """The types of its columns by casefolded name."""
        return {name: _type_of(column) for name, column in self.columns.items()}

    def has(self, column: str, condition: str) -> bool:
        """Return whether a row meets a condition, a text of ours, in which ``{column}`` represents the column."""
        if self.name is None:
            return False
        name = quote_identifier(column)
        query = f"SELECT EXISTS (SELECT 1 FROM {quote_table(*self.name)} WHERE {condition.replace('{column}', name)})"  # noqa: S608
        return bool(int(read_bytes(self.connection, query)[0][0]))

    def holds(self, column: str = "") -> bool:
        """Return whether it holds a row, or with ``column`` a row that has a value there."""
        if self.name is None:
            return False
        has_value = [sql_column(quoted_name(column, quote=True)).is_not(None)] if column else []
        return bool(self.connection.scalar(select(exists(select(literal(1)).select_from(sql_name(self.name)).where(*has_value)))))


def _type_of(column: ColumnStructure) -> ColumnType:
    try:
        return with_charset(parse_type(Cursor(column.type)), column.character_set)
    except DdlSyntaxError:
        # A type that only this server has, of which nothing is known: like one that converts into nothing else.
        return ColumnType(base="vector")


COLUMN: Final = "{column}"
"""Represents the column's quoted name."""
_MOST_DIGITS: Final = 30
"""A DECIMAL(65,30), in which texts are compared, has 35 digits before its point."""
_LARGEST_FLOAT: Final = "3.4028234663852886e38"
_CLOCK: Final = "([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]"
_TIME: Final = "^-?(0?[0-9]{2}|[1-7][0-9]{2}|8[0-2][0-9]|83[0-8]):[0-5][0-9]:[0-5][0-9]([.][0-9]{1,6})?$"

_Condition = Callable[[str, ColumnType, ColumnType], str]


def plain_condition(values: PlainValues, old: ColumnType, new: ColumnType, zone: str) -> str | None:
    """Return the condition for a plain value of ``{column}``; None: no value is known to be plain on a server.

    ``zone``: that of upstream's session, in which a TIMESTAMP is looked at; '': that of this session.
    """
    condition = _CONDITIONS.get(values)
    if condition is None:
        return None
    is_seen = old.family is TypeFamily.TIMESTAMP and new.family is not TypeFamily.TIMESTAMP and zone
    name = f"CONVERT_TZ({COLUMN},@@SESSION.time_zone,'{zone}')" if is_seen else COLUMN
    return condition(name, old, new)


def once_in_zone(zone: str) -> str:
    """Return the condition for a date and time that is one TIMESTAMP in a zone: its hour is not repeated, nor skipped."""
    name = f"CAST({COLUMN} AS DATETIME(6))"
    moment = f"CONVERT_TZ({name},'{zone}','+00:00')"
    # Clocks are moved by one hour; by half an hour (Lord Howe) or two in few regions.
    others = " AND ".join(
        f"CONVERT_TZ({moment} + INTERVAL {minutes} MINUTE,'+00:00','{zone}') <> {name}" for minutes in (-120, -60, -30, 30, 60, 120)
    )
    return f"({name} BETWEEN '1970-01-03' AND '2038-01-17' AND CONVERT_TZ({moment},'+00:00','{zone}') = {name} AND {others})"


def _text(name: str) -> str:
    return f"CONVERT({name} USING utf8mb4)"


def _matches(name: str, pattern: str) -> str:
    # $ also stands before a line feed at the end.
    return f"({_text(name)} REGEXP '{pattern}' AND INSTR({_text(name)}, CHAR(10)) = 0)"


def _in_range(name: str, old: ColumnType, new: ColumnType) -> str:
    number = f"{name}+0"
    match new.family:
        case TypeFamily.FLOAT:
            return _unless_unsigned(number, new, f"ABS({number}) <= {_LARGEST_FLOAT}")
        case TypeFamily.DOUBLE:
            return _unless_unsigned(number, new, "TRUE")
        case TypeFamily.DECIMAL:
            return _decimal_range(number, new)
        case _:
            whole = f"ROUND({number})" if old.family is TypeFamily.DECIMAL else number
            return f"{whole} BETWEEN {new.lowest} AND {new.highest}"


def _decimal_range(number: str, new: ColumnType) -> str:
    return _unless_unsigned(number, new, f"ABS(ROUND({number},{new.scale})) < 1{'0' * (new.precision - new.scale)}")


def _unless_unsigned(number: str, new: ColumnType, condition: str) -> str:
    return f"{condition} AND {number} >= 0" if new.unsigned else condition


def _short(name: str, old: ColumnType, new: ColumnType) -> str:
    is_bytes = new.family is TypeFamily.BINARY
    value = name if is_bytes and old.family is TypeFamily.BINARY else _text(name)
    # CHAR has no trailing spaces: they are cut off everywhere.
    value = f"TRIM(TRAILING ' ' FROM {value})" if new.base == "char" else value
    if new.max_characters is not None:
        return f"{'LENGTH' if is_bytes else 'CHAR_LENGTH'}({value}) <= {new.max_characters}"
    return f"LENGTH({value}) <= {new.max_bytes}"


def _whole(name: str, _old: ColumnType, new: ColumnType) -> str:
    return f"MICROSECOND({name}) % {10 ** (6 - new.scale)} = 0"


def _midnight(name: str, _old: ColumnType, _new: ColumnType) -> str:
    return f"TIME_TO_SEC({name}) = 0 AND MICROSECOND({name}) = 0"


def _integer_text(name: str, _old: ColumnType, new: ColumnType) -> str:
    number = f"CAST({_text(name)} AS DECIMAL(65,0))"
    is_plain = _matches(name, "^ *[+-]?[0-9]+ *$")
    return f"({is_plain} AND CHAR_LENGTH({name}) <= {_MOST_DIGITS} AND {number} BETWEEN {new.lowest} AND {new.highest})"


def _decimal_text(name: str, _old: ColumnType, new: ColumnType) -> str:
    number = f"CAST({_text(name)} AS DECIMAL(65,30))"
    is_plain = f"{_matches(name, '^ *[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+) *$')} AND CHAR_LENGTH({name}) <= {_MOST_DIGITS}"
    fits = _decimal_range(number, new) if new.family is TypeFamily.DECIMAL else _unless_unsigned(number, new, "TRUE")
    return f"({is_plain} AND {fits})"


def _year_text(name: str, _old: ColumnType, _new: ColumnType) -> str:
    return f"({_matches(name, '^[0-9]{4}$')} AND ({name} = '0000' OR {name} BETWEEN '1901' AND '2155'))"


def _of_calendar(name: str) -> str:
    """Compare a date with the one that its month and its day give: there is no 31 February."""
    text = _text(name)
    counted = f"CAST(CONCAT(LEFT({text},8),'01') AS DATE) + INTERVAL (SUBSTRING({text},9,2)+0)-1 DAY"
    return f"CAST({counted} AS CHAR) = LEFT({text},10) AND SUBSTRING({text},6,2) BETWEEN '01' AND '12'"


def _date_text(name: str, _old: ColumnType, _new: ColumnType) -> str:
    return f"({_matches(name, '^[0-9]{4}-[0-9]{2}-[0-9]{2}([ T]00:00:00([.]0+)?)?$')} AND {_of_calendar(name)})"


def _datetime_text(name: str, _old: ColumnType, new: ColumnType) -> str:
    is_plain = _matches(name, f"^[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}([ T]{_CLOCK}([.][0-9]{{1,6}})?)?$")
    return f"({is_plain} AND {_has_digits(name, new)} AND {_of_calendar(name)})"


def _time_text(name: str, _old: ColumnType, new: ColumnType) -> str:
    return f"({_matches(name, _TIME)} AND {_has_digits(name, new)})"


def _has_digits(name: str, new: ColumnType) -> str:
    return f"{_text(name)} NOT REGEXP '[.][0-9]{{{new.scale}}}[0-9]*[1-9]'"


def _labels(name: str, old: ColumnType, new: ColumnType) -> str:
    if old.family is TypeFamily.SET:
        gone = [label for label in old.labels if label not in new.labels]
        return " AND ".join(f"FIND_IN_SET({_quoted(label)}, {_text(name)}) = 0" for label in gone)
    # As bytes: a collation may take other texts for the label.
    return f"CAST({_text(name)} AS BINARY) IN ({','.join(f'CAST({_quoted(label)} AS BINARY)' for label in new.labels)})"


def _quoted(label: str) -> str:
    return f"CONVERT(X'{label.encode().hex()}' USING utf8mb4)"


def _utf8(name: str, old: ColumnType, new: ColumnType) -> str:
    # As bytes again: what is no UTF-8 becomes NULL, or question marks.
    return f"(CAST({_text(name)} AS BINARY) = CAST({name} AS BINARY) AND {_short(name, old, new)})"


def _in_charset(name: str, old: ColumnType, new: ColumnType) -> str:
    if not new.charset.isidentifier():
        return "FALSE"
    # There and back again: what the character set lacks becomes a question mark.
    back = f"CONVERT(CONVERT({name} USING {new.charset}) USING utf8mb4)"
    return f"(CAST({back} AS BINARY) = CAST({_text(name)} AS BINARY) AND {_short(name, old, new)})"


_CONDITIONS: Final[Mapping[PlainValues, _Condition]] = {
    PlainValues.IN_RANGE: _in_range,
    PlainValues.SHORT: _short,
    PlainValues.WHOLE: _whole,
    PlainValues.MIDNIGHT: _midnight,
    PlainValues.INTEGER_TEXT: _integer_text,
    PlainValues.DECIMAL_TEXT: _decimal_text,
    PlainValues.YEAR_TEXT: _year_text,
    PlainValues.DATE_TEXT: _date_text,
    PlainValues.DATETIME_TEXT: _datetime_text,
    PlainValues.TIME_TEXT: _time_text,
    PlainValues.LABELS: _labels,
    PlainValues.UTF8: _utf8,
    PlainValues.IN_CHARSET: _in_charset,
}
"""Not AS_SENT: a server prints what it has stored."""


_NEVER: Final = "FALSE"


def refuse_other_conversions(connection: Connection, ddl: DdlEvent, old: OldTable) -> None:
    """Raise NeedsOperator if old rows have values that the server may convert differently from upstream's. ``ddl`` has its zone."""
    zone = zone_on_server(str(dict(ddl.session).get(TIME_ZONE, "")))

    def columns() -> dict[str, OldColumn]:
        found = old.columns
        return {name: OldColumn(name=found[name].name, type=kind, nullable=found[name].nullable) for name, kind in old.types.items()}

    def matters(question: Question) -> bool:
        if question.of_nulls:
            return old.has(question.column, "{column} IS NULL")
        certain = _certain(question, zone)
        if not question.column or certain is None:
            return old.holds(question.column)
        return old.has(question.column, f"{{column}} IS NOT NULL AND NOT COALESCE({certain}, FALSE)")

    refuse_other_values(ddl, lambda: kind_of(connection), columns, matters)


def _certain(question: Question, zone: str) -> str | None:
    """Return the condition for values that each server converts alike; None: there are none."""
    old, new = question.old, question.new
    if old is None or new is None:
        return None
    conditions = []
    if question.rule.certainty is not Certainty.EXACT:
        plain = question.rule.plain and plain_condition(question.rule.plain, old, new, zone)
        if not plain:
            return None
        conditions.append(plain)
    if is_made_a_point(old, new):
        conditions.append(once_in_zone(zone) if zone else _NEVER)
    return " AND ".join(f"({condition})" for condition in conditions)


def refuse_own_values(old: OldTable) -> None:
    """Raise NeedsOperator if the DDL's table holds rows, and the DDL gives them values that may not be upstream's."""
    ddl = old.ddl
    column = own_values(ddl.query, lambda: old.types)
    if column and old.holds():
        facts: dict[str, Any] = {"column": column, "table": str(ddl.name), "commit_ts": ddl.commit_ts, "query": ddl.query}
        raise NeedsOperator(OWN_VALUES, remedy=BY_HAND, **facts)


_KNOWN: Final = text("SELECT CONVERT_TZ('2020-01-01 00:00:00', '+00:00', :zone) IS NOT NULL")
_REMEDY: Final = Remedy(
    "mysql.load-zone-tables-for-ddl",
    "Load the zone tables (mysql_tzinfo_to_sql /usr/share/zoneinfo | mysql mysql), or set source.ddl_time_zone to an offset such as +08:00",
)


def in_its_zone(connection: Connection, ddl: DdlEvent, old: OldTable) -> DdlEvent:
    """Return the DDL with its zone if it depends on it, else without. NeedsOperator: the zone is not known, or not to the server.

    Asked before the intent is written: a zone that is corrected later counts.
    """
    zoned = in_zone_of_need(ddl, lambda: old.types, old.holds)
    zone = "" if ddl.is_of_log else str(dict(zoned.session).get(TIME_ZONE, ""))
    if zone and not connection.execute(_KNOWN, {"zone": zone_on_server(zone)}).scalar_one():
        facts: dict[str, Any] = {"table": str(ddl.name), "commit_ts": ddl.commit_ts, "query": ddl.query}
        message = f"the DDL depends on the time zone of upstream's session, which the sink's server does not know: {zone}"
        raise NeedsOperator(message, remedy=_REMEDY, **facts)
    return zoned


_COLLATIONS: Final = COLUMNS._replace(columns="TABLE_SCHEMA, TABLE_NAME, COLLATION_NAME")
_OWN_HASHES: Final = frozenset({"KEY", "LINEAR KEY", "LINEAR HASH"})


def refuse_other_rows(connection: Connection, ddl: DdlEvent) -> None:
    """Raise NeedsOperator if the DDL empties or exchanges a partition that holds other rows here than upstream."""
    statement = parse_ddl(ddl)
    if statement is None or not statement.needs:
        return
    # DROP PARTITION needs no check: TiDB has it for RANGE and LIST only.
    is_exchange = statement.kind is DdlKind.EXCHANGE_PARTITION
    emptied = _emptied(ddl.query) if statement.kind is DdlKind.ALTER_TABLE else None
    # TRUNCATE PARTITION ALL, [] here, empties the table wherever its rows lie.
    if not is_exchange and not emptied:
        return
    actual = spellings(connection, statement.needs[:1]).get(statement.needs[0].fold())
    if actual is None:
        return
    partitions = read_view(connection, PARTITIONS, [actual])[actual]
    if emptied and {str(row["PARTITION_NAME"]).casefold() for row in partitions} <= {name.casefold() for name in emptied}:
        return
    # TIDB_PARTITION_ID shows that the sink is a TiDB; a DDL is of a log if upstream is a MySQL or MariaDB.
    is_own = any(row["PARTITION_METHOD"] in _OWN_HASHES for row in partitions)
    is_tidb = any(row.get("TIDB_PARTITION_ID") is not None for row in partitions)
    if is_own and (is_tidb == ddl.is_of_log or (not is_tidb and _has_own_collation(connection, actual))):
        raise NeedsOperator(
            "the sink's partitions of this table hold other rows than upstream's, so the DDL would change the wrong rows",
            remedy=Remedy(
                "mysql.equal-rows-and-skip",
                "Make the table's rows equal to upstream's by hand, then skip the DDL with `applier ddl skip --ts … --table …`",
            ),
            table=str(ddl.name),
            commit_ts=ddl.commit_ts,
            query=ddl.query,
        )


def _has_own_collation(connection: Connection, table: TableName) -> bool:
    """Return whether a column has one of MariaDB's collations that represent MySQL's utf8mb4_0900 collations too."""
    return any("uca1400" in str(row["COLLATION_NAME"]).casefold() for row in read_view(connection, _COLLATIONS, [table])[table])


def _emptied(query: str) -> list[str] | None:
    tree = parse(query)
    return emptied_partitions(tree, tree.node) if isinstance(tree.node, AlterTableStatement) else None
