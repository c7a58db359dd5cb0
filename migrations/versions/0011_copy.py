"""The initial copy of upstream: how far it is, which tables it copies, and its chunks."""

from applier.sinks.bookkeeping.revision import column, create_table, types

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the tables, empty: replicas that are there began with a dump, or with nothing."""
    text, long_text, tso, number, moment = types().text, types().long_text, types().tso, types().number, types().moment
    create_table(
        "copy",
        column("name", text(64)),
        column("epoch", number),
        column("attempt", number),
        column("state", text(16)),
        column("start_ts", tso),
        column("upto_ts", tso),
        column("left_out", long_text),
        column("began_at", moment),
        column("read_at", moment, nullable=True),
        key=("name",),
    )
    create_table(
        "copy_table",
        column("name", text(64)),
        column("schema_name", text(192)),
        column("table_name", text(192)),
        column("sink_schema", text(192)),
        column("sink_table", text(192)),
        column("digest", text(64)),
        column("row_estimate", number),
        column("size_estimate", number),
        key=("name", "schema_name", "table_name"),
    )
    create_table(
        "copy_chunk",
        column("name", text(64)),
        column("schema_name", text(192)),
        column("table_name", text(192)),
        column("chunk", number),
        column("lower_key", long_text, nullable=True),
        column("upper_key", long_text, nullable=True),
        column("row_count", number, nullable=True),
        column("size_bytes", number, nullable=True),
        column("high_ts", tso, nullable=True),
        column("done_at", moment, nullable=True),
        key=("name", "schema_name", "table_name", "chunk"),
    )
