"""Refuses a DDL that would change other rows in the sink than upstream, because PARTITION BY KEY places rows differently.

TiDB takes a CRC-32 of the key, MySQL and MariaDB their own hash. So p0 of the two holds different rows. That matters to TRUNCATE and
EXCHANGE PARTITION only; HASH, RANGE and LIST mean the same everywhere.

MySQL and MariaDB place rows alike (tested on MySQL 9.7 and MariaDB 10.11 with numbers, texts, bytes and times), unless a text has a
collation that only one of them has.
"""

from typing import Final

from sqlalchemy import Connection, text

from applier.ddl import DdlKind, parse_ddl
from applier.ddl.parser import parse
from applier.ddl.table_draft import emptied_partitions
from applier.ddl.tree import AlterTableStatement
from applier.model.errors import NeedsOperator
from applier.model.events import DdlEvent, TableName
from applier.model.remedy import Remedy
from applier.mysql.information_schema import PARTITIONS, read_view
from applier.mysql.names import spellings

_OWN_COLLATIONS: Final = text(
    "SELECT COUNT(*) FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = :schema AND TABLE_NAME = :table"
    " AND COLLATION_NAME LIKE '%uca1400%'"
)
"""MariaDB's, which stand for MySQL's utf8mb4_0900 collations too."""
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
    return bool(connection.execute(_OWN_COLLATIONS, {"schema": table.schema, "table": table.table}).scalar_one())


def _emptied(query: str) -> list[str] | None:
    tree = parse(query)
    return emptied_partitions(tree, tree.node) if isinstance(tree.node, AlterTableStatement) else None
