"""Reads the record of a rejected event from the source once more, for the transaction that stores it in the quarantine.

Reports and statements carry the place of such an event only: its record may have megabytes, and few events are rejected.
"""

from collections.abc import Iterator

from applier.model.errors import SourceError
from applier.model.position import Offset, Stream
from applier.model.rejected_event import KeptRecord, RejectedEvent
from applier.sources.port import RangeReader, Record


class RecordFetcher:
    """Returns the records of rejected events. The events of one offset come in ascending order, so each record is read once."""

    def __init__(self, reader: RangeReader) -> None:
        self._reader = reader
        self._place: tuple[Stream, Offset] | None = None
        self._current: Record | None = None
        self._later: Iterator[tuple[int, Record]] = iter(())
        self._next: tuple[int, Record] | None = None

    def __call__(self, event: RejectedEvent) -> KeptRecord:
        """Return the record that holds an event. SourceError if it is gone, or the source does not answer."""
        stream, offset, index = event.place
        if self._place != (stream, offset):
            self._place, self._current = (stream, offset), None
            self._later = self._reader.records_at(stream, offset)
            self._next = next(self._later, None)
        # Of several records the last one that begins at the event or before it.
        while self._next is not None and (self._current is None or self._next[0] <= index):
            self._current, self._next = self._next[1], next(self._later, None)
        if self._current is None:
            raise SourceError(
                "a record for the quarantine is gone from the source",
                remedy="Retention or compaction has removed it: keep topics and binlogs longer",
                kind="retention",
                topic=stream.topic,
                partition=stream.partition,
                offset=offset,
            )
        return KeptRecord(self._current.key, self._current.value)
