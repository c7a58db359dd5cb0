"""The only reader of a server's catalogue: views of information_schema for many tables, as rows, descriptions, or whole structures.

The number of statements does not depend on the number of tables. MariaDB opens every table of the server unless schema and table are
compared with constants. So a few tables are asked for one by one within one statement (UNION ALL), many tables by their schemas. A join or
a list of pairs would open them all.

The servers differ in what information_schema has; what one of them lacks is looked for, not derived from a version. MariaDB (which alone
has IS_GENERATED) shows a default as SQL: ``'it''s'``, ``5``, ``NULL``, ``current_timestamp()``, and a question mark for each byte of a
binary default that is not text. MySQL and TiDB show the value, and say DEFAULT_GENERATED where it is an expression; binary values as
``0x…``. Errors of the database come out as SQLAlchemy's.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, exists, literal, select, text, union_all

from applier.ddl.column_type import ColumnType
from applier.ddl.generated import Known, KnownColumn, computed_otherwise, computes_number
from applier.ddl.table_draft import PRIMARY, parse_type, with_charset
from applier.ddl.tokens import Cursor, DdlSyntaxError
from applier.model.events import FoldedName, TableName
from applier.mysql.names import quote_identifier, quote_table, spellings, sql_name
from applier.mysql.session import read_named
from applier.mysql.session_variables import asked_once
from applier.mysql.structure import (
    Check,
    ColumnStructure,
    Expression,
    ForeignKey,
    IndexPartStructure,
    IndexStructure,
    Partition,
    Partitioning,
    TableStructure,
    Trigger,
    expression_of,
)
from applier.planner.port import ColumnDescription, TableDescription
from applier.planner.table_check import UniqueIndex, UpstreamKeys

FEW: Final = 50
"""Up to so many tables are asked for one by one."""

Row = dict[str, Any]


class CatalogueView(NamedTuple):
    """A view, and the columns that name the table of a row. All texts are constants of this package: they go into SQL as they are."""

    source: str
    schema: str = "TABLE_SCHEMA"
    table: str = "TABLE_NAME"
    columns: str = "*"
    """``*`` where servers have different columns, and what one of them lacks is looked for in the row."""
    condition: str = "TRUE"


TABLES: Final = CatalogueView("information_schema.TABLES")
COLUMNS: Final = CatalogueView("information_schema.COLUMNS")
INDEX_PARTS: Final = CatalogueView("information_schema.STATISTICS")
"""All columns: EXPRESSION and IS_VISIBLE exist in MySQL 8 and TiDB, IGNORED in MariaDB."""
RULES: Final = CatalogueView("information_schema.REFERENTIAL_CONSTRAINTS", schema="CONSTRAINT_SCHEMA")
"""The foreign keys and what they do."""
PARTITIONS: Final = CatalogueView("information_schema.PARTITIONS")

ALL_NAMES: Final = "SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES"
"""Tables, views and sequences. For names alone no server opens a table."""
NAMES_WITH_TYPES: Final = text("SELECT TABLE_SCHEMA, TABLE_NAME, TABLE_TYPE FROM information_schema.TABLES")
NAMES_BUT_VIEWS: Final = f"{ALL_NAMES} WHERE TABLE_TYPE <> 'VIEW'"
TABLE_TYPES: Final = ("BASE TABLE", "SYSTEM VERSIONED")
"""Not SEQUENCE: MariaDB and TiDB list those, too."""
NAMES_WITH_ROWS: Final = f"{ALL_NAMES} WHERE TABLE_TYPE IN {TABLE_TYPES}"
_UNIQUE_PARTS: Final = INDEX_PARTS._replace(columns="TABLE_SCHEMA, TABLE_NAME, INDEX_NAME, COLUMN_NAME", condition="NON_UNIQUE = 0")
_ORDERED_PARTS: Final = INDEX_PARTS._replace(columns="TABLE_SCHEMA, TABLE_NAME, INDEX_NAME, SEQ_IN_INDEX, COLUMN_NAME, SUB_PART")
_COMPARED: Final = COLUMNS._replace(columns="TABLE_SCHEMA, TABLE_NAME, COLUMN_NAME, COLLATION_NAME, EXTRA")
_COMPUTED: Final = re.compile(r"\b(?:STORED|VIRTUAL) GENERATED\b", re.IGNORECASE)
"""Not DEFAULT_GENERATED, which is a default that is an expression."""


def read_view(connection: Connection, view: CatalogueView, tables: Collection[TableName]) -> defaultdict[TableName, list[Row]]:
    """Read the rows of each table, by column name in upper case. ``tables``: names as the server spells them (``names.spellings``)."""
    wanted = set(tables)
    found: defaultdict[TableName, list[Row]] = defaultdict(list)
    for query, values in _queries(view, wanted):
        for row in read_named(connection, query, values):
            name = TableName(row[view.schema], row[view.table])
            if name in wanted:
                found[name].append(row)
    return found


def read_upstream_keys(connection: Connection, tables: Collection[TableName]) -> dict[TableName, UpstreamKeys]:
    """Read the unique keys, the collations and the plain columns of each table. ``tables``: as for ``read_view``."""
    parts, columns = read_view(connection, _UNIQUE_PARTS, tables), read_view(connection, _COMPARED, tables)
    return {name: _upstream_keys(parts[name], columns[name]) for name in tables}


def _upstream_keys(parts: Iterable[Row], columns: Collection[Row]) -> UpstreamKeys:
    keys: dict[str, set[str]] = {}
    for part in parts:
        # The part of an expression has no column.
        keys.setdefault(part["INDEX_NAME"].casefold(), set()).update([part["COLUMN_NAME"].casefold()] if part["COLUMN_NAME"] else [])
    return UpstreamKeys(
        {index: frozenset(names) for index, names in keys.items()},
        {column["COLUMN_NAME"].casefold(): column["COLLATION_NAME"].casefold() for column in columns if column["COLLATION_NAME"]},
        frozenset(column["COLUMN_NAME"].casefold() for column in columns if not _COMPUTED.search(str(column["EXTRA"]))),
    )


def whole_columns_of_indexes(connection: Connection, table: TableName) -> dict[str, tuple[str, ...]]:
    """Return the columns of each index up to the first part that is not a whole column, casefolded. ``table``: as for ``read_view``."""
    found: dict[str, list[str | None]] = {}
    for part in sorted(read_view(connection, _ORDERED_PARTS, [table])[table], key=lambda part: int(part["SEQ_IN_INDEX"])):
        is_whole = part["COLUMN_NAME"] is not None and part["SUB_PART"] is None
        found.setdefault(part["INDEX_NAME"].casefold(), []).append(part["COLUMN_NAME"].casefold() if is_whole else None)
    ends = {name: parts.index(None) if None in parts else len(parts) for name, parts in found.items()}
    return {name: tuple(str(part) for part in parts[: ends[name]]) for name, parts in found.items()}


def _queries(view: CatalogueView, wanted: set[TableName]) -> Iterable[tuple[str, tuple[str, ...]]]:
    if not wanted:
        return
    select = f"SELECT {view.columns} FROM {view.source} WHERE {view.condition} AND {view.schema} = %s"  # noqa: S608 - constants
    if len(wanted) <= FEW:
        one = f"{select} AND {view.table} = %s"
        yield " UNION ALL ".join([one] * len(wanted)), tuple(value for name in sorted(wanted) for value in name)
        return
    schemas = sorted({name.schema for name in wanted})
    for start in range(0, len(schemas), FEW):
        block = schemas[start : start + FEW]
        yield " UNION ALL ".join([select] * len(block)), tuple(block)


_DEFAULT: Final = re.compile(r" DEFAULT ('(?:[^'\\]|''|\\.)*')", re.DOTALL)


def restore_binary_defaults(connection: Connection, table: TableName, columns: list[dict[str, Any]]) -> None:
    """Replace defaults with question marks by the bytes of SHOW CREATE TABLE. ``columns``: rows of information_schema.COLUMNS."""
    unclear = [row for row in columns if _is_unclear(row)]
    if not unclear:
        return
    # SHOW CREATE TABLE writes the bytes as they are; read_named keeps what is no text as halves of surrogate pairs.
    (shown,) = read_named(connection, "SHOW CREATE TABLE " + quote_table(table.schema, table.table))
    for row in unclear:
        _, found, definition = shown.get("CREATE TABLE", "").partition(f"\n  {quote_identifier(row['COLUMN_NAME'])} ")
        default = _DEFAULT.search(definition) if found else None
        if default is not None:
            row["COLUMN_DEFAULT"] = default[1]


def _is_unclear(row: dict[str, Any]) -> bool:
    is_mariadb = "IS_GENERATED" in row
    return is_mariadb and row["DATA_TYPE"].endswith(("binary", "blob")) and "?" in (row["COLUMN_DEFAULT"] or "")


_WIDTH: Final = re.compile(r"^((?:tiny|small|medium|big)?int|integer|year)\(\d+\)")
_COMMENT: Final = re.compile(r"\s*/\*.*?\*/", re.DOTALL)
_LABELLED: Final = re.compile(r"^(?:enum|set)\b")
_OLD_UTF8: Final = re.compile(r"^utf8(?=_|$)")
_ON_UPDATE: Final = re.compile(r"on update (\w+(?:\(\d*\))?)", re.IGNORECASE)
_NOW: Final = re.compile(r"^(?:current_timestamp|now|localtime|localtimestamp)(?:\(\s*(\d*)\s*\))?$", re.IGNORECASE)
_NUMBER: Final = re.compile(r"^[-+]?[0-9.]+(?:e[-+]?\d+)?$", re.IGNORECASE)
_BITS: Final = re.compile(r"^b'[01]*'$", re.IGNORECASE)
_STRING: Final = re.compile(r"^'((?:[^'\\]|''|\\.)*)'$", re.DOTALL)
_INTRODUCER: Final = re.compile(r"^_\w+\s*(?=')")
_ESCAPE: Final = re.compile(r"''|\\(.)", re.DOTALL)
_CONTROL: Final = {"0": "\0", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a"}
_BINARY: Final = frozenset({"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"})
_WORDS: Final = frozenset({"AUTO_INCREMENT", "DEFAULT_GENERATED", "VIRTUAL GENERATED", "STORED GENERATED", "PERSISTENT", "VIRTUAL", "NULL"})


def column_of(row: Mapping[str, Any], checks: Sequence[Check]) -> ColumnStructure:
    """Read one row of information_schema.COLUMNS; ``checks``: of the table."""
    extra = str(row["EXTRA"] or "")
    sql_type, name = _type(str(row["COLUMN_TYPE"])), str(row["COLUMN_NAME"])
    is_json = sql_type == "json" or (sql_type == "longtext" and any(is_json_check(check, name) for check in checks))
    generation = str(row["GENERATION_EXPRESSION"] or "")
    # MariaDB shows the default NULL of a generated column, MySQL none.
    default, default_expression = (None, None) if generation else _default(row, sql_type, extra)
    on_update = _ON_UPDATE.search(extra)
    return ColumnStructure(
        name=name,
        type="json" if is_json else sql_type,
        character_set="" if is_json else plain_charset(row["CHARACTER_SET_NAME"]),
        collation="" if is_json else plain_charset(row["COLLATION_NAME"]),
        nullable=row["IS_NULLABLE"] == "YES",
        default=default,
        default_expression=default_expression,
        on_update=_now(on_update[1]) if on_update else None,
        generation=expression_of(generation) if generation else None,
        is_stored=bool(generation) and ("STORED" in extra.upper() or "PERSISTENT" in extra.upper()),
        auto_increment="auto_increment" in extra.casefold(),
        attributes=_attributes(extra),
        comment=row["COLUMN_COMMENT"] or "",
    )


def is_json_check(check: Check, column: str) -> bool:
    """Return whether it is the check by which MariaDB implements a JSON column."""
    return check.name == "" and check.clause == Expression(f"json_valid(`{column.replace('`', '``')}`)")


def plain_charset(name: str | None) -> str:
    """Return a character set or collation by its own name: ``utf8`` is utf8mb3."""
    return _OLD_UTF8.sub("utf8mb3", name or "")


def _type(column_type: str) -> str:
    """Return the type in lower case (labels keep theirs), without display width (ZEROFILL keeps it, because it pads to it)."""
    if _LABELLED.match(column_type):
        return column_type
    # TiDB and MariaDB append comments to types: /*!100301 COMPRESSED*/.
    plain = _COMMENT.sub("", column_type).casefold()
    return plain if "zerofill" in plain else _WIDTH.sub(r"\1", plain)


def _default(row: Mapping[str, Any], sql_type: str, extra: str) -> tuple[str | None, Expression | None]:
    """Return a literal's value, or an expression."""
    default: str | None = row["COLUMN_DEFAULT"]
    # A column that only MariaDB's view has: a version number would not tell a fork.
    is_sql = "IS_GENERATED" in row
    if default is None or (is_sql and default == "NULL"):
        return None, None
    is_time = not is_sql and sql_type.startswith(("datetime", "timestamp")) and _NOW.match(default)
    if not (is_sql or is_time or "DEFAULT_GENERATED" in extra.upper()):
        return _value(default, sql_type), None
    expression = _now(default)
    literal = _literal(_INTRODUCER.sub("", expression.text))
    return (None, expression) if literal is None else (_value(literal, sql_type), None)


