"""The quarantine stores who settled an entry and when; the operator's skip rules have a table."""

from applier.sinks.bookkeeping.revision import add_column, column, create_table, types

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add two columns and a table."""
    add_column("quarantine", column("settled_at", types().moment, nullable=True))
    add_column("quarantine", column("settled_by", types().text(255), nullable=True))
    create_table(
        "skip_word",
        column("name", types().text(64)),
        column("topic", types().text(249)),
        column("partition_number", types().number),
        column("record_offset", types().number),
        column("event_index", types().number),
        column("commit_ts", types().tso),
        column("schema_name", types().text(192)),
        column("table_name", types().text(192)),
        column("said_by", types().text(255)),
        column("said_at", types().moment),
        key=("name", "topic", "partition_number", "record_offset", "event_index", "commit_ts", "schema_name", "table_name"),
    )
