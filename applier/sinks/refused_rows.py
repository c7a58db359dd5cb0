"""Finds the rows that the database refuses, in a statement that knows its rows: they are quarantined, or the first one is named.

Each try runs after a savepoint. A refused statement is halved until single rows are left: for n rows and few refused ones, about
2 log2(n) further statements per refused row. Row by row would be n statements, and a savepoint per row costs every good segment.
"""

from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace

from applier.model.errors import ApplierError, FatalSinkError, RowRefused
from applier.model.rejected_event import EventPlace, RejectedEvent, error_of_event, reason_of
from applier.model.remedy import Remedy
from applier.planner.statement import Statement, StatementRows
from applier.sinks.quarantine import Quarantined


@dataclass(slots=True)
class RefusedRows:
    """Collects the rows that the database refuses in one transaction.

    ``execute`` runs a statement; after a RowRefused, ``roll_back`` undoes it back to the last ``savepoint``. If ``quarantined`` takes
    refused rows, they are collected and all others are written; otherwise the first refused row ends the transaction. ``stored`` returns
    the events that the quarantine has already: rows at the checkpoint are applied again after a restart, and refused again.
    """

    execute: Callable[[Statement], None]
    savepoint: Callable[[], None]
    roll_back: Callable[[], None]
    quarantined: Quarantined | None
    stored: Callable[[Iterable[EventPlace]], AbstractSet[EventPlace]]
    refused: list[RejectedEvent] = field(default_factory=list)
    _unexpected: int = 0
    _uncounted: list[RejectedEvent] = field(default_factory=list)

    @property
    def _taker(self) -> Quarantined | None:
        """What takes refused rows; None if nothing does."""
        return self.quarantined if self.quarantined is not None and self.quarantined.takes_refused else None

    def count_planned(self) -> None:
        """Count the events that the planner quarantines. FatalSinkError if they are more than ``at_most``."""
        for event in self.quarantined.events if self.quarantined is not None else ():
            self._count(event)

    def run(self, statement: Statement) -> int:
        """Run a statement and return how many rows were written.

        RowRefused if the statement does not know its rows; with the row's place if nothing takes refused rows.
        """
        source = statement.source_rows
        if source is None:
            self.execute(statement)
            return statement.rows
        # Also for a statement that will succeed: MySQL's REPLACE with a warning has already changed rows when it is judged.
        self.savepoint()
        try:
            self.execute(statement)
        except RowRefused as error:
            self.roll_back()
            if len(source.rows) == 1:
                self._refuse(source, error)
                return 0
            rows = sum(map(self.run, source.halves()))
            if self._taker is None:
                raise  # the database took each half alone: no row can be named, but the statement was refused
            return rows
        return statement.rows

    def _refuse(self, source: StatementRows, error: RowRefused) -> None:
        self.refuse((*source.rows, *(event for events in source.earlier for event in events)), source.key, error)

    def refuse(self, events: Sequence[RejectedEvent], key: Sequence[str], error: ApplierError) -> None:
        """Quarantine all events that one row consists of, or raise its error at the place of the first."""
        if self._taker is None or not isinstance(error, RowRefused):
            raise error_of_event(error, events[0], key) from error
        for event in events:
            self.refused.append(replace(event, error=reason_of(error)))
            self._count(self.refused[-1])

    def _count(self, event: RejectedEvent) -> None:
        """Count a rejected event. The quarantine is asked which of them it has only where all of them would be too many."""
        at_most = None if self.quarantined is None else self.quarantined.at_most
        self._uncounted.append(event)
        if at_most is None or self._unexpected + len(self._uncounted) <= at_most:
            return
        stored = self.stored(event.place for event in self._uncounted)
        self._unexpected += sum(event.place not in stored for event in self._uncounted)
        self._uncounted.clear()
        if self._unexpected > at_most:
            raise FatalSinkError(
                f"the database refuses more than {at_most} rows of one transaction",
                remedy=Remedy(
                    "sink.compare-refused-rows",
                    "Compare the sink's tables with upstream's. `applier skip --ts … --table …` skips one upstream transaction",
                ),
                reason=event.error,
                **event.facts,
            )
