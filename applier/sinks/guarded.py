"""Runs a statement that knows its rows so that the rows which the database refuses are found, and all others are written.

Each try stands behind a savepoint. A statement that is refused is halved until single rows are left: for n rows and few bad ones, about
2 log2(n) further statements per bad row.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from applier.bad_event import MAX_SET_ASIDE, BadEvent, reason_of
from applier.errors import FatalSinkError, RowRefused
from applier.planner.port import Statement


@dataclass(slots=True)
class Guard:
    """Collects what the database refuses in one transaction.

    ``execute`` runs a statement (RowRefused: none of its effects must stay); ``savepoint`` sets the one that ``roll_back`` goes back to.
    """

    execute: Callable[[Statement], None]
    savepoint: Callable[[], None]
    roll_back: Callable[[], None]
    refused: list[BadEvent] = field(default_factory=list)

    def run(self, statement: Statement) -> int:
        """Run a statement and return how many rows were written. RowRefused if it does not know its rows."""
        parts = statement.parts
        if parts is None:
            self.execute(statement)
            return statement.rows
        self.savepoint()
        try:
            self.execute(statement)
        except RowRefused as error:
            self.roll_back()
            if len(parts.rows) > 1:
                return sum(map(self.run, parts.halves()))
            self._refuse(parts.rows[0], error)
            return 0
        return statement.rows

    def _refuse(self, row: BadEvent, error: RowRefused) -> None:
        self.refused.append(replace(row, error=reason_of(error)))
        check_number(self.refused)


def check_number(bad: list[BadEvent]) -> None:
    """Refuse to set aside more rows of one transaction than an accident makes. FatalSinkError names the last one."""
    if len(bad) > MAX_SET_ASIDE:
        raise FatalSinkError(
            f"more than {MAX_SET_ASIDE} rows of one transaction would be set aside",
            remedy="So many are no accident: compare the sink's tables with upstream's",
            reason=bad[-1].error,
            **bad[-1].facts,
        )
