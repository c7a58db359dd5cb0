"""The table of the operator's skip rules has their name."""

from applier.sinks.bookkeeping.revision import rename_table

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Rename the table; its rows stay."""
    rename_table("skip_word", "skip_rule")