def _literal(sql: str) -> str | None:
    """Return the value of a literal; None for another expression."""
    if _NUMBER.match(sql) or _BITS.match(sql):
        return sql
    text = _STRING.match(sql)
    return None if text is None else _ESCAPE.sub(lambda match: "'" if match[1] is None else _CONTROL.get(match[1], match[1]), text[1])


def _value(value: str, sql_type: str) -> str:
    """Return a value in one form. Binary types: hexadecimal digits, without the zeros that pad a BINARY."""
    if sql_type.partition("(")[0] not in _BINARY:
        return value
    if not value.startswith("0x"):
        value = "0x" + value.encode("utf-8", "surrogateescape").hex().upper()
    if sql_type.startswith("binary"):
        value = re.sub(r"(?:00)+$", "", value[2:]) if len(value) % 2 == 0 else value[2:]
        return f"0x{value}"
    return value


def _now(text: str) -> Expression:
    """Return an expression. The current time has one name."""
    now = _NOW.match(text)
    if now is None:
        return expression_of(text)
    return Expression(f"CURRENT_TIMESTAMP({now[1]})" if now[1] and now[1] != "0" else "CURRENT_TIMESTAMP")


def _attributes(extra: str) -> tuple[str, ...]:
    # What the other facts say already goes; what is left (INVISIBLE, …) must not be lost, whatever it is.
    rest = _ON_UPDATE.sub("", extra).upper()
    for word in sorted(_WORDS, key=len, reverse=True):
        rest = rest.replace(word, "")
    return tuple(sorted(rest.replace(",", " ").split()))


