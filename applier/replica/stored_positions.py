"""Which positions a commit stores: those that matter to the next start at once, the others now and then.

A resolved event moves the position of each partition about once a second. Of ten thousand rows of the bookkeeping, a commit would write
all, though rows came in a few of them. A position that is stored later is an older one: the next start reads its stream from there, and
knows what it finds (DESIGN.md section 3). So an unchanged row means the same place, and a promise is there for display.
"""

import time
from collections.abc import Collection, Mapping
from typing import Final

from applier.coordinator.stream_state import CLOSED_TS
from applier.model.position import Stream, StreamPosition, Ts
from applier.model.row_window import passed_with
from applier.sinks.progress import Progress

FEW: Final = 100
"""So many rows are written with any commit: they cost less than a millisecond."""
EVERY_S: Final = 10.0
"""How old a stored position may be. Retention and ``stall_after_s`` are counted in minutes at least."""


class StoredPositions:
    """Chooses among positions. It forgets nothing: what was not stored still differs from what is."""

    def __init__(self) -> None:
        self._due_s = 0.0

    def chosen(
        self,
        wanted: Mapping[Stream, StreamPosition],
        progress: Progress,
        checkpoint_ts: Ts,
        *,
        topic_ids: Mapping[str, str],
        with_rows: Collection[Stream] = (),
        is_last: bool = False,
    ) -> dict[Stream, StreamPosition]:
        """Return the positions to store with ``checkpoint_ts``.

        ``progress`` is what is stored, ``with_rows`` are the streams of which rows are written, ``topic_ids`` go with the positions.
        ``is_last``: nothing more may be stored by this run for long.
        """
        named = {topic for topic, topic_id in topic_ids.items() if progress.topic_ids.get(topic) != topic_id}
        stored = progress.positions
        changed = {stream: position for stream, position in wanted.items() if stored.get(stream) != position or stream.topic in named}
        now = time.monotonic()
        if is_last or len(changed) <= FEW or now >= self._due_s:
            if len(changed) > FEW:
                self._due_s = now + EVERY_S
            return changed
        rows = frozenset(with_rows)
        implied_ts = passed_with(checkpoint_ts)
        return {
            stream: position
            for stream, position in changed.items()
            if stream in rows or stream.topic in named or _matters(position, stored.get(stream), implied_ts)
        }


def _matters(position: StreamPosition, stored: StreamPosition | None, implied_ts: Ts) -> bool:
    """Whether the next start could not do without a position. ``implied_ts``: up to where the checkpoint says that rows are written."""
    if stored is None or (position.resolved_ts == CLOSED_TS) != (stored.resolved_ts == CLOSED_TS):
        return True
    # Rows ahead of the checkpoint are written once. 0 says that none are.
    return bool(position.applied_ts) != bool(stored.applied_ts) or max(position.applied_ts, implied_ts) != max(
        stored.applied_ts, implied_ts
    )
