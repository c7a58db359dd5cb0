"""Writes upstream's names for unnamed indexes into a DDL, before it is translated. The file keeps every index, so none is left out."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import takewhile

from sqlalchemy import Connection

from applier.ddl import parse_ddl
from applier.ddl.generated_name import MYSQL_NAMING, TIDB_NAMING, TableNames, with_generated_names
from applier.ddl.stated_keys import depends_on_names
from applier.ddl.table import PRIMARY, IndexPart, TableDefinition
from applier.ddl.target import UPSTREAM
from applier.model.events import DdlEvent
from applier.sinks.bookkeeping.past_ddls import PastDdls
from applier.sinks.sqlite.catalogue import find_objects, read_definition
from applier.sinks.sqlite.session import raw


def with_upstream_names(connection: Connection, past: PastDdls, ddl: DdlEvent) -> DdlEvent:
    """Return the DDL with upstream's names in its text."""
    naming, before = MYSQL_NAMING if ddl.is_of_log else TIDB_NAMING, TableNames()
    statement = parse_ddl(ddl)
    if statement is not None and statement.needs and depends_on_names(ddl.query):
        name = statement.needs[0].fold()
        entry = find_objects(raw(connection)).get(name)
        definition = None if entry is None else read_definition(raw(connection), entry)
        history = past.history(connection, name, ddl.commit_ts, (UPSTREAM, naming))
        before = TableNames({} if definition is None else _indexes(definition), history.foreign_keys)
    return replace(ddl, query=with_generated_names(ddl.query, before, naming))


def _indexes(table: TableDefinition) -> dict[str, tuple[str, ...]]:
    indexes = {index.name: index.parts for index in table.indexes} | {PRIMARY: table.primary_key}
    return {name.casefold(): _columns(parts) for name, parts in indexes.items()}


def _columns(parts: Sequence[IndexPart]) -> tuple[str, ...]:
    return tuple(part.column.casefold() for part in takewhile(lambda part: part.column and not part.prefix, parts))