_VIEWS: Final = {
    "tables": TABLES,
    "columns": COLUMNS,
    "index_parts": INDEX_PARTS,
    "keys": CatalogueView("information_schema.KEY_COLUMN_USAGE"),
    "rules": RULES,
    "partitions": PARTITIONS,
    "triggers": CatalogueView("information_schema.TRIGGERS", schema="EVENT_OBJECT_SCHEMA", table="EVENT_OBJECT_TABLE"),
}
# MySQL's checks do not name their table, MariaDB's and TiDB's do.
_MYSQL_CHECKS: Final = CatalogueView(
    "(SELECT t.TABLE_SCHEMA, t.TABLE_NAME, t.ENFORCED, c.CONSTRAINT_NAME, c.CHECK_CLAUSE FROM information_schema.TABLE_CONSTRAINTS t"
    " JOIN information_schema.CHECK_CONSTRAINTS c USING (CONSTRAINT_SCHEMA, CONSTRAINT_NAME) WHERE t.CONSTRAINT_TYPE = 'CHECK') x"
)
_CHECK_VIEWS: Final = (
    "SELECT TABLE_NAME AS view_name, COLUMN_NAME AS column_name FROM information_schema.COLUMNS"
    " WHERE TABLE_SCHEMA IN ('information_schema', 'INFORMATION_SCHEMA') AND TABLE_NAME IN ('CHECK_CONSTRAINTS', 'TIDB_CHECK_CONSTRAINTS')"
)
# Names of constraints that MySQL, MariaDB and TiDB generate. They contain the table's name, or count: two equal tables have different ones.
_GENERATED: Final = r"(?:{table}_(?:chk|ibfk)_\d+|CONSTRAINT_\d+|fk_\d+(?:#\d+)?|\d+)"
# CREATE_OPTIONS says "partitioned" of a table whose partitions are read from their own view.
_OWN_OPTIONS: Final = frozenset({"partitioned"})


