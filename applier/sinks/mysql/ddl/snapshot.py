"""Tables as they are when a statement is sent. They are compared if the statement's outcome stays unknown (``outcome.py``).

Of each table: the text of SHOW CREATE TABLE, from which a scratch table can be made; whether it holds rows; and its storage ids.
Left out on purpose: AUTO_INCREMENT counters and creation times, which change without a DDL. A schema's tables are left out because a
half-done DROP DATABASE must be repeated.
"""

import json
import re
from collections.abc import Collection
from typing import Any, Final

from sqlalchemy import Connection

from applier.ddl import parse_ddl
from applier.model.events import DdlEvent, TableName
from applier.mysql.names import schema_spelling, spellings
from applier.mysql.quoting import quote_identifier, quote_table
from applier.mysql.session import read_bytes
from applier.sinks.mysql.catalogue import holds_row
from applier.sinks.mysql.ddl.schema_default import read_schema_default
from applier.sinks.mysql.ddl.storage_ids import Storage, read_storage

# Both count rows that were inserted: no DDL changes them, and each write of the applier may.
_COUNTERS: Final = re.compile(r" AUTO_INCREMENT=\d+| /\*T!\[auto_rand_base\] AUTO_RANDOM_BASE=\d+ \*/")


class States:
    """The tables and schemas (table ``''``) of one snapshot. ``name in states``: it was there."""

    def __init__(self, states: dict[str, dict[str, Any] | None]) -> None:
        self._states = states

    def __contains__(self, name: TableName) -> bool:
        """Return whether the table or schema was there."""
        return self._states.get(str(name.fold())) is not None

    def definition(self, name: TableName) -> str:
        """Return the text of SHOW CREATE TABLE of a table that was there."""
        return str(self._of(name)["create"])

    def body(self, name: TableName) -> str:
        """Return the definition without the table's name."""
        # The first line is CREATE TABLE `name` (. SHOW CREATE TABLE breaks the line after it on each server.
        return self.definition(name).partition("\n")[2]

    def has_same_definitions(self, other: "States", names: Collection[TableName]) -> bool:
        """Return whether the same tables are there, with the same definitions, as the same server words them."""
        is_there = [name for name in names if name in self]
        if is_there != [name for name in names if name in other]:
            return False
        return all(self.definition(name) == other.definition(name) for name in is_there if name.table)

    def is_view(self, name: TableName) -> bool:
        """Return whether it was a view."""
        return "has_rows" not in self._of(name)

    def has_rows(self, name: TableName) -> bool:
        """Return whether a table that was there held a row."""
        return bool(self._of(name).get("has_rows"))

    def storage(self, name: TableName) -> Storage | None:
        """Return the storage of a table that was there; None if it is not known."""
        state = self._of(name)
        return Storage(state["storage_ids"], state["server"]) if state.get("server") is not None and state["storage_ids"] else None

    def places(self) -> dict[tuple[str, str], tuple[str, int]] | None:
        """Return server and storage id of each table (partition ``''``) and partition; None if one is not known."""
        states = {name: state for name, state in self._states.items() if state is not None}
        if any(state.get("server") is None for state in states.values()):
            return None
        return {
            (name, partition): (state["server"], number)
            for name, state in states.items()
            for partition, number in state["storage_ids"].items()
        }

    def _of(self, name: TableName) -> dict[str, Any]:
        return self._states[str(name.fold())] or {}


def states_of(description: str) -> States:
    """Read what ``snapshot`` returned."""
    return States(json.loads(description))


def described_tables(ddl: DdlEvent) -> list[TableName]:
    """Return the tables (and the schema, as table '') that show whether the DDL has run."""
    statement = parse_ddl(ddl)
    names = [ddl.name] if ddl.table else []
    if statement is not None:
        renamed = [name for pair in statement.renames for name in pair]
        names += [*statement.needs, *statement.creates, *statement.drops, *renamed]
        names += [TableName(statement.schema, "")] if statement.schema else []
    return list({name.fold(): name for name in names}.values())


def snapshot(connection: Connection, names: Collection[TableName]) -> str:
    """Describe the tables (and schemas: table ``''``) as JSON, for ``states_of``."""
    tables = spellings(connection, [name for name in names if name.table])
    states: dict[str, Any] = {}
    # One by one, two to five statements each: a DDL names a few tables, and SHOW CREATE TABLE has no plural.
    for name in names:
        if not name.table:
            states[str(name.fold())] = _schema(connection, name.schema)
        else:
            actual = tables.get(name.fold())
            states[str(name.fold())] = None if actual is None else _table(connection, actual)
    # In ASCII: bytes that are no text have become halves of surrogate pairs, which no column of a server takes.
    return json.dumps(states, sort_keys=True)


def has_moved(were: States, now: States) -> bool | None:
    """Return whether tables and partitions have changed places; None: the storage ids do not show it.

    They show nothing if one side is not known, if another server gave them, or if a table was created again.
    """
    before, present = were.places(), now.places()
    if before is None or present is None or sorted(before.values()) != sorted(present.values()):
        return None
    return before != present


def _schema(connection: Connection, schema: str) -> dict[str, Any] | None:
    actual = schema_spelling(connection, schema)
    if actual is None:
        return None
    character_set, collation = read_schema_default(connection, actual)
    return {"schema": actual, "character_set": character_set, "collation": collation}


def _table(connection: Connection, actual: TableName) -> dict[str, Any]:
    # A view's text leaves out the session's current schema. So the session enters the view's own, or two sessions would get two texts.
    read_bytes(connection, "USE " + quote_identifier(actual.schema))
    ((_, definition, *of_view),) = read_bytes(connection, "SHOW CREATE TABLE " + quote_table(actual.schema, actual.table))
    facts = {"table": str(actual), "create": _COUNTERS.sub("", definition.decode("utf-8", "surrogateescape"))}
    if of_view:
        # These are a view's character set and collation. Its rows are its tables' rows; it cannot be read at all once those have changed.
        return facts
    storage = read_storage(connection, actual)
    return facts | {"has_rows": holds_row(connection, actual), "storage_ids": storage and storage.ids, "server": storage and storage.server}
