"""Indexes: what waits for the operator is found without reading the whole ledger or quarantine, and a run finds what it may meet again.

Like 0001, every step can be repeated after a death half-way: MySQL commits each of them implicitly, and knows no IF NOT EXISTS here.
"""

import sqlalchemy as sa
from alembic import context, op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

INDEXES = (
    ("ddl_ledger", "state", ("name", "state")),
    ("quarantine", "state", ("name", "state", "piece")),
    ("quarantine", "place", ("name", "piece", "topic", "partition_number", "record_offset")),
)


def upgrade() -> None:
    """Add the indexes that are not there."""
    place = context.config.attributes["place"]
    for table, purpose, columns in INDEXES:
        name, indexed = f"{place.prefix}{table}_{purpose}", f"{place.prefix}{table}"
        present = {index["name"] for index in sa.inspect(op.get_bind()).get_indexes(indexed, schema=place.schema)}
        if name not in present:
            op.create_index(name, indexed, list(columns), schema=place.schema)