def read_structures(connection: Connection, tables: Collection[TableName]) -> dict[FoldedName, TableStructure]:
    """Read the tables; missing ones are skipped. NeedsOperator: the server has several tables of one folded name."""
    actual = spellings(connection, tables)
    if not actual:
        return {}
    wanted = set(actual.values())
    views = _VIEWS | {"checks": _check_view(connection)}
    found = {what: read_view(connection, view, wanted) for what, view in views.items() if view is not None}
    # Only MariaDB, and only tables with such a default cost an extra statement.
    for name, columns in found["columns"].items():
        restore_binary_defaults(connection, name, columns)
    return {
        folded: _structure(name, {what: rows[name] for what, rows in found.items()})
        for folded, name in actual.items()
        if found["tables"][name]
    }


def read_check_names(connection: Connection, table: TableName) -> tuple[frozenset[str], list[tuple[str, Expression]]]:
    """Return the names of all constraints of a table, casefolded, and its checks that have a name, with their expressions."""
    view = _check_view(connection)
    rows = [] if view is None else read_view(connection, view, {table})[table]
    checks = [(str(row["CONSTRAINT_NAME"]), expression_of(row["CHECK_CLAUSE"])) for row in rows if row.get("LEVEL") != "Column"]
    keys = read_view(connection, _VIEWS["keys"], {table})[table]
    return frozenset(name.casefold() for name in (*(name for name, _ in checks), *(str(row["CONSTRAINT_NAME"]) for row in keys))), checks


