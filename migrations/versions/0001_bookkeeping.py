"""The bookkeeping of DESIGN.md section 7: progress, owner, streams, known tables, ledger, quarantine.

MySQL commits each DDL implicitly, so a migration that died half-way is repeated: every step is ``IF NOT EXISTS``.

Timestamps of the upstream are unsigned 64 bit. SQLite has no such type, and its INTEGER affinity turns larger numbers into
floating point, so there the columns have no affinity (declared BLOB): integers up to 2^63-1, decimal text above. TSOs pass
2^63 in the year 3084.
"""

from typing import Any

import sqlalchemy as sa
from alembic import context, op
from sqlalchemy.dialects import mysql
from sqlalchemy.types import TypeEngine

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

# Upstream identifiers have at most 64 characters; casefolding may triple that.
FOLDED_LENGTH = 192
TOPIC_LENGTH = 249


def text(length: int) -> TypeEngine[str]:
    """Return text that compares byte by byte: two spellings are two names."""
    return mysql.VARCHAR(length, charset="utf8mb4", collation="utf8mb4_bin").with_variant(sa.Text(), "sqlite")


def long_text() -> TypeEngine[str]:
    """Return text without a limit that matters."""
    return mysql.LONGTEXT(charset="utf8mb4", collation="utf8mb4_bin").with_variant(sa.Text(), "sqlite")


def tso() -> TypeEngine[Any]:
    """Return an unsigned 64-bit timestamp of the upstream."""
    return mysql.BIGINT(unsigned=True).with_variant(sa.BLOB(), "sqlite")


def number() -> TypeEngine[int]:
    """Return a signed 64-bit number."""
    return mysql.BIGINT().with_variant(sa.BigInteger(), "sqlite")


def moment() -> TypeEngine[Any]:
    """Return a wall-clock time in UTC with microseconds, by the clock of the database."""
    return mysql.DATETIME(fsp=6).with_variant(sa.Text(), "sqlite")


def table(name: str, *columns: sa.Column[Any], key: tuple[str, ...]) -> None:
    """Create one bookkeeping table under the name that the database's dialect has for it."""
    place = context.config.attributes["place"]
    op.create_table(
        f"{place.prefix}{name}",
        *columns,
        sa.PrimaryKeyConstraint(*key),
        schema=place.schema,
        if_not_exists=True,
        mysql_engine="InnoDB",
        mysql_charset="utf8mb4",
        mysql_collate="utf8mb4_bin",
        mariadb_engine="InnoDB",
        mariadb_charset="utf8mb4",
        mariadb_collate="utf8mb4_bin",
    )


def column(name: str, kind: TypeEngine[Any], *, nullable: bool = False) -> sa.Column[Any]:
    """Return a column without a default: the statements name every column."""
    return sa.Column(name, kind, nullable=nullable, autoincrement=False)


def upgrade() -> None:
    """Create the tables."""
    table(
        "progress",
        column("name", text(64)),
        column("epoch", number()),
        column("window_id", number()),
        column("checkpoint_ts", tso()),
        column("start_ts", tso()),
        column("updated_at", moment()),
        key=("name",),
    )
    table(
        "owner",
        column("name", text(64)),
        column("epoch", number()),
        column("run_id", text(32)),
        column("host", text(255)),
        column("process", number()),
        column("started_at", moment()),
        column("heartbeat_at", moment()),
        key=("name",),
    )
    table(
        "owner_session",
        column("name", text(64)),
        column("token", text(64)),
        column("host", text(255)),
        column("process", number()),
        column("opened_at", moment()),
        key=("name", "token"),
    )
    table(
        "stream",
        column("name", text(64)),
        column("topic", text(TOPIC_LENGTH)),
        column("partition_number", number()),
        column("topic_id", text(64)),
        column("next_offset", number()),
        column("resolved_ts", tso()),
        key=("name", "topic", "partition_number"),
    )
    table(
        "known_table",
        column("name", text(64)),
        column("schema_name", text(FOLDED_LENGTH)),
        column("table_name", text(FOLDED_LENGTH)),
        column("since_ts", tso()),
        key=("name", "schema_name", "table_name"),
    )
    _ledger_and_quarantine()


def _ledger_and_quarantine() -> None:
    table(
        "ddl_ledger",
        column("name", text(64)),
        column("ddl_ts", tso()),
        column("identity_hash", text(64)),
        column("schema_name", text(FOLDED_LENGTH)),
        column("table_name", text(FOLDED_LENGTH)),
        column("touches", long_text()),
        column("ddl_type", number()),
        column("query", long_text()),
        column("state", text(16)),
        column("before_state", long_text()),
        column("began_at", moment()),
        column("ended_at", moment(), nullable=True),
        column("error", long_text()),
        key=("name", "ddl_ts", "identity_hash"),
    )
    table(
        "quarantine",
        column("name", text(64)),
        column("topic", text(TOPIC_LENGTH)),
        column("partition_number", number()),
        column("record_offset", number()),
        column("event_index", number()),
        column("piece", number()),
        column("schema_name", text(FOLDED_LENGTH)),
        column("table_name", text(FOLDED_LENGTH)),
        column("handle_key", long_text()),
        column("commit_ts", tso()),
        column("record", mysql.LONGBLOB().with_variant(sa.BLOB(), "sqlite")),
        column("error", long_text()),
        column("state", text(16)),
        column("found_at", moment()),
        key=("name", "topic", "partition_number", "record_offset", "event_index", "piece"),
    )
