"""The bookkeeping of DESIGN.md section 7: progress, owner, streams, known tables, ledger, quarantine."""

from applier.sinks.bookkeeping.revision import column, create_table, types

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

# Upstream identifiers have at most 64 characters; casefolding may triple that.
FOLDED_LENGTH = 192
TOPIC_LENGTH = 249


def upgrade() -> None:
    """Create the tables."""
    create_table(
        "progress",
        column("name", types().text(64)),
        column("epoch", types().number),
        column("window_id", types().number),
        column("checkpoint_ts", types().tso),
        column("start_ts", types().tso),
        column("updated_at", types().moment),
        key=("name",),
    )
    create_table(
        "owner",
        column("name", types().text(64)),
        column("epoch", types().number),
        column("run_id", types().text(32)),
        column("host", types().text(255)),
        column("process", types().number),
        column("started_at", types().moment),
        column("heartbeat_at", types().moment),
        key=("name",),
    )
    create_table(
        "owner_session",
        column("name", types().text(64)),
        column("token", types().text(64)),
        column("host", types().text(255)),
        column("process", types().number),
        column("opened_at", types().moment),
        key=("name", "token"),
    )
    create_table(
        "stream",
        column("name", types().text(64)),
        column("topic", types().text(TOPIC_LENGTH)),
        column("partition_number", types().number),
        column("topic_id", types().text(64)),
        column("next_offset", types().number),
        column("resolved_ts", types().tso),
        key=("name", "topic", "partition_number"),
    )
    create_table(
        "known_table",
        column("name", types().text(64)),
        column("schema_name", types().text(FOLDED_LENGTH)),
        column("table_name", types().text(FOLDED_LENGTH)),
        column("since_ts", types().tso),
        key=("name", "schema_name", "table_name"),
    )
    _ledger_and_quarantine()


def _ledger_and_quarantine() -> None:
    create_table(
        "ddl_ledger",
        column("name", types().text(64)),
        column("ddl_ts", types().tso),
        column("identity_hash", types().text(64)),
        column("schema_name", types().text(FOLDED_LENGTH)),
        column("table_name", types().text(FOLDED_LENGTH)),
        column("touches", types().long_text),
        column("ddl_type", types().number),
        column("query", types().long_text),
        column("state", types().text(16)),
        column("before_state", types().long_text),
        column("began_at", types().moment),
        column("ended_at", types().moment, nullable=True),
        column("error", types().long_text),
        key=("name", "ddl_ts", "identity_hash"),
    )
    create_table(
        "quarantine",
        column("name", types().text(64)),
        column("topic", types().text(TOPIC_LENGTH)),
        column("partition_number", types().number),
        column("record_offset", types().number),
        column("event_index", types().number),
        column("piece", types().number),
        column("schema_name", types().text(FOLDED_LENGTH)),
        column("table_name", types().text(FOLDED_LENGTH)),
        column("handle_key", types().long_text),
        column("commit_ts", types().tso),
        column("record", types().content),
        column("error", types().long_text),
        column("state", types().text(16)),
        column("found_at", types().moment),
        key=("name", "topic", "partition_number", "record_offset", "event_index", "piece"),
    )
