"""The rows of XA transactions that a source has prepared and not committed: upstream may purge the file that holds them.

Like 0001, it can be repeated after a death half-way: MySQL commits each step implicitly.
"""

import sqlalchemy as sa
from alembic import context, op
from sqlalchemy.dialects import mysql

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

NAME = mysql.VARCHAR(64, charset="utf8mb4", collation="utf8mb4_bin").with_variant(sa.Text(), "sqlite")
NUMBER = mysql.BIGINT().with_variant(sa.BigInteger(), "sqlite")
PLACE = mysql.BIGINT(unsigned=True).with_variant(sa.BLOB(), "sqlite")  # see 0001 for SQLite
BYTES = mysql.LONGBLOB().with_variant(sa.BLOB(), "sqlite")
OPTIONS = (("engine", "InnoDB"), ("charset", "utf8mb4"), ("collate", "utf8mb4_bin"))


def upgrade() -> None:
    """Add the table, empty: what was prepared before is read from upstream's log, as until now."""
    schema, prefix = context.config.attributes["place"]
    op.create_table(
        f"{prefix}prepared_transaction",
        sa.Column("name", NAME, nullable=False),
        sa.Column("place", PLACE, nullable=False, autoincrement=False),
        sa.Column("piece", NUMBER, nullable=False, autoincrement=False),
        sa.Column("content", BYTES, nullable=False),
        sa.PrimaryKeyConstraint("name", "place", "piece"),
        schema=schema,
        if_not_exists=True,
        **{f"{server}_{option}": value for server in ("mysql", "mariadb") for option, value in OPTIONS},
    )
