"""A runner whose tasks run a second time, late: after every later write of rows ahead of W, as executors do that Spark has given up."""

from collections.abc import Callable

from applier.sinks.progress import WriteOutcome, WriteState
from tests.rig.local_runner import LocalRunner

MOST = 4
"""How many of the latest calls are repeated."""


class LateCopies(LocalRunner):
    """Repeats each write of rows ahead of W when the next ones have ended.

    ``ended``: how the copies ended; ``rows_again``: how many rows they wrote.
    """

    def __init__(self, reader_of, decoder) -> None:
        super().__init__(reader_of, decoder)
        self.ended: list[WriteState] = []
        self.rows_again = 0
        self._copies: list[Callable[[], WriteOutcome]] = []

    def apply(self, plan, write_plan) -> WriteOutcome:
        again = super().apply
        return self._with_copies(lambda: again(plan, write_plan)) if plan.writers else again(plan, write_plan)

    def write_rows(self, prepared, parts, plan) -> WriteOutcome:
        again, handle = super().write_rows, prepared.handle

        def write() -> WriteOutcome:
            kept = self._prepared
            self._prepared = [*kept, handle]  # what a task has read stays with it
            try:
                return again(prepared, parts, plan)
            finally:
                self._prepared = kept

        return self._with_copies(write)

    def _with_copies(self, write) -> WriteOutcome:
        outcome = write()
        copies = [copy() for copy in self._copies]
        self.ended += [copy.state for copy in copies]
        self.rows_again += sum(copy.rows for copy in copies)
        self._copies = [*self._copies, write][-MOST:]
        return outcome