def _check_view(connection: Connection) -> CatalogueView | None:
    """Find where the server describes checks; None: it does not have one."""
    rows = asked_once(connection, "views of checks", lambda: read_named(connection, _CHECK_VIEWS))
    present = {(row["VIEW_NAME"].upper(), row["COLUMN_NAME"].upper()) for row in rows}
    views = {view for view, _ in present}
    if "TIDB_CHECK_CONSTRAINTS" in views:
        return CatalogueView("information_schema.TIDB_CHECK_CONSTRAINTS", schema="CONSTRAINT_SCHEMA")
    if ("CHECK_CONSTRAINTS", "TABLE_NAME") in present:
        return CatalogueView("information_schema.CHECK_CONSTRAINTS", schema="CONSTRAINT_SCHEMA")
    return _MYSQL_CHECKS if views else None


def _structure(name: TableName, rows: dict[str, list[Row]]) -> TableStructure:
    (table,) = rows["tables"]
    checks = [_check(name, row) for row in rows.get("checks", [])]
    columns = tuple(column_of(row, checks) for row in sorted(rows["columns"], key=lambda row: int(row["ORDINAL_POSITION"])))
    is_view = table["TABLE_TYPE"].endswith("VIEW")
    return TableStructure(
        kind=table["TABLE_TYPE"],
        engine=table["ENGINE"] or "",
        collation=plain_charset(table["TABLE_COLLATION"]),
        options=tuple(sorted(set((table["CREATE_OPTIONS"] or "").casefold().split()) - _OWN_OPTIONS)),
        comment="" if is_view else table["TABLE_COMMENT"],
        columns=columns,
        indexes=_indexes(rows["index_parts"]),
        foreign_keys=_foreign_keys(name, rows["keys"], rows["rules"]),
        checks=_own_checks(checks, columns),
        partitioning=_partitioning([row for row in rows["partitions"] if row["PARTITION_NAME"] is not None]),
        triggers=tuple(_trigger(row) for row in sorted(rows["triggers"], key=_order_of_trigger)),
    )


def _check(table: TableName, row: Row) -> Check:
    # MariaDB names the check of a column like the column. "Column" is the server's word.
    name = "" if row.get("LEVEL") == "Column" else given_name(row["CONSTRAINT_NAME"], table)
    return Check(name=name, clause=expression_of(row["CHECK_CLAUSE"]), enforced=row.get("ENFORCED", "YES") != "NO")


def _own_checks(checks: list[Check], columns: tuple[ColumnStructure, ...]) -> tuple[Check, ...]:
    """Exclude the checks by which MariaDB implements the type JSON."""
    own = [check for check in checks if not any(column.type == "json" and is_json_check(check, column.name) for column in columns)]
    return tuple(sorted(own, key=lambda check: (check.name, check.clause.text)))


def given_name(name: str, table: TableName) -> str:
    """Return a constraint's name; '' if the server generated it."""
    generated = _GENERATED.format(table=re.escape(table.table))
    return "" if re.fullmatch(generated, name, re.IGNORECASE) else name


def _indexes(parts: list[Row]) -> tuple[IndexStructure, ...]:
    # The order in which indexes were made means nothing to rows, and servers list them differently.
    ordered = sorted(parts, key=lambda row: (row["INDEX_NAME"] != "PRIMARY", row["INDEX_NAME"].casefold(), int(row["SEQ_IN_INDEX"])))
    return tuple(_index(list(rows)) for _, rows in groupby(ordered, key=lambda row: row["INDEX_NAME"]))


