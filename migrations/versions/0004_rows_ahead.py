"""Row consistency: up to where each stream's rows are written ahead of the checkpoint, and of which tables."""

from applier.sinks.bookkeeping.revision import add_column, column, drop_default, types

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add two columns: no row of an older replica is ahead."""
    added = (("stream", column("applied_ts", types().tso)), ("known_table", column("is_ahead", types().number)))
    for table, new in added:
        add_column(table, new, of_old_rows="0")
    for table, new in added:
        drop_default(table, new)
