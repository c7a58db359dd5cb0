"""Refuses a DDL that would change other rows in the sink than upstream, because PARTITION BY KEY places rows differently.

TiDB takes a CRC-32 of the key, MySQL and MariaDB their own hash. So p0 of the two holds different rows. That matters to TRUNCATE and
EXCHANGE PARTITION only; HASH, RANGE and LIST mean the same everywhere.
"""

from typing import Final

from sqlalchemy import Connection

from applier.ddl import DdlKind, parse_ddl
from applier.ddl.parser import parse
from applier.ddl.tree import AlterTableStatement
from applier.model.errors import NeedsOperator
from applier.model.events import DdlEvent
from applier.sinks.mysql.information_schema import PARTITIONS, read_view
from applier.sinks.mysql.names import spellings

_OWN_HASHES: Final = frozenset({"KEY", "LINEAR KEY", "LINEAR HASH"})


def refuse_other_rows(connection: Connection, ddl: DdlEvent) -> None:
    """Raise NeedsOperator if the DDL empties or exchanges a partition that holds other rows here than upstream."""
    statement = parse_ddl(ddl)
    if statement is None or not statement.needs:
        return
    # DROP PARTITION needs no check: TiDB has it for RANGE and LIST only.
    is_exchange = statement.kind is DdlKind.EXCHANGE_PARTITION
    if not is_exchange and not (statement.kind is DdlKind.ALTER_TABLE and _truncates(ddl.query)):
        return
    actual = spellings(connection, statement.needs[:1]).get(statement.needs[0].fold())
    if actual is None:
        return
    partitions = read_view(connection, PARTITIONS, [actual])[actual]
    # TiDB as a sink places rows as upstream does: TIDB_PARTITION_ID shows that the sink is one.
    if any(row["PARTITION_METHOD"] in _OWN_HASHES and row.get("TIDB_PARTITION_ID") is None for row in partitions):
        raise NeedsOperator(
            "the sink's partitions of this table hold other rows than upstream's, so the DDL would change the wrong rows",
            remedy="Make the table's rows equal to upstream's by hand, then skip the DDL with `applier ddl skip --ts … --table …`",
            table=str(ddl.name),
            commit_ts=ddl.commit_ts,
            query=ddl.query,
        )


def _truncates(query: str) -> bool:
    tree = parse(query)
    clauses = tree.node.clauses if isinstance(tree.node, AlterTableStatement) else ()
    return any([token.keyword for token in tree.tokens[clause.span[0] :][:2]] == ["TRUNCATE", "PARTITION"] for clause in clauses)
