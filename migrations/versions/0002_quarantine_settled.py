"""The quarantine stores who settled an entry and when; the operator's skip rules have a table.

Like 0001, every step can be repeated after a death half-way: MySQL commits each of them implicitly.
"""

from typing import Any

import sqlalchemy as sa
from alembic import context, op
from sqlalchemy.dialects import mysql
from sqlalchemy.types import TypeEngine

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def text(length: int) -> TypeEngine[str]:
    """Return text that compares byte by byte."""
    return mysql.VARCHAR(length, charset="utf8mb4", collation="utf8mb4_bin").with_variant(sa.Text(), "sqlite")


def tso() -> TypeEngine[Any]:
    """Return an unsigned 64-bit timestamp of the upstream (see 0001 for SQLite)."""
    return mysql.BIGINT(unsigned=True).with_variant(sa.BLOB(), "sqlite")


def number() -> TypeEngine[int]:
    """Return a signed 64-bit number."""
    return mysql.BIGINT().with_variant(sa.BigInteger(), "sqlite")


def moment() -> TypeEngine[Any]:
    """Return a wall-clock time in UTC with microseconds, by the clock of the database."""
    return mysql.DATETIME(fsp=6).with_variant(sa.Text(), "sqlite")


def column(name: str, kind: TypeEngine[Any], *, nullable: bool = False) -> sa.Column[Any]:
    """Return a column without a default."""
    return sa.Column(name, kind, nullable=nullable, autoincrement=False)


def upgrade() -> None:
    """Add two columns and a table."""
    schema, prefix = context.config.attributes["place"]
    quarantine = f"{prefix}quarantine"
    present = {known["name"] for known in sa.inspect(op.get_bind()).get_columns(quarantine, schema=schema)}
    for added in (column("settled_at", moment(), nullable=True), column("settled_by", text(255), nullable=True)):
        if added.name not in present:
            op.add_column(quarantine, added, schema=schema)
    op.create_table(
        f"{prefix}skip_word",
        column("name", text(64)),
        column("topic", text(249)),
        column("partition_number", number()),
        column("record_offset", number()),
        column("event_index", number()),
        column("commit_ts", tso()),
        column("schema_name", text(192)),
        column("table_name", text(192)),
        column("said_by", text(255)),
        column("said_at", moment()),
        sa.PrimaryKeyConstraint(
            "name", "topic", "partition_number", "record_offset", "event_index", "commit_ts", "schema_name", "table_name"
        ),
        schema=schema,
        if_not_exists=True,
        mysql_engine="InnoDB",
        mysql_charset="utf8mb4",
        mysql_collate="utf8mb4_bin",
        mariadb_engine="InnoDB",
        mariadb_charset="utf8mb4",
        mariadb_collate="utf8mb4_bin",
    )
