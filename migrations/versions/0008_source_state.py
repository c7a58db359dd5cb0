"""A source that is not Kafka: where it stands, as it says itself; and of a DDL its time and the session that it needs."""

import sqlalchemy as sa
from alembic import op

from applier.sinks.bookkeeping.revision import add_column, bookkeeping, column, types

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add three columns, NULL for a replica that follows Kafka."""
    add_column("progress", column("source_state", types().long_text, nullable=True))
    add_column("ddl_ledger", column("time_ms", types().number, nullable=True))
    add_column("ddl_ledger", column("session", types().long_text, nullable=True))
    # Of statements that have not ended, which run again: until now a timestamp was TiDB's, with milliseconds above its 18 lowest bits.
    schema, prefix = bookkeeping().address
    ledger = sa.table(f"{prefix}ddl_ledger", *map(sa.column, ("ddl_ts", "state", "time_ms")), schema=schema)
    began = ledger.c.state.in_(("intent", "background")), ledger.c.time_ms.is_(None)
    op.execute(sa.update(ledger).values(time_ms=sa.cast(ledger.c.ddl_ts, sa.BigInteger).op(">>")(18)).where(*began))
