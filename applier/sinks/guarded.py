"""Runs a statement that knows its rows so that the rows which the database refuses are found: set aside, or the first one is named.

Each try stands behind a savepoint. A statement that is refused is halved until single rows are left: for n rows and few bad ones, about
2 log2(n) further statements per bad row.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from applier.bad_event import MAX_SET_ASIDE, BadEvent, named, reason_of
from applier.errors import FatalSinkError, RowRefused
from applier.planner.parts import StatementParts
from applier.planner.port import Statement
from applier.sinks.port import Aside


@dataclass(slots=True)
class Guard:
    """Collects what the database refuses in one transaction.

    ``execute`` runs a statement (RowRefused: none of its effects must stay); ``savepoint`` sets the one that ``roll_back`` goes back to;
    ``aside``: what the transaction sets aside besides. If that may be refused rows, they are collected, and all others are written;
    otherwise the first such row is the transaction's end.
    """

    execute: Callable[[Statement], None]
    savepoint: Callable[[], None]
    roll_back: Callable[[], None]
    aside: Aside | None
    refused: list[BadEvent] = field(default_factory=list)

    @property
    def _taker(self) -> Aside | None:
        """What takes refused rows; None if nothing does."""
        return self.aside if self.aside is not None and self.aside.takes_refused else None

    def run(self, statement: Statement) -> int:
        """Run a statement and return how many rows were written.

        RowRefused if it does not know its rows, and with the row's place if nothing is to be set aside.
        """
        parts = statement.parts
        if parts is None:
            self.execute(statement)
            return statement.rows
        self.savepoint()
        try:
            self.execute(statement)
        except RowRefused as error:
            self.roll_back()
            if len(parts.rows) == 1:
                self._refuse(parts, error)
                return 0
            rows = sum(map(self.run, parts.halves()))
            if self._taker is None:
                raise  # each half was taken alone; that no row can be named is no reason to go on
            return rows
        return statement.rows

    def _refuse(self, parts: StatementParts, error: RowRefused) -> None:
        (row,) = parts.rows
        if (taker := self._taker) is None:
            raise named(error, row, parts.key) from error
        self.refused.append(replace(row, error=reason_of(error)))
        if (excess := too_many((*taker.events, *self.refused))) is not None:
            raise excess


def too_many(bad: Sequence[BadEvent]) -> FatalSinkError | None:
    """Return the error of a transaction with more bad rows than an accident makes, which names the last one; None if there are few."""
    if len(bad) <= MAX_SET_ASIDE:
        return None
    return FatalSinkError(
        f"more than {MAX_SET_ASIDE} rows of one transaction would be set aside",
        remedy="So many are no accident: compare the sink's tables with upstream's",
        reason=bad[-1].error,
        **bad[-1].facts,
    )
