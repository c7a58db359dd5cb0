"""What an operator asks of a replica that does not run: how its last run ended, whether it is paused, which dump it was loaded from."""

from applier.sinks.bookkeeping.revision import column, create_table, types

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add three tables with one row per replica at the most."""
    create_table(
        "run_end",
        column("name", types().text(64)),
        column("epoch", types().number),
        column("run_id", types().text(32)),
        column("command", types().text(255)),
        column("exit_code", types().number),
        column("error_class", types().text(255)),
        column("message", types().long_text),
        column("facts", types().long_text),
        column("remedy", types().long_text),
        column("ended_at", types().moment),
        key=("name",),
    )
    create_table(
        "pause", column("name", types().text(64)), column("said_by", types().text(255)), column("said_at", types().moment), key=("name",)
    )
    create_table(
        "loaded_dump",
        column("name", types().text(64)),
        column("start_ts", types().tso),
        column("directory", types().long_text),
        column("loader", types().text(255)),
        column("state", types().text(16)),
        column("loaded_by", types().text(255)),
        column("began_at", types().moment),
        column("ended_at", types().moment, nullable=True),
        key=("name",),
    )
