"""Tables as they are when a statement is sent: what is compared if its outcome stays unknown (``outcome.py``).

Of each table: the text of SHOW CREATE TABLE, from which it can be made again for a comparison; whether it holds rows; and its storage ids,
which alone show an EXCHANGE PARTITION or a RENAME between tables that look alike. Storage ids are TiDB's table and partition ids, or
InnoDB's (which need the PROCESS privilege; null without it). They become known or other ones without a DDL, by a GRANT, a restored dump,
or a failover to another server.

Left out on purpose: AUTO_INCREMENT counters and creation times, which change without a DDL. A schema's tables are left out because a
half-done DROP DATABASE must be repeated.
"""

import json
import re
from collections.abc import Collection
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, TextClause, text
from sqlalchemy.exc import DBAPIError

from applier.model.events import TableName
from applier.sinks.mysql.catalogue import holds_row
from applier.sinks.mysql.ddl.file_name import file_name
from applier.sinks.mysql.dialect import quote_identifier, quote_table
from applier.sinks.mysql.names import schema_spelling, spellings
from applier.sinks.mysql.session import read_bytes

_COUNTERS: Final = re.compile(r" AUTO_INCREMENT=\d+| /\*T!\[auto_rand_base\] AUTO_RANDOM_BASE=\d+ \*/")
_SCHEMA: Final = text(
    "SELECT DEFAULT_CHARACTER_SET_NAME, DEFAULT_COLLATION_NAME FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = :schema"
)
_TABLE: Final = text("SELECT * FROM information_schema.TABLES WHERE TABLE_SCHEMA = :schema AND TABLE_NAME = :table")
_PARTITIONS: Final = text("SELECT * FROM information_schema.PARTITIONS WHERE TABLE_SCHEMA = :schema AND TABLE_NAME = :table")
# A partition's name follows after #P# (MySQL: #p#).
_INNODB: Final = (
    text("SELECT NAME, TABLE_ID FROM information_schema.INNODB_SYS_TABLES WHERE LEFT(NAME, CHAR_LENGTH(:name)) = :name"),
    text("SELECT NAME, TABLE_ID FROM information_schema.INNODB_TABLES WHERE LEFT(NAME, CHAR_LENGTH(:name)) = :name"),
)
_UNKNOWN_TABLE, _PRIVILEGE_NEEDED = 1109, 1227
# What tells servers apart without a privilege: server_uid is MariaDB's, server_uuid MySQL's. TiDB's ids are those of a cluster, whose
# datadir are the addresses of PD.
_SERVER: Final = text("SHOW VARIABLES WHERE Variable_name IN ('server_uid', 'server_uuid', 'hostname', 'port', 'datadir')")
_CLUSTER: Final = text("SHOW VARIABLES WHERE Variable_name = 'datadir'")


class Storage(NamedTuple):
    """Storage ids of a table (part ``''``) and its partitions, and the server or cluster that they are ids of."""

    server: str
    ids: dict[str, int]


class States:
    """Tables and schemas (table ``''``) as one description tells them. ``name in states``: it was there."""

    def __init__(self, states: dict[str, dict[str, Any] | None]) -> None:
        self._states = states

    def __contains__(self, name: TableName) -> bool:
        """Tell whether the table or schema was there."""
        return self._states.get(str(name.fold())) is not None

    def definition(self, name: TableName) -> str:
        """Return the text of SHOW CREATE TABLE of a table that was there."""
        return str(self._of(name)["create"])

    def body(self, name: TableName) -> str:
        """Return the definition without the table's name."""
        return self.definition(name).partition("\n")[2]

    def has_same_definitions(self, other: "States", names: Collection[TableName]) -> bool:
        """Tell whether the same tables are there, with the same definitions, as the same server words them."""
        is_there = [name for name in names if name in self]
        if is_there != [name for name in names if name in other]:
            return False
        return all(self.definition(name) == other.definition(name) for name in is_there if name.table)

    def is_view(self, name: TableName) -> bool:
        """Tell whether it was a view."""
        return "has_rows" not in self._of(name)

    def has_rows(self, name: TableName) -> bool:
        """Tell whether a table that was there held a row."""
        return bool(self._of(name).get("has_rows"))

    def storage(self, name: TableName) -> Storage | None:
        """Return the storage of a table that was there; None if the server did not tell it."""
        state = self._of(name)
        return Storage(state["server"], state["storage_ids"]) if state.get("server") is not None and state["storage_ids"] else None

    def places(self) -> dict[tuple[str, str], tuple[str, int]] | None:
        """Return server and storage id of each table (part ``''``) and partition; None if not all are known."""
        states = {name: state for name, state in self._states.items() if state is not None}
        if any(state.get("server") is None for state in states.values()):
            return None
        return {(name, part): (state["server"], number) for name, state in states.items() for part, number in state["storage_ids"].items()}

    def _of(self, name: TableName) -> dict[str, Any]:
        return self._states[str(name.fold())] or {}


