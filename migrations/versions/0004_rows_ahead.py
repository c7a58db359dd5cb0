"""Row consistency: up to where each stream's rows are written ahead of the checkpoint, and of which tables.

Like 0001, every step can be repeated after a death half-way: MySQL commits each of them implicitly.
"""

from typing import Any

import sqlalchemy as sa
from alembic import context, op
from sqlalchemy.dialects import mysql
from sqlalchemy.types import TypeEngine

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def tso() -> TypeEngine[Any]:
    """Return an unsigned 64-bit timestamp of the upstream (see 0001 for SQLite)."""
    return mysql.BIGINT(unsigned=True).with_variant(sa.BLOB(), "sqlite")


def number() -> TypeEngine[int]:
    """Return a signed 64-bit number."""
    return mysql.BIGINT().with_variant(sa.BigInteger(), "sqlite")


ADDED = (("stream", "applied_ts", tso()), ("known_table", "is_ahead", number()))


def upgrade() -> None:
    """Add two columns: no row of an older replica is ahead."""
    schema, prefix = context.config.attributes["place"]
    for table, name, kind in ADDED:
        whole = f"{prefix}{table}"
        present = {column["name"] for column in sa.inspect(op.get_bind()).get_columns(whole, schema=schema)}
        if name in present:
            continue
        # With a default for the rows that are there. SQLite can only keep it; elsewhere it goes, since each write states its value.
        op.add_column(whole, sa.Column(name, kind, nullable=False, server_default=sa.text("0")), schema=schema)
    if op.get_bind().dialect.name != "sqlite":
        for table, name, kind in ADDED:
            op.alter_column(f"{prefix}{table}", name, existing_type=kind, existing_nullable=False, server_default=None, schema=schema)