def _index(rows: list[Row]) -> IndexStructure:
    first = rows[0]
    return IndexStructure(
        name=first["INDEX_NAME"],
        unique=int(first["NON_UNIQUE"]) == 0,
        parts=tuple(_part(row) for row in rows),
        type=first["INDEX_TYPE"].upper(),
        visible=first.get("IS_VISIBLE") != "NO" and first.get("IGNORED") != "YES",
        comment=first["INDEX_COMMENT"] or "",
    )


def _part(row: Row) -> IndexPartStructure:
    expression = row.get("EXPRESSION")
    return IndexPartStructure(
        column=None if expression else row["COLUMN_NAME"],
        expression=expression_of(expression) if expression else None,
        prefix=None if row["SUB_PART"] is None else int(row["SUB_PART"]),
        descending=row["COLLATION"] == "D",
    )


def _foreign_keys(table: TableName, columns: list[Row], rules: list[Row]) -> tuple[ForeignKey, ...]:
    actions = {row["CONSTRAINT_NAME"]: row for row in rules}
    pairs = sorted(
        (row for row in columns if row["REFERENCED_TABLE_NAME"] is not None),
        key=lambda row: (row["CONSTRAINT_NAME"], int(row["ORDINAL_POSITION"])),
    )
    found = []
    for name, group in groupby(pairs, key=lambda row: row["CONSTRAINT_NAME"]):
        rows = list(group)
        action = actions.get(name, {})
        found.append(
            ForeignKey(
                name=given_name(name, table),
                columns=tuple(row["COLUMN_NAME"] for row in rows),
                referenced_schema=rows[0]["REFERENCED_TABLE_SCHEMA"],
                referenced_table=rows[0]["REFERENCED_TABLE_NAME"],
                referenced_columns=tuple(row["REFERENCED_COLUMN_NAME"] for row in rows),
                on_delete=_action(action.get("DELETE_RULE")),
                on_update=_action(action.get("UPDATE_RULE")),
            )
        )
    return tuple(sorted(found, key=lambda key: (key.name, key.columns, key.referenced_table)))


def _action(rule: str | None) -> str:
    """Return an action. NO ACTION and RESTRICT are the same to InnoDB, and servers show the default under either name."""
    return "RESTRICT" if rule in {None, "", "NO ACTION"} else str(rule)


def _partitioning(rows: list[Row]) -> Partitioning | None:
    if not rows:
        return None
    ordered = sorted(rows, key=lambda row: (int(row["PARTITION_ORDINAL_POSITION"]), int(row["SUBPARTITION_ORDINAL_POSITION"] or 0)))
    first, sub = ordered[0], ordered[0]["SUBPARTITION_EXPRESSION"]
    return Partitioning(
        method=first["PARTITION_METHOD"],
        expression=expression_of(first["PARTITION_EXPRESSION"] or ""),
        subpartition_method=first["SUBPARTITION_METHOD"] or "",
        subpartition_expression=None if sub is None else expression_of(sub),
        partitions=tuple(_partition(list(group)) for _, group in groupby(ordered, key=lambda row: row["PARTITION_NAME"])),
    )


def _partition(rows: list[Row]) -> Partition:
    return Partition(
        name=rows[0]["PARTITION_NAME"],
        description=rows[0]["PARTITION_DESCRIPTION"] or "",
        subpartitions=tuple(row["SUBPARTITION_NAME"] for row in rows if row["SUBPARTITION_NAME"] is not None),
        comment=rows[0]["PARTITION_COMMENT"] or "",
    )


def _trigger(row: Row) -> Trigger:
    return Trigger(
        name=row["TRIGGER_NAME"], timing=row["ACTION_TIMING"], event=row["EVENT_MANIPULATION"], statement=row["ACTION_STATEMENT"].strip()
    )


def _order_of_trigger(row: Row) -> tuple[str, str, int]:
    return row["ACTION_TIMING"], row["EVENT_MANIPULATION"], int(row["ACTION_ORDER"])


def known_columns(connection: Connection, tables: Collection[TableName]) -> dict[FoldedName, Known]:
    """Read the columns of tables, named as the server spells them."""
    columns, parts = (read_view(connection, view, tables) for view in (COLUMNS, INDEX_PARTS))
    return {
        table.fold(): known([column_of(row, ()) for row in columns[table]], {str(part["COLUMN_NAME"]).casefold() for part in parts[table]})
        for table in tables
    }


