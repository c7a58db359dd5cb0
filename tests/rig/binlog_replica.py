"""A replica of a binlog in this process: the real source, engine and sink, without Spark. Each run is a new start of the program."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from threading import Event, Thread

from applier.coordinator import Policy
from applier.planner.table_check import DifferenceKind
from applier.replica.shutdown import Shutdown
from applier.run.catchup import CatchupResult
from applier.selection import EVERYTHING, TableSelection
from applier.sinks.port import Sink
from applier.sinks.registry import open_sink
from applier.sinks.settings import SinkSettings
from applier.sources.binlog.decoder import BinlogDecoder
from applier.sources.binlog.settings import BinlogSettings
from applier.sources.factory import open_source
from applier.telemetry.observer import Observer, SilentObserver
from tests.rig.local_replica import Replica
from tests.rig.upstream import NAME, fence_of

LIMITS = Policy(segment_rows=400, range_records=5_000, plan_bytes=4_000_000, merge_ranges=8)
JOIN_S = 60
POLL_S = 0.05


@dataclass
class BinlogReplica:
    """``source``: the server and where a new replica begins; ``url``: the sink."""

    url: str
    source: BinlogSettings
    policy: Policy = LIMITS
    accept: dict[str, tuple[DifferenceKind, ...]] = field(default_factory=dict)
    observer: Observer = field(default_factory=SilentObserver)
    selection: TableSelection = EVERYTHING
    quarantines: frozenset[str] = frozenset()
    writes_keyless: bool = False
    wrap: Callable[[Sink], Sink] = field(default=lambda sink: sink)

    def moved(self, url: str) -> None:
        """Follow the server at another address from the next run on."""
        self.source = replace(self.source, url=url)

    def catch_up(self, **options) -> CatchupResult:
        """Run ``catchup`` once."""
        with self._opened() as replica:
            return replica.catch_up(**options)

    @contextmanager
    def following(self, retry_for_s: float = 60.0) -> Iterator[Event]:
        """Run the daemon for the block, which begins when the replica is owned; raise what ended it. The event is set when it has ended."""
        shutdown, ended, errors, epoch = Shutdown(), Event(), [], fence_of(self.url)[0]

        def follow() -> None:
            try:
                with self._opened() as replica:
                    replica.follow(shutdown, retry_for_s=retry_for_s)
            except Exception as error:  # noqa: BLE001 - raised by the block
                errors.append(error)
            finally:
                ended.set()

        thread = Thread(target=follow, name="follow", daemon=True)
        thread.start()
        try:
            # What happens before is for the command to retry, which this is not.
            while fence_of(self.url)[0] == epoch and not ended.wait(POLL_S):
                pass
            yield ended
        finally:
            shutdown.request()
            thread.join(JOIN_S)
            # Before what the block has raised, which may be its consequence.
            if errors:
                raise errors[0]
        assert not thread.is_alive(), "the daemon does not end"

    def progress(self):
        """Return what the sink has of the replica."""
        with open_sink(SinkSettings(url=self.url, name=NAME)) as sink:
            return sink.load()

    def ledger(self):
        """Return the entries of the DDLs."""
        with open_sink(SinkSettings(url=self.url, name=NAME)) as sink:
            return sink.bookkeeping.ledger()

    @contextmanager
    def _opened(self) -> Iterator[Replica]:
        with open_source(self.source, BinlogDecoder(self.selection)) as source:
            yield Replica(
                self.url,
                source,
                policy=self.policy,
                name=NAME,
                accept=self.accept,
                observer=self.observer,
                quarantines=self.quarantines,
                writes_keyless=self.writes_keyless,
                wrap=self.wrap,
            )
