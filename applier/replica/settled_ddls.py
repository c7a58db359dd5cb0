"""What a run loads of the ledger: the identities at and above the checkpoint, and those of older DDLs when they are replayed.

The ledger is never pruned, and a replay may bring any of its DDLs at any time. Loaded whole it would hold years of DDLs in memory, so the
run asks about an old one when it arrives: one query per set of reports, however many DDLs they hold.
"""

from collections.abc import Sequence

from applier.coordinator import Coordinator
from applier.coordinator.starting_point import StartingPoint
from applier.model.range_report import RangeReport
from applier.sinks.ledger_entry import DdlState
from applier.sinks.port import Sink
from applier.sinks.progress import Progress


def starting_point(sink: Sink, progress: Progress) -> StartingPoint:
    """Return the durable state from which a coordinator begins."""
    # Intents are not settled yet, so they are no reason to drop the DDL when it comes again. What runs beside the rows is.
    settled = [key for key in sink.ledger_since(progress.checkpoint_ts) if key.state is not DdlState.INTENT]
    # Rows at A of tables that a DDL at A has touched are not applied again: their table is another one now (DESIGN.md 3, Rows).
    at_checkpoint = [
        key.identity.touches for key in settled if key.identity.ts == progress.checkpoint_ts and key.state is not DdlState.SKIPPED
    ]
    return StartingPoint(
        checkpoint_ts=progress.checkpoint_ts,
        start_ts=progress.start_ts,
        positions=progress.positions,
        settled=frozenset(key.identity for key in settled),
        ahead_tables=progress.ahead_tables,
        ddl_touched_at_checkpoint=None if None in at_checkpoint else frozenset().union(*[t for t in at_checkpoint if t is not None]),
    )


def report_settled(sink: Sink, coordinator: Coordinator, reports: Sequence[RangeReport]) -> None:
    """Report to the coordinator which old DDLs of ``reports`` the ledger has settled. Comes before the reports themselves."""
    times = coordinator.ddls_to_ask(reports)
    if times:
        coordinator.add_settled(key.identity for key in sink.ledger_at(times) if key.state is not DdlState.INTENT)
