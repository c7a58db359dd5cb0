"""Tables that upstream has at a position and the sink lacks there: their CREATE is before the position, so no event brings them.

Upstream is asked for its tables of a position (``TableLister``), never for its present tables: tables are created and dropped.
Where upstream cannot tell, nothing is judged.
"""

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Final

from applier.ddl import DdlKind, parse_ddl
from applier.model.errors import ApplierError, NeedsOperator, Remedy
from applier.model.events import DdlEvent, FoldedName, TableName
from applier.model.position import Ts
from applier.planner.table_check import ListedTables, TableLister
from applier.selection import LEFT_OUT
from applier.sinks.port import Sink
from applier.telemetry.wording import count, named_some

FIRST_S: Final = 2.0
"""How soon upstream is asked again if it could not tell; each time doubled."""
MOST_S: Final = 300.0
CREATE_OR_LOAD: Final = Remedy(
    "replica.create-missing-tables",
    "If a table is empty upstream, create it in the sink as upstream has it (SHOW CREATE TABLE), and start again. If the replica does not "
    "need it, exclude it with source.tables. Otherwise create the replica again from a dump that has it (`applier docs start_over`)",
)


class MissingTables:
    """Looks for them once in a run, as soon as upstream can tell. Not thread-safe."""

    def __init__(self, sink: Sink, lister: TableLister | None, *, clock: Callable[[], float] = time.monotonic) -> None:
        """``lister``: what lists upstream's tables; None: no one can."""
        self._sink, self._lister, self._clock = sink, lister, clock
        self._wait_s, self._due_s = FIRST_S, clock() + FIRST_S

    def check_if_due(self, checkpoint_ts: Ts) -> None:
        """Check if it is time. NeedsOperator."""
        if self._lister is not None and self._clock() >= self._due_s:
            self.check(checkpoint_ts)

    def check(self, checkpoint_ts: Ts) -> None:
        """Check unless that is done. NeedsOperator names the tables."""
        if self._lister is None:
            return
        missing = missing_at(self._sink, _Quiet(self._lister), checkpoint_ts)
        if missing is None:
            self._wait_s = min(MOST_S, 2 * self._wait_s)
            self._due_s = self._clock() + self._wait_s
            return
        if missing:
            raise refuse_missing(missing, checkpoint_ts)
        self._lister = None


@dataclass(frozen=True, slots=True)
class _Quiet:
    """Takes an upstream that does not answer, or refuses, for one that cannot tell: ``applier check`` shows why. No run needs it here."""

    lister: TableLister

    def listed_at(self, ts: Ts, settled: Collection[TableName] = ()) -> ListedTables | None:
        try:
            return self.lister.listed_at(ts, settled)
        except ApplierError:
            return None


def missing_at(sink: Sink, lister: TableLister, ts: Ts) -> list[TableName] | None:
    """Return the tables that upstream has at ``ts`` and the sink at ``ts`` lacks; None: upstream cannot tell. Errors as in the port."""
    lacking: list[TableName] = []
    for _ in range(2):
        # The second time upstream waits for what creates these tables: MariaDB shows a table before its CREATE is logged.
        listed = lister.listed_at(ts, lacking)
        if listed is None:
            return None
        lacking = missing_tables(sink, listed)
        if not lacking:
            break
    return lacking


def missing_tables(sink: Sink, listed: ListedTables) -> list[TableName]:
    """Return upstream's names of the tables that the sink lacks and no statement of the replica explains."""
    locations = sink.bookkeeping.locations()
    wanted = {
        name: there for name, there in listed.names.items() if locations.get(name.fold()) != LEFT_OUT and not sink.reserved.holds(there)
    }
    # A RENAME may have left a table under another name than the selection gives it.
    places = {name: TableName(*locations.get(name.fold(), there)) for name, there in wanted.items()}
    present = sink.present(list(places.values()))
    lacking = [name for name, place in sorted(places.items()) if place.fold() not in present]
    if not lacking:
        return []
    explained = _explained(sink.bookkeeping.statements())
    return [name for name in lacking if explained.isdisjoint(_ways_to_name(name, places[name]))]


def _ways_to_name(name: TableName, place: TableName) -> set[FoldedName]:
    folded = {name.fold(), place.fold()}
    return folded | {FoldedName(one.schema, "") for one in folded}


def _explained(ddls: Sequence[DdlEvent]) -> frozenset[FoldedName]:
    """Return the tables that statements of the stream make, drop or rename, applied or skipped: the operator has decided about those.

    A schema that one drops represents all its tables: (schema, '').
    """
    found: set[FoldedName] = set()
    for ddl in ddls:
        statement = parse_ddl(ddl)
        if statement is None:
            found.add(ddl.name.fold())
        elif statement.kind is DdlKind.DROP_SCHEMA:
            found.add(FoldedName(statement.schema.casefold(), ""))
        else:
            renamed = [name for pair in statement.renames for name in pair]
            found.update(name.fold() for name in (*statement.creates, *statement.drops, *renamed))
    return frozenset(found)


def refuse_missing(tables: Sequence[TableName], ts: Ts, remedy: Remedy = CREATE_OR_LOAD) -> NeedsOperator:
    """Make the error for tables that the sink lacks."""
    return NeedsOperator(
        f"the sink lacks {count(len(tables), 'table')} that upstream has at this position, and no DDL of the stream creates",
        remedy=remedy,
        tables=named_some(list(map(str, tables))),
        checkpoint_ts=ts,
    )
