"""What a run sets aside: which events its listeners may pass by, and how what they passed by is stored.

The sink knows the operator's words and what the quarantine holds; both are read when the run begins, and at every rebuild.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial

from applier.model.events import DdlEvent, FoldedName
from applier.model.position import Stream, Ts
from applier.model.rejected_event import RejectedEvent
from applier.model.segment import is_past
from applier.sinks.progress import Progress
from applier.sinks.quarantine import Quarantined, QuarantineStore
from applier.sources.port import RangeReader
from applier.tasks.quarantined_record import record_of
from applier.tasks.tolerance import Tolerance


class QuarantineRules:
    """The quarantine's part in a run. Not thread-safe."""

    def __init__(self, desk: QuarantineStore, *, unreadable: bool) -> None:
        """Take the sink's quarantine; ``unreadable``: whatever cannot be read goes there."""
        self._desk, self._unreadable = desk, unreadable
        self._tolerances: dict[Stream, Tolerance] = {}
        self._common = Tolerance(unreadable=unreadable)

    def reload(self, progress: Progress) -> None:
        """Read what matters from ``progress`` on."""
        stored: dict[Stream, set[tuple[int, int]]] = defaultdict(set)
        for place in self._desk.places():
            stored[place.stream].add(place[1:])
        skipped: dict[Stream, dict[tuple[int, int], str]] = defaultdict(dict)
        skipped_ts: dict[tuple[Ts, FoldedName | None], str] = {}
        for word in self._desk.skip_rules():
            if word.place is not None:
                skipped[word.place.stream][word.place.offset, word.place.event] = word.said_by
            elif not is_past(word.commit_ts, progress.checkpoint_ts):
                skipped_ts[word.commit_ts, word.table] = word.said_by
        self._common = Tolerance(unreadable=self._unreadable, skipped_ts=skipped_ts)
        self._tolerances = {}
        for stream in stored.keys() | skipped.keys():
            position = progress.positions.get(stream)
            first = 0 if position is None else position.next_offset
            self._tolerances[stream] = replace(
                self._common,
                stored=frozenset(place for place in stored[stream] if place[0] >= first),
                skipped={place: said_by for place, said_by in skipped[stream].items() if place[0] >= first},
            )

    def note_stored(self, events: Iterable[RejectedEvent], progress: Progress) -> None:
        """Know what this run has just stored: ranges that are merged are read again. What lies below the positions is not read again."""
        found: dict[Stream, set[tuple[int, int]]] = defaultdict(set)
        for event in events:
            found[event.place.stream].add(event.place[1:])
        for stream, places in found.items():
            known, position = self.tolerance_of(stream), progress.positions.get(stream)
            first = 0 if position is None else position.next_offset
            stored = frozenset(place for place in known.stored | places if place[0] >= first)
            self._tolerances[stream] = replace(known, stored=stored)

    def tolerance_of(self, stream: Stream) -> Tolerance:
        """Return what a listener of ``stream`` may pass by."""
        return self._tolerances.get(stream, self._common)

    def skips(self, ddl: DdlEvent) -> bool:
        """Tell whether the operator has said to skip a DDL."""
        words: Mapping[tuple[Ts, FoldedName | None], str] = self._common.skipped_ts
        return (ddl.commit_ts, ddl.name.fold()) in words or (ddl.commit_ts, None) in words

    def quarantined(self, events: Iterable[RejectedEvent], reader: RangeReader) -> Quarantined | None:
        """Return what a transaction is to store; None for nothing. The listeners have counted what was not to be expected.

        The records go through this process, one by one: there are few, and where nothing else is written there is no task to do it.
        """
        found = tuple(events)
        return Quarantined(partial(record_of, reader), found, at_most=None) if found else None
