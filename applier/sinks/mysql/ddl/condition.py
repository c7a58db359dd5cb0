"""IF [NOT] EXISTS of a DDL, resolved against the table as the server has it."""

from dataclasses import replace
from typing import Final

from sqlalchemy import Connection

from applier.ddl import parse_ddl
from applier.ddl.conditions import Present, Resolved, has_conditions, resolved
from applier.model.events import DdlEvent, TableName
from applier.mysql.names import spellings
from applier.sinks.mysql.structure.reader import read_structures

COLUMN_EXISTS: Final = 1060
INDEX_EXISTS: Final = 1061


def without_satisfied(connection: Connection, ddl: DdlEvent, table: TableName | None = None) -> tuple[DdlEvent, list[int]]:
    """Return a DDL without the clauses that have nothing to do, and the codes by which MariaDB says so of what exists. In a transaction.

    ``table``: the table that the statement finds, where that is not its own. A DDL of topics keeps its clauses if none of them would be
    left: upstream's has changed something, or there would be no event.
    """
    found = _resolved(connection, ddl, table) if has_conditions(ddl.query) else Resolved(ddl.query)
    if not found.query and not ddl.is_of_log:
        return ddl, []
    return replace(ddl, query=found.query), [COLUMN_EXISTS] * len(found.columns) + [INDEX_EXISTS] * len(found.indexes)


def _resolved(connection: Connection, ddl: DdlEvent, table: TableName | None) -> Resolved:
    parsed = parse_ddl(ddl)
    if table is None and parsed is not None and parsed.needs:
        table = spellings(connection, parsed.needs[:1]).get(parsed.needs[0].fold())
    found = None if table is None else read_structures(connection, [table]).get(table.fold())
    if found is None:
        return Resolved(ddl.query)
    names = [column.name for column in found.columns], [index.name for index in found.indexes]
    constraints = [key.name for key in found.foreign_keys], [check.name for check in found.checks]
    columns, indexes = (frozenset(name.casefold() for name in some) for some in names)
    return resolved(ddl.query, Present(columns, indexes, frozenset(name.casefold() for some in constraints for name in some)))
