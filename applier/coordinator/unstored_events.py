"""The events that listeners rejected and that are not in the quarantine yet. No position may pass them before they are."""

from collections import deque
from collections.abc import Iterable
from itertools import islice

from applier.model.rejected_event import STORED_AT_ONCE, RejectedEvent


class UnstoredEvents:
    """The events in the order of their reports."""

    __slots__ = ("_events",)

    def __init__(self) -> None:
        self._events: deque[RejectedEvent] = deque()

    def __len__(self) -> int:
        """How many wait."""
        return len(self._events)

    def add(self, events: Iterable[RejectedEvent]) -> None:
        """Take events of a report in."""
        self._events.extend(events)

    def next_batch(self) -> tuple[RejectedEvent, ...]:
        """Return as many as one transaction stores."""
        return tuple(islice(self._events, STORED_AT_ONCE))

    def drop(self, stored: int) -> None:
        """Forget the first ones: they are stored."""
        for _ in range(stored):
            self._events.popleft()
