"""Rows ahead of W that several tasks write: DELETEs in one window, all others in the next.

A copy of a task (an executor that was given up, but still runs) may write late. Within a window that changes nothing: DELETEs commute, and
so do the final rows of different keys. A late DELETE after the REPLACE of another spelling of its key would remove that row. So the caller
moves the window when ``first`` has left something for ``rest``.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from applier.model.errors import ApplierError
from applier.sinks.progress import Fence
from applier.sinks.write_outcome import WriteOutcome, WriteState
from applier.tasks.plan import PreparePlan, WritePlan
from applier.tasks.port import Prepared, Runner
from applier.tasks.write import not_written
from applier.tasks.write_rows import error_of, phases

Retried = Callable[[Callable[[], WriteOutcome]], WriteOutcome]


class RowsInPhases:
    """The rows of one step. ``retried``: calls a write again while it was certainly rolled back."""

    def __init__(self, runner: Runner, plan: PreparePlan, write_plan: WritePlan, retried: Retried) -> None:
        self._runner, self._plan, self._write_plan, self._retried = runner, plan, write_plan, retried
        self._prepared: Prepared | None = None
        self._left: Sequence[int] = ()
        self._deleted = 0

    @property
    def has_rest(self) -> bool:
        """Whether rows are left for another window."""
        return bool(self._left)

    def first(self) -> WriteOutcome:
        """Prepare the rows. Delete, and leave the others for ``rest``; or write the others, if there is nothing to delete."""
        prepared = self._runner.prepare(self._plan)
        if isinstance(prepared, ApplierError):
            return not_written(prepared)
        self._prepared = prepared
        if (error := error_of(prepared.segments)) is not None:
            self._drop()
            return self._retried(lambda: not_written(error))
        deletes, others = phases(prepared.segments)
        outcome = self._write(deletes or others, self._write_plan)
        if deletes and others and outcome.state is WriteState.COMMITTED:
            self._left, self._deleted = others, outcome.rows
        else:
            self._drop()
        return outcome

    def rest(self, fence: Fence) -> WriteOutcome:
        """Write what is left, in the window of ``fence``. Returns the rows of both phases."""
        left, self._left = self._left, ()
        outcome = self._write(left, replace(self._write_plan, fence=fence))
        self._drop()
        return replace(outcome, rows=outcome.rows + self._deleted)

    def _write(self, parts: Sequence[int], write_plan: WritePlan) -> WriteOutcome:
        prepared = self._prepared
        if prepared is None or not parts:
            return WriteOutcome(state=WriteState.COMMITTED)
        try:
            return self._retried(lambda: self._runner.write_rows(prepared, parts, write_plan))
        except ApplierError:
            self._drop()
            raise

    def _drop(self) -> None:
        if self._prepared is not None:
            self._runner.drop(self._prepared)
            self._prepared = None
