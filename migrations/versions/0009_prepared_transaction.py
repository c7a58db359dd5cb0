"""The rows of XA transactions that a source has prepared and not committed: upstream may purge the file that holds them."""

from applier.sinks.bookkeeping.revision import column, create_table, types

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the table, empty: what was prepared before is read from upstream's log, as until now."""
    create_table(
        "prepared_transaction",
        column("name", types().text(64)),
        column("place", types().tso),
        column("piece", types().number),
        column("content", types().content),
        key=("name", "place", "piece"),
    )
