"""Where the sink has upstream's tables: a table that joins the filter, or another table under its name, is noticed after a restart too."""

from applier.sinks.bookkeeping.revision import column, create_table, types

revision = "0006"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add a table."""
    create_table(
        "table_location",
        column("name", types().text(64)),
        column("upstream_schema", types().text(192)),
        column("upstream_table", types().text(192)),
        column("schema_name", types().text(192)),
        column("table_name", types().text(192)),
        column("since_ts", types().tso),
        key=("name", "upstream_schema", "upstream_table"),
    )
