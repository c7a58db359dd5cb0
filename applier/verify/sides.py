"""Both sides at one point in time: the sink as it is now, and upstream as it was at the sink's checkpoint, where it can show that.

A state lasts for one range. A long transaction would keep the applier's DDLs waiting, and the history that both servers must not delete.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from applier.model.position import NO_TS, Ts
from applier.sinks.registry import kit_of
from applier.sinks.settings import SinkSettings
from applier.sinks.table_reader import Reader


@dataclass(frozen=True, slots=True)
class Sides:
    """A session on each side. One thread uses them at a time."""

    upstream: Reader
    sink: Reader

    @contextmanager
    def moment(self) -> Iterator[Ts]:
        """See one state of each side until the block ends; yield the sink's checkpoint in it (NO_TS: there is none)."""
        try:
            self.sink.begin()
            # Read in the transaction that reads the rows: so upstream's snapshot is exactly theirs.
            ts = self.sink.checkpoint_ts()
            self.upstream.begin(ts or None)
            yield ts or NO_TS
        finally:
            self.sink.end()
            self.upstream.end()

    def close(self) -> None:
        """Close both sessions; the next use opens others."""
        self.sink.close()
        self.upstream.close()


def sides_opener(upstream: SinkSettings, sink: SinkSettings, *, statement_timeout_s: int) -> Callable[[], Sides]:
    """Return the function that makes a session on each side. They connect when they are used."""
    # A local database holds the text of a TIMESTAMP in the zone of the wire. Between servers UTC: elsewhere two points in time may have
    # one text.
    zone = sink.time_zone if kit_of(sink.url).local else "UTC"
    upstream, sink = replace(upstream, time_zone=zone), replace(sink, time_zone=zone)

    def open_sides() -> Sides:
        return Sides(_reader(upstream, statement_timeout_s, is_upstream=True), _reader(sink, statement_timeout_s, is_upstream=False))

    return open_sides


def _reader(settings: SinkSettings, statement_timeout_s: int, *, is_upstream: bool) -> Reader:
    return kit_of(settings.url).open_reader(settings, is_upstream=is_upstream, statement_timeout_s=statement_timeout_s)
