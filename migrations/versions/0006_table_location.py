"""Where the sink has upstream's tables: a table that joins the filter, or another table under its name, is noticed after a restart too.

Like 0001, it can be repeated after a death half-way: MySQL commits each step implicitly.
"""

from typing import Any

import sqlalchemy as sa
from alembic import context, op
from sqlalchemy.dialects import mysql
from sqlalchemy.types import TypeEngine

revision = "0006"
down_revision = "0004"
branch_labels = None
depends_on = None


def text(length: int) -> TypeEngine[str]:
    """Return text that compares byte by byte."""
    return mysql.VARCHAR(length, charset="utf8mb4", collation="utf8mb4_bin").with_variant(sa.Text(), "sqlite")


def tso() -> TypeEngine[Any]:
    """Return an unsigned 64-bit timestamp of the upstream (see 0001 for SQLite)."""
    return mysql.BIGINT(unsigned=True).with_variant(sa.BLOB(), "sqlite")


def column(name: str, kind: TypeEngine[Any]) -> sa.Column[Any]:
    """Return a column without a default."""
    return sa.Column(name, kind, nullable=False, autoincrement=False)


def upgrade() -> None:
    """Add a table."""
    schema, prefix = context.config.attributes["place"]
    op.create_table(
        f"{prefix}table_location",
        column("name", text(64)),
        column("upstream_schema", text(192)),
        column("upstream_table", text(192)),
        column("schema_name", text(192)),
        column("table_name", text(192)),
        column("since_ts", tso()),
        sa.PrimaryKeyConstraint("name", "upstream_schema", "upstream_table"),
        schema=schema,
        if_not_exists=True,
        mysql_engine="InnoDB",
        mysql_charset="utf8mb4",
        mysql_collate="utf8mb4_bin",
        mariadb_engine="InnoDB",
        mariadb_charset="utf8mb4",
        mariadb_collate="utf8mb4_bin",
    )
