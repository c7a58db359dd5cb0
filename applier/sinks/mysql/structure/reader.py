"""Reads the structures of many tables from information_schema, in as many statements as for one.

The servers differ in what information_schema has; what one of them lacks is looked for, not derived from a version.
Errors of the database come out as SQLAlchemy's.
"""

import re
from collections.abc import Collection
from itertools import groupby
from typing import Final

from sqlalchemy import Connection

from applier.model.events import FoldedName, TableName
from applier.mysql.information_schema import PARTITIONS, TABLES, CatalogueView, Row, read_view
from applier.mysql.names import spellings
from applier.mysql.session import read_named
from applier.mysql.session_variables import asked_once
from applier.sinks.mysql.structure.binary_default import restore_binary_defaults
from applier.sinks.mysql.structure.column import column_of, is_json_check, plain_charset
from applier.sinks.mysql.structure.expression import Expression, expression_of
from applier.sinks.mysql.structure.model import (
    Check,
    ColumnStructure,
    ForeignKey,
    IndexPartStructure,
    IndexStructure,
    Partition,
    Partitioning,
    TableStructure,
    Trigger,
)

_VIEWS: Final = {
    "tables": TABLES,
    "columns": CatalogueView("information_schema.COLUMNS"),
    "index_parts": CatalogueView("information_schema.STATISTICS"),
    "keys": CatalogueView("information_schema.KEY_COLUMN_USAGE"),
    "rules": CatalogueView("information_schema.REFERENTIAL_CONSTRAINTS", schema="CONSTRAINT_SCHEMA"),
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
    """Read the tables; missing ones are left out. NeedsOperator: the server has several tables of one folded name."""
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
    """Find where the server describes checks; None: it has none."""
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
    # MariaDB names the check of a column like the column. "Column" is the server's own word.
    name = "" if row.get("LEVEL") == "Column" else given_name(row["CONSTRAINT_NAME"], table)
    return Check(name=name, clause=expression_of(row["CHECK_CLAUSE"]), enforced=row.get("ENFORCED", "YES") != "NO")


def _own_checks(checks: list[Check], columns: tuple[ColumnStructure, ...]) -> tuple[Check, ...]:
    """Leave out the checks by which MariaDB implements the type JSON."""
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