def known_of(structure: TableStructure) -> Known:
    """Return the columns of a table that was read."""
    indexed = {part.column.casefold() for index in structure.indexes for part in index.parts if part.column is not None}
    return known(structure.columns, indexed)


def unportable_unique_indexes(structure: TableStructure) -> list[str]:
    """List the unique indexes of expressions that the table may compute differently from upstream."""
    unique = [index for index in structure.indexes if index.unique and any(part.expression for part in index.parts)]
    # Few tables have any, and the check asks for thousands of tables.
    columns = known_of(structure) if unique else {}
    primary = {part.column for index in structure.indexes if index.name == PRIMARY for part in index.parts}
    return [
        index.name
        for index in unique
        # Two rows that differ in the primary key differ in such an index too.
        if not (primary and primary <= {part.column for part in index.parts if part.prefix is None})
        if not all(computes_number(_plain(part.expression.text), columns) for part in index.parts if part.expression is not None)
    ]


def names_computed_otherwise(rows: Collection[Row]) -> list[str]:
    """Return the generated columns of one table for which the sink may compute other values than upstream, casefolded."""
    # Few tables have any, and the planner asks for thousands of tables.
    if not any(row["GENERATION_EXPRESSION"] for row in rows):
        return []
    return computed_otherwise(known([column_of(row, ()) for row in rows], ()))


def known(columns: Collection[ColumnStructure], indexed: Collection[str]) -> Known:
    """Return the columns; ``indexed``: casefolded names."""
    return {
        column.name.casefold(): KnownColumn(
            type=_type_of_column(column),
            # Servers give literals a character set, which no expression of upstream has.
            expression="" if column.generation is None else _plain(column.generation.text),
            is_stored=column.is_stored,
            is_indexed=column.name.casefold() in indexed,
            comment=column.comment,
        )
        for column in columns
    }


def _plain(expression: str) -> str:
    try:
        return Cursor(expression).source()
    except DdlSyntaxError:
        return expression


def _type_of_column(column: ColumnStructure) -> ColumnType | None:
    try:
        return with_charset(parse_type(Cursor(column.type)), column.character_set)
    except DdlSyntaxError:
        return None


_DESCRIBED: Final = CatalogueView(
    "information_schema.COLUMNS",
    columns="TABLE_SCHEMA, TABLE_NAME, ORDINAL_POSITION, COLUMN_NAME, COLUMN_TYPE, DATA_TYPE, IS_NULLABLE, COLUMN_DEFAULT, EXTRA,"
    " GENERATION_EXPRESSION, CHARACTER_SET_NAME, COLLATION_NAME, COLUMN_COMMENT",
)
_UNIQUE_INDEXES: Final = INDEX_PARTS._replace(condition="NON_UNIQUE = 0")
_BLOBS: Final = frozenset({"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"})
_LABEL: Final = re.compile(r"'((?:[^'\\]|''|\\.)*)'", re.DOTALL)
_LABEL_ESCAPE: Final = re.compile(r"''|\\(.)", re.DOTALL)
_LABEL_CONTROL: Final = {"0": "\0", "n": "\n", "r": "\r"}


def describe(connection: Connection, tables: Collection[TableName]) -> dict[FoldedName, TableDescription]:
    """Describe the tables, in as many statements for thousands as for one; missing ones are skipped.

    NeedsOperator: the server has several tables of one folded name, and none is spelled as upstream's.
    """
    actual = spellings(connection, tables)
    described = describe_with_rows(connection, set(actual.values()))
    return {folded: described[name][0] for folded, name in actual.items()}


def describe_with_rows(connection: Connection, tables: Collection[TableName]) -> dict[TableName, tuple[TableDescription, list[Row]]]:
    """Describe tables, named as the server spells them, each with the rows of its columns. A table without columns does not exist."""
    columns, indexes = (read_view(connection, view, tables) for view in (_DESCRIBED, _UNIQUE_INDEXES))
    return {name: (_description(name, columns[name], indexes[name]), columns[name]) for name in tables}


