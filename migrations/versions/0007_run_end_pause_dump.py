"""What an operator asks of a replica that does not run: how its last run ended, whether it is paused, which dump it was loaded from.

Like 0001, it can be repeated after a death half-way: MySQL commits each step implicitly.
"""

from typing import Any

import sqlalchemy as sa
from alembic import context, op
from sqlalchemy.dialects import mysql
from sqlalchemy.types import TypeEngine

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

BINARY = {"charset": "utf8mb4", "collation": "utf8mb4_bin"}
NAME = mysql.VARCHAR(64, **BINARY).with_variant(sa.Text(), "sqlite")
SHORT = mysql.VARCHAR(255, **BINARY).with_variant(sa.Text(), "sqlite")
LONG = mysql.LONGTEXT(**BINARY).with_variant(sa.Text(), "sqlite")
NUMBER = mysql.BIGINT().with_variant(sa.BigInteger(), "sqlite")
TSO = mysql.BIGINT(unsigned=True).with_variant(sa.BLOB(), "sqlite")  # see 0001 for SQLite
MOMENT = mysql.DATETIME(fsp=6).with_variant(sa.Text(), "sqlite")

TABLES: dict[str, dict[str, TypeEngine[Any]]] = {
    "run_end": {
        "epoch": NUMBER,
        "run_id": mysql.VARCHAR(32, **BINARY).with_variant(sa.Text(), "sqlite"),
        "command": SHORT,
        "exit_code": NUMBER,
        "error_class": SHORT,
        "message": LONG,
        "facts": LONG,
        "remedy": LONG,
        "ended_at": MOMENT,
    },
    "pause": {"said_by": SHORT, "said_at": MOMENT},
    "loaded_dump": {
        "start_ts": TSO,
        "directory": LONG,
        "loader": SHORT,
        "state": mysql.VARCHAR(16, **BINARY).with_variant(sa.Text(), "sqlite"),
        "loaded_by": SHORT,
        "began_at": MOMENT,
        "ended_at": MOMENT,
    },
}
NULLABLE = {("loaded_dump", "ended_at")}
OPTIONS = (("engine", "InnoDB"), ("charset", "utf8mb4"), ("collate", "utf8mb4_bin"))


def upgrade() -> None:
    """Add three tables with one row per replica at the most."""
    schema, prefix = context.config.attributes["place"]
    options = {f"{server}_{option}": value for server in ("mysql", "mariadb") for option, value in OPTIONS}
    for table, columns in TABLES.items():
        op.create_table(
            f"{prefix}{table}",
            sa.Column("name", NAME, nullable=False),
            *(sa.Column(name, kind, nullable=(table, name) in NULLABLE, autoincrement=False) for name, kind in columns.items()),
            sa.PrimaryKeyConstraint("name"),
            schema=schema,
            if_not_exists=True,
            **options,
        )
