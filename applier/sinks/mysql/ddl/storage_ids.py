"""Storage ids of tables and partitions: they alone show an EXCHANGE PARTITION, or a RENAME between tables that look alike.

They are TiDB's table and partition ids, or InnoDB's, which need the PROCESS privilege (None without it). Ids change without a DDL too: by
a GRANT, a restored dump, or a failover to another server. So they count only together with the server or cluster that gave them.
"""

import json
from typing import Final, NamedTuple

from sqlalchemy import Connection, TextClause, text
from sqlalchemy.exc import DBAPIError

from applier.model.events import TableName
from applier.mysql.information_schema import PARTITIONS, TABLES, read_view
from applier.mysql.session_variables import asked_once
from applier.sinks.mysql.ddl.file_name import file_name

# A partition's name follows after #P# (MySQL: #p#).
_INNODB_TABLES: Final = (
    text("SELECT NAME, TABLE_ID FROM information_schema.INNODB_SYS_TABLES WHERE LEFT(NAME, CHAR_LENGTH(:name)) = :name"),
    text("SELECT NAME, TABLE_ID FROM information_schema.INNODB_TABLES WHERE LEFT(NAME, CHAR_LENGTH(:name)) = :name"),
)
_UNKNOWN_TABLE, _PRIVILEGE_NEEDED = 1109, 1227
# These identify servers without a privilege: server_uid is MariaDB's, server_uuid MySQL's. TiDB's ids are those of a cluster; its datadir
# holds the addresses of PD.
_SERVER: Final = text("SHOW VARIABLES WHERE Variable_name IN ('server_uid', 'server_uuid', 'hostname', 'port', 'datadir')")
_CLUSTER: Final = text("SHOW VARIABLES WHERE Variable_name = 'datadir'")


class Storage(NamedTuple):
    """Storage ids of a table (key ``''``) and its partitions (key: name), and the server or cluster that gave them."""

    ids: dict[str, int]
    server: str


def read_storage(connection: Connection, actual: TableName) -> Storage | None:
    """Read the ids of a table that exists; None if the server does not show them."""
    (table,) = read_view(connection, TABLES, [actual])[actual]
    # Looked for in the row, not derived from a version: TiDB says "8.0.11-TiDB-…" under a name that a setting changes.
    if table.get("TIDB_TABLE_ID") is None:
        innodb = _innodb_ids(connection, actual)
        return None if innodb is None else Storage(innodb, asked_once(connection, "server", lambda: _variables(connection, _SERVER)))
    ids = {"": int(table["TIDB_TABLE_ID"])}
    for partition in read_view(connection, PARTITIONS, [actual])[actual]:
        if partition["PARTITION_NAME"] is not None and partition.get("TIDB_PARTITION_ID") is not None:
            ids[str(partition["PARTITION_NAME"]).casefold()] = int(partition["TIDB_PARTITION_ID"])
    return Storage(ids, _variables(connection, _CLUSTER))


def _variables(connection: Connection, query: TextClause) -> str:
    return json.dumps(sorted((str(name).casefold(), str(value)) for name, value in connection.execute(query)))


def _innodb_ids(connection: Connection, actual: TableName) -> dict[str, int] | None:
    # InnoDB keeps file names, not identifiers: my-table is my@002dtable.
    prefix = f"{file_name(actual.schema)}/{file_name(actual.table)}"
    ids = {}
    for name, table_id in _innodb_tables(connection, prefix):
        rest = name[len(prefix) :].casefold()
        if name.startswith(prefix) and (not rest or rest.startswith("#p#")):
            ids[rest.removeprefix("#p#")] = int(table_id)
    return ids or None


def _innodb_tables(connection: Connection, prefix: str) -> list[tuple[str, int]]:
    # MariaDB has the first view, MySQL the second; 1109 says that a server does not have it.
    for statement in _INNODB_TABLES:
        try:
            return [(name, table_id) for name, table_id in connection.execute(statement, {"name": prefix})]
        except DBAPIError as error:
            code = error.orig.args[0] if error.orig is not None and error.orig.args else None
            if code == _PRIVILEGE_NEEDED:
                return []
            if code != _UNKNOWN_TABLE:
                raise
    return []