def tables_with_rows(connection: Connection, tables: Collection[TableName]) -> frozenset[FoldedName]:
    """Return which of the tables exist and hold a row, in a statement for each fifty of them."""
    actual = list(spellings(connection, tables).items())
    found: set[FoldedName] = set()
    for block in (actual[start : start + FEW] for start in range(0, len(actual), FEW)):
        looks = (select(literal(at), exists(select(literal(1)).select_from(sql_name(name)))) for at, (_, name) in enumerate(block))
        found.update(block[at][0] for at, is_filled in connection.execute(union_all(*looks)) if is_filled)
    return frozenset(found)


def holds_row(connection: Connection, actual: TableName) -> bool:
    """Return whether an existing table, as the server spells it, holds a row."""
    return bool(connection.scalar(select(exists(select(literal(1)).select_from(sql_name(actual))))))


def _description(actual: TableName, columns: list[Row], index_parts: list[Row]) -> TableDescription:
    otherwise = names_computed_otherwise(columns)
    described = tuple(_column(row, otherwise) for row in sorted(columns, key=lambda row: int(row["ORDINAL_POSITION"])))
    nullable = {column.name for column in described if column.nullable}
    keys: dict[str, tuple[str, ...]] = {}
    unique: list[UniqueIndex] = []
    # The primary key first: the planner takes the first key that fits.
    ordered = sorted(index_parts, key=lambda row: (row["INDEX_NAME"] != "PRIMARY", row["INDEX_NAME"].casefold(), int(row["SEQ_IN_INDEX"])))
    for name, parts in groupby(ordered, key=lambda part: str(part["INDEX_NAME"])):
        members = list(parts)
        unique.append(UniqueIndex(name, tuple(part["COLUMN_NAME"] for part in members if part["COLUMN_NAME"] is not None)))
        # A nullable column makes no key: a unique index allows many rows with NULL.
        if all(map(_is_plain, members)) and not nullable.intersection(part["COLUMN_NAME"] for part in members):
            keys[name] = tuple(part["COLUMN_NAME"] for part in members)
    return TableDescription(
        schema=actual.schema,
        table=actual.table,
        columns=described,
        unique_keys=tuple(keys.values()),
        primary_key=keys.get("PRIMARY", ()),
        unique_indexes=tuple(unique),
    )


def _is_plain(part: Mapping[str, Any]) -> bool:
    """Return whether an index part is a whole column of an index that the optimizer uses."""
    hidden = part.get("IS_VISIBLE") == "NO" or part.get("IGNORED") == "YES"
    return part["COLUMN_NAME"] is not None and part["SUB_PART"] is None and part.get("EXPRESSION") is None and not hidden


def _column(row: Mapping[str, Any], otherwise: Collection[str]) -> ColumnDescription:
    data_type, column_type = str(row["DATA_TYPE"]).casefold(), str(row["COLUMN_TYPE"])
    extra = str(row["EXTRA"]).upper()
    # MariaDB spells the default of a nullable column 'NULL'.
    has_default = row["COLUMN_DEFAULT"] not in {None, "NULL"} or "AUTO_INCREMENT" in extra
    return ColumnDescription(
        name=row["COLUMN_NAME"],
        sql_type=column_type,
        nullable=row["IS_NULLABLE"] == "YES",
        # DEFAULT_GENERATED is MySQL 8's word for a default that is an expression: such a column is written.
        generated="VIRTUAL GENERATED" in extra or "STORED GENERATED" in extra or bool(row["GENERATION_EXPRESSION"]),
        computes_otherwise=row["COLUMN_NAME"].casefold() in otherwise,
        has_default=has_default,
        default="DEFAULT" if has_default or row["IS_NULLABLE"] == "YES" else None,
        # TiDB names the charset of some binary columns; the other servers turn such columns into BINARY and BLOB types.
        binary=data_type in _BLOBS or (row["CHARACTER_SET_NAME"] == "binary" and ("char" in data_type or "text" in data_type)),
        labels=labels_of(column_type) if data_type in {"enum", "set"} else (),
        is_set=data_type == "set",
        auto_increment="AUTO_INCREMENT" in extra,
    )


def labels_of(column_type: str) -> tuple[str, ...]:
    """Read the elements of ``enum('a','it''s')`` or ``set(…)`` as information_schema spells them."""
    return tuple(_LABEL_ESCAPE.sub(_unescaped, match.group(1)) for match in _LABEL.finditer(column_type))


def _unescaped(match: re.Match[str]) -> str:
    escaped = match.group(1)
    return "'" if escaped is None else _LABEL_CONTROL.get(escaped, escaped)
