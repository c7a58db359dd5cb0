"""What a run quarantines: which events its listeners may leave out, and how the sink stores those.

The sink holds the operator's skip rules and the quarantine. Both are read when the run starts, and at every reload.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from applier.model.events import DdlEvent, FoldedName
from applier.model.position import Stream, Ts
from applier.model.rejected_event import RejectedEvent
from applier.model.segment import is_past
from applier.sinks.bookkeeping.quarantine import QuarantineStore
from applier.sinks.progress import Progress
from applier.sinks.quarantine import Quarantined
from applier.sources.port import RangeReader
from applier.tasks.tolerance import Tolerance
from applier.tasks.write import RecordFetcher
from applier.telemetry.log_event import LogEvent
from applier.telemetry.observer import Watcher


class QuarantineRules:
    """The rules by which events are quarantined or skipped. Not thread-safe."""

    def __init__(self, store: QuarantineStore, *, unreadable: bool) -> None:
        """Take the sink's quarantine. ``unreadable``: events that cannot be read are quarantined."""
        self._store, self._unreadable = store, unreadable
        self._tolerances: dict[Stream, Tolerance] = {}
        self._common = Tolerance(unreadable=unreadable)

    def reload(self, progress: Progress) -> None:
        """Read what matters from ``progress`` on."""
        stored: dict[Stream, set[tuple[int, int]]] = defaultdict(set)
        for place in self._store.places():
            stored[place.stream].add(place[1:])
        skipped: dict[Stream, dict[tuple[int, int], str]] = defaultdict(dict)
        skipped_ts: dict[tuple[Ts, FoldedName | None], str] = {}
        for rule in self._store.skip_rules():
            if rule.place is not None:
                skipped[rule.place.stream][rule.place.offset, rule.place.event] = rule.decided_by
            # A transaction below A is applied or skipped already.
            elif not is_past(rule.commit_ts, progress.checkpoint_ts):
                skipped_ts[rule.commit_ts, rule.table] = rule.decided_by
        self._common = Tolerance(unreadable=self._unreadable, skipped_ts=skipped_ts)
        self._tolerances = {}
        for stream in stored.keys() | skipped.keys():
            position = progress.positions.get(stream)
            # Places below the stored offset are not read again. Without this bound the tolerances that travel with each
            # task grow for years.
            first = 0 if position is None else position.next_offset
            self._tolerances[stream] = replace(
                self._common,
                stored=frozenset(place for place in stored[stream] if place[0] >= first),
                skipped={place: decided_by for place, decided_by in skipped[stream].items() if place[0] >= first},
            )

    def note(self, events: Sequence[RejectedEvent], progress: Progress, watcher: Watcher) -> None:
        """Log what this run has just stored, and remember it: a merge reads its ranges again. Below the positions nothing is read again."""
        for event in events:
            watcher.note(LogEvent.EVENT_QUARANTINED, **event.facts)
        found: dict[Stream, set[tuple[int, int]]] = defaultdict(set)
        for event in events:
            found[event.place.stream].add(event.place[1:])
        for stream, places in found.items():
            known, position = self.tolerance_of(stream), progress.positions.get(stream)
            first = 0 if position is None else position.next_offset
            stored = frozenset(place for place in known.stored | places if place[0] >= first)
            self._tolerances[stream] = replace(known, stored=stored)

    def tolerance_of(self, stream: Stream) -> Tolerance:
        """Return what a listener of ``stream`` may leave out."""
        return self._tolerances.get(stream, self._common)

    def skips(self, ddl: DdlEvent) -> bool:
        """Return whether the operator has a rule to skip a DDL."""
        rules: Mapping[tuple[Ts, FoldedName | None], str] = self._common.skipped_ts
        return (ddl.commit_ts, ddl.name.fold()) in rules or (ddl.commit_ts, None) in rules

    def quarantined(self, events: Iterable[RejectedEvent], reader: RangeReader) -> Quarantined | None:
        """Return what a transaction stores in the quarantine; None for nothing. The listeners have refused too many already."""
        # The records go through this process, one by one: there are few, and a transaction without rows has no task that could do it.
        found = tuple(events)
        return Quarantined(RecordFetcher(reader), found, at_most=None) if found else None
