"""Finds out whether a column that only rows have is added by a DDL behind them.

A changefeed that restarts while upstream adds a column sends rows that carry it before its DDL (pingcap/tiflow issue 12760). Nobody can
have written to a column that is not public: its value is the one that the DDL gives to all rows, so the early one may be dropped.
"""

from collections.abc import Iterable

from applier.coordinator import Coordinator
from applier.ddl.postcondition import added_columns
from applier.model.errors import FatalSinkError
from applier.model.events import DdlEvent, FoldedName
from applier.model.range_report import RangeId
from applier.planner.column_match import LACKS_COLUMN
from applier.sources.peek import read_whole
from applier.sources.port import Source


def early_column(error: Exception, names: Iterable[FoldedName], coordinator: Coordinator, source: Source) -> tuple[FoldedName, str] | None:
    """Return table and column that an error is about, if a DDL behind the rows adds it; else None. ``names``: the tables of the rows.

    The DDLs that were read are known. Where none of them does, the rest of the topics is read, once: such a failure would end the run.
    """
    if not isinstance(error, FatalSinkError) or error.message != LACKS_COLUMN:
        return None
    table, column = str(error.facts.get("table", "")).casefold(), str(error.facts.get("column", "")).casefold()
    found = next((name for name in names if str(name) == table), None)
    # Every DDL that is not settled lies behind the rows: a segment ends at the first one.
    if found is not None and any(_adds(ddl, found, column) for ddl in (*coordinator.pending_ddls, *_unread_ddls(coordinator, source))):
        return found, column
    return None


def _adds(ddl: DdlEvent, table: FoldedName, column: str) -> bool:
    return ddl.name.fold() == table and column in added_columns(ddl.query)


def _unread_ddls(coordinator: Coordinator, source: Source) -> Iterable[DdlEvent]:
    streams = [status for status in coordinator.streams if status.read_offset < status.end_offset and not status.is_promised_by_reading]
    placers = {status.stream: source.decoder.placer(status.stream) for status in streams}
    ranges = [RangeId(status.stream, status.read_offset, status.end_offset) for status in streams]
    for range_id, records in read_whole(source.reader, ranges):
        for record in records:
            for _, event in placers[range_id.stream].place_each(*record):
                if isinstance(event, DdlEvent):
                    yield event
