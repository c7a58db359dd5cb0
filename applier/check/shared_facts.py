"""Facts that one group of checks finds out and another one needs: they run at the same time.

A wait that times out gives no answer: taken for one, an unexamined table or position would pass.
"""

from collections.abc import Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import dataclass, field

from applier.model.events import FoldedName, TableName
from applier.model.position import NO_TS, Ts
from applier.sinks.progress import Progress


class FactNotKnownError(Exception):
    """Another group has not found the facts out in time. Its text names them."""


@dataclass(slots=True)
class SharedFacts:
    """Each fact is set once, by the group that finds it out; None or nothing where it could not."""

    start_ts: Ts = NO_TS
    """Where a new replica begins. Known when the progress is."""
    declared: str = ""
    """What the settings said when an operator declared the sink as loaded. Known when the progress is."""
    is_loaded: bool = False
    """Whether a load is recorded. Known when the progress is."""
    _progress: "Future[Progress | None]" = field(default_factory=Future)
    _tables: "Future[frozenset[TableName]]" = field(default_factory=Future)
    _silent_changes: "Future[Mapping[FoldedName, str]]" = field(default_factory=Future)

    def set_progress(self, progress: Progress | None) -> None:
        """Tell the progress of the replica; the first call counts."""
        if not self._progress.done():
            self._progress.set_result(progress)

    def set_tables(self, tables: frozenset[TableName]) -> None:
        """Return the sink's tables whose rows were seen in the topics; the first call counts."""
        if not self._tables.done():
            self._tables.set_result(tables)

    def set_silent_changes(self, changes: Mapping[FoldedName, str]) -> None:
        """Tell which tables upstream changes by foreign keys without an event; the first call counts."""
        if not self._silent_changes.done():
            self._silent_changes.set_result(changes)

    def progress(self, patience_s: float) -> Progress | None:
        """Return the progress of the replica; None if there is none. FactNotKnownError: it is not known in time."""
        try:
            return self._progress.result(patience_s)
        except FutureTimeoutError:
            raise FactNotKnownError("the positions of the replica") from None

    def tables(self, patience_s: float) -> frozenset[TableName]:
        """Return the tables that were seen in the topics. FactNotKnownError: they are not known in time."""
        try:
            return self._tables.result(patience_s)
        except FutureTimeoutError:
            raise FactNotKnownError("the tables of upstream") from None

    def silent_changes(self, patience_s: float) -> Mapping[FoldedName, str]:
        """Return the tables that upstream changes without an event. FactNotKnownError: they are not known in time."""
        try:
            return self._silent_changes.result(patience_s)
        except FutureTimeoutError:
            raise FactNotKnownError("the foreign keys of upstream") from None