def states_of(description: str) -> States:
    """Read what ``snapshot`` returned."""
    return States(json.loads(description))


def snapshot(connection: Connection, names: Collection[TableName]) -> str:
    """Describe the tables (and schemas: table ``''``) as JSON, for ``states_of``."""
    tables = spellings(connection, [name for name in names if name.table])
    states: dict[str, Any] = {}
    for name in names:
        if not name.table:
            states[str(name.fold())] = _schema(connection, name.schema)
        else:
            actual = tables.get(name.fold())
            states[str(name.fold())] = None if actual is None else _table(connection, actual)
    # In ASCII, because what is no text has become halves of surrogate pairs, which no column takes.
    return json.dumps(states, sort_keys=True)


def has_moved(were: States, now: States) -> bool | None:
    """Tell whether tables and partitions have changed places; None: the storage ids do not tell.

    They do not where they are not known on both sides, are those of another server, or of tables that were made anew.
    """
    before, present = were.places(), now.places()
    if before is None or present is None or sorted(before.values()) != sorted(present.values()):
        return None
    return before != present


def _schema(connection: Connection, schema: str) -> dict[str, Any] | None:
    actual = schema_spelling(connection, schema)
    if actual is None:
        return None
    character_set, collation = connection.execute(_SCHEMA, {"schema": actual}).one()
    return {"schema": actual, "character_set": character_set, "collation": collation}


def _table(connection: Connection, actual: TableName) -> dict[str, Any]:
    # A view's text leaves out the schema that the session is in: always the view's own, or another session would see another text.
    read_bytes(connection, "USE " + quote_identifier(actual.schema))
    ((_, definition, *of_view),) = read_bytes(connection, "SHOW CREATE TABLE " + quote_table(actual.schema, actual.table))
    looks = {"table": str(actual), "create": _COUNTERS.sub("", definition.decode("utf-8", "surrogateescape"))}
    if of_view:
        # Its character set and collation. The rows of a view are its tables'; one whose tables have changed cannot even be read.
        return looks
    ids, server = _storage(connection, actual)
    return looks | {"has_rows": holds_row(connection, actual), "storage_ids": ids, "server": server}


def _storage(connection: Connection, actual: TableName) -> tuple[dict[str, int] | None, str | None]:
    """Return the ids of the table ('') and of its partitions by name, and what they are ids of; None where the server does not tell."""
    place = {"schema": actual.schema, "table": actual.table}
    table = {name.upper(): value for name, value in connection.execute(_TABLE, place).mappings().one().items()}
    if table.get("TIDB_TABLE_ID") is None:
        innodb = _innodb_ids(connection, actual)
        return innodb, None if innodb is None else _variables(connection, _SERVER)
    ids = {"": int(table["TIDB_TABLE_ID"])}
    for row in connection.execute(_PARTITIONS, place).mappings():
        partition = {name.upper(): value for name, value in row.items()}
        if partition["PARTITION_NAME"] is not None and partition.get("TIDB_PARTITION_ID") is not None:
            ids[str(partition["PARTITION_NAME"]).casefold()] = int(partition["TIDB_PARTITION_ID"])
    return ids, _variables(connection, _CLUSTER)


def _variables(connection: Connection, query: TextClause) -> str:
    return json.dumps(sorted((str(name).casefold(), str(value)) for name, value in connection.execute(query)))


def _innodb_ids(connection: Connection, actual: TableName) -> dict[str, int] | None:
    prefix = f"{file_name(actual.schema)}/{file_name(actual.table)}"
    ids = {}
    for name, table_id in _innodb_tables(connection, prefix):
        rest = name[len(prefix) :].casefold()
        if name.startswith(prefix) and (not rest or rest.startswith("#p#")):
            ids[rest.removeprefix("#p#")] = int(table_id)
    return ids or None


def _innodb_tables(connection: Connection, prefix: str) -> list[tuple[str, int]]:
    for statement in _INNODB:
        try:
            return [(name, table_id) for name, table_id in connection.execute(statement, {"name": prefix})]
        except DBAPIError as error:
            code = error.orig.args[0] if error.orig is not None and error.orig.args else None
            if code == _PRIVILEGE_NEEDED:
                return []
            if code != _UNKNOWN_TABLE:
                raise
    return []
