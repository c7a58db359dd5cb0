"""A source that is not Kafka: where it stands, as it says itself; and of a DDL its time and the session that it needs.

Like 0001, every step can be repeated after a death half-way: MySQL commits each of them implicitly.
"""

import sqlalchemy as sa
from alembic import context, op
from sqlalchemy.dialects import mysql

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

LONG = mysql.LONGTEXT(charset="utf8mb4", collation="utf8mb4_bin").with_variant(sa.Text(), "sqlite")
NUMBER = mysql.BIGINT().with_variant(sa.BigInteger(), "sqlite")

ADDED = (("progress", "source_state", LONG), ("ddl_ledger", "time_ms", NUMBER), ("ddl_ledger", "session", LONG))


def upgrade() -> None:
    """Add three columns, NULL for a replica that follows Kafka."""
    schema, prefix = context.config.attributes["place"]
    for table, name, kind in ADDED:
        whole = f"{prefix}{table}"
        present = {column["name"] for column in sa.inspect(op.get_bind()).get_columns(whole, schema=schema)}
        if name not in present:
            op.add_column(whole, sa.Column(name, kind, nullable=True), schema=schema)
    # Of statements that have not ended, which run again: until now a timestamp was TiDB's, with milliseconds above its 18 lowest bits.
    ledger = sa.table(f"{prefix}ddl_ledger", *map(sa.column, ("ddl_ts", "state", "time_ms")), schema=schema)
    began = ledger.c.state.in_(("intent", "background")), ledger.c.time_ms.is_(None)
    op.execute(sa.update(ledger).values(time_ms=sa.cast(ledger.c.ddl_ts, sa.BigInteger).op(">>")(18)).where(*began))
