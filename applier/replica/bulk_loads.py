"""Whether a run loads rows in bulk: as long as the database takes that, and has not refused it too often."""

from typing import Final

from applier.model.errors import BulkRefused, BulkUnavailable
from applier.sinks.port import Sink
from applier.telemetry.log_event import LogEvent
from applier.telemetry.notes import Notes

MOST_REFUSED: Final = 3
"""Each refused load costs its segment a second write, so a run that has had so many makes no more."""


class BulkLoads:
    """The bulk loads of one run."""

    def __init__(self, sink: Sink, notes: Notes) -> None:
        self._sink, self._notes = sink, notes
        self._refused = 0
        self._is_over = False

    @property
    def are_used(self) -> bool:
        """Whether the next segments are loaded in bulk."""
        return not self._is_over and self._sink.bulk

    def refused(self, error: BulkRefused) -> None:
        """Note a refused load, whose segment is written by REPLACE; and once, that there are no more."""
        if self._is_over:  # of a segment that was prepared before
            return
        self._refused += 1
        self._notes.note(LogEvent.BULK_LOAD_REFUSED, error_message=error.message, **error.facts)
        if isinstance(error, BulkUnavailable) or self._refused == MOST_REFUSED:
            self._is_over = True
            self._notes.note(LogEvent.BULK_LOADS_ENDED, refused=self._refused)
