"""Indexes: what waits for the operator is found without reading the whole ledger or quarantine, and a run finds what it may meet again."""

from applier.sinks.bookkeeping.revision import create_index

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the indexes."""
    create_index("ddl_ledger", "state", ("name", "state"))
    create_index("quarantine", "state", ("name", "state", "piece"))
    create_index("quarantine", "place", ("name", "piece", "topic", "partition_number", "record_offset"))
