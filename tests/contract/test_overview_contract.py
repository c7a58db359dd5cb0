"""A replica is seen from outside in the same way in SQLite and in MariaDB: without owning it, and whatever has become of its owner."""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import Connection, Engine, text

from applier.model.errors import FatalSinkError
from applier.model.events import DdlEvent, DdlIdentity, FoldedName
from applier.model.position import Offset, Stream, StreamPosition, Ts
from applier.model.rejected_event import WHOLE_RECORD, EventPosition, RejectedEvent
from applier.sinks.bookkeeping.bookkeeping import Bookkeeping
from applier.sinks.bookkeeping.epochs import Epochs
from applier.sinks.bookkeeping.ledger import Ledger
from applier.sinks.bookkeeping.quarantine import KeptRecord, Quarantine
from applier.sinks.overview import Overview, OwnerState, RunEnd
from applier.sinks.port import Sink
from applier.sinks.progress import ProgressCommit
from applier.sinks.registry import open_sink
from applier.sinks.settings import SinkSettings
from tests.contract.conftest import BOOKS_BY_DIALECT
from tests.contract.quarantining import store

HOUR_S = 3600.0
ORDERS = FoldedName("shop", "orders")
ALTER = DdlEvent(commit_ts=Ts(30), schema="Shop", table="Orders", query="ALTER TABLE `Orders` ADD a INT", ddl_type=5)


@dataclass
class World:
    engine: Engine

    def sink(self, *, lease_s: float = HOUR_S, name: str = "replica") -> Sink:
        url = self.engine.url.render_as_string(hide_password=False)
        return open_sink(SinkSettings(url=url, name=name, lease_s=lease_s, lock_timeout_s=0.2, retries=0))

    def look(self, *, lease_s: float = HOUR_S, name: str = "replica") -> Overview:
        with self.sink(lease_s=lease_s, name=name) as outsider:
            return outsider.bookkeeping.overview()

    @contextmanager
    def owned(self) -> Iterator[Sink]:
        with self.sink() as sink:
            sink.acquire()
            yield sink

    def beat_long_ago(self, connection: Connection) -> None:
        """Turn the owner's last heartbeat back, where this database keeps it."""
        is_sqlite = self.engine.dialect.name == "sqlite"
        past = "2020-01-01 00:00:00.000000"
        connection.execute(text(f"UPDATE {'applier_owner' if is_sqlite else 'applier.owner'} SET heartbeat_at = '{past}'"))
        lock = Path(f"{self.engine.url.database}.lock") if is_sqlite else None
        if lock is not None and lock.exists():
            os.utime(lock, (0, 0))


@pytest.fixture
def world(engine: Engine) -> World:
    return World(engine)


def test_before_the_replica_has_begun_nothing_is_known_and_nothing_is_made(world: World) -> None:
    seen = world.look()
    assert (seen.progress, seen.updated_at, seen.owner, seen.undecided, seen.quarantined) == (None, None, None, (), 0)
    assert world.look() == seen


def test_a_sink_without_bookkeeping_says_what_to_do_and_stays_as_it_is(world: World, connection: Connection) -> None:
    version = "applier_schema_version" if world.engine.dialect.name == "sqlite" else "applier.schema_version"
    connection.execute(text(f"DROP TABLE {version}"))
    connection.commit()
    for _ in range(2):
        with pytest.raises(FatalSinkError, match="bookkeeping tables are missing") as caught:
            world.look()
        assert "applier migrate" in caught.value.remedy


def test_bookkeeping_of_a_newer_version_is_not_read(world: World, connection: Connection) -> None:
    version = "applier_schema_version" if world.engine.dialect.name == "sqlite" else "applier.schema_version"
    connection.execute(text(f"UPDATE {version} SET version_num = '9999'"))
    connection.commit()
    with pytest.raises(FatalSinkError, match="newer version"):
        world.look()


def test_a_living_run_is_seen_with_its_progress(world: World) -> None:
    with world.owned() as sink:
        fence = sink.begin(Ts(10)).fence
        position = StreamPosition(next_offset=Offset(7), resolved_ts=Ts(20))
        sink.save(fence, ProgressCommit(checkpoint_ts=Ts(20), positions={Stream("feed", 0): position}))
        seen = world.look()
        assert seen.progress == sink.load()
        assert seen.owner is not None
        owner = seen.owner.owner
        assert (seen.owner.state, owner.host, owner.process, owner.epoch) == (OwnerState.ALIVE, socket.gethostname(), os.getpid(), 1)
        assert seen.owner.silent_s < HOUR_S
        assert seen.updated_at is not None
        assert abs(seen.updated_at - owner.started_at) < timedelta(hours=1)
        assert world.look(name="another").owner is None
    assert world.look().owner is None


def test_a_run_that_holds_the_replica_and_beats_no_more_is_frozen(world: World) -> None:
    with world.owned():
        with world.engine.begin() as connection:
            world.beat_long_ago(connection)
        seen = world.look(lease_s=60)
        assert seen.owner is not None
        assert seen.owner.state is OwnerState.FROZEN
        assert seen.owner.silent_s > 60


def test_a_run_that_has_lost_the_replica_and_beats_no_more_is_dead(world: World, books: Bookkeeping) -> None:
    with world.engine.begin() as connection:
        Epochs(books).claim(connection, "run", "elsewhere", 77)
        world.beat_long_ago(connection)
    seen = world.look(lease_s=60)
    assert seen.owner is not None
    assert (seen.owner.state, seen.owner.owner.host, seen.owner.owner.process) == (OwnerState.DEAD, "elsewhere", 77)


def test_what_waits_for_the_operator_is_shown(world: World, books: Bookkeeping) -> None:
    with world.engine.begin() as connection:
        Ledger(books).intent(connection, DdlIdentity(Ts(30), ORDERS, frozenset({ORDERS})), ALTER, "{}")
        place = EventPosition(Stream("feed", 0), Offset(5), WHOLE_RECORD)
        store(Quarantine(books), connection, RejectedEvent(position=place, error="broken"), KeptRecord(b"k", b"v"))
    seen = world.look()
    assert [entry.ddl for entry in seen.undecided] == [ALTER]
    assert seen.quarantined == 1


END = RunEnd(command="run", exit_code=4, message="the sink refuses", error_class="FatalSinkError", facts={"code": "1"}, remedy="Look at it")
HERE = (socket.gethostname(), os.getpid())


def test_the_end_of_a_run_is_seen_until_the_next_run_owns_the_replica(world: World) -> None:
    with world.owned() as sink:
        sink.begin(Ts(5))
    with world.sink() as outsider:
        outsider.bookkeeping.store_end(END, *HERE)
    seen = world.look().last_end
    assert seen is not None
    assert (seen.end, seen.epoch) == (END, 1)
    with world.owned():
        assert world.look().last_end is None


def test_a_run_that_dies_without_a_word_has_not_ended_as_the_one_before_it(world: World, connection: Connection) -> None:
    with world.owned() as sink:
        sink.begin(Ts(5))
    with world.sink() as outsider:
        outsider.bookkeeping.store_end(END, *HERE)
    Epochs(BOOKS_BY_DIALECT[world.engine.dialect.name]).claim(connection, "dead", "elsewhere", 7)
    connection.commit()
    assert world.look().last_end is None


def test_a_start_that_is_refused_after_the_owner_died_is_the_last_end(world: World, books: Bookkeeping) -> None:
    with world.engine.begin() as connection:
        Epochs(books).claim(connection, "dead", "elsewhere", 77)
        world.beat_long_ago(connection)
    with world.sink(lease_s=60) as outsider:
        outsider.bookkeeping.store_end(END, *HERE)
    seen = world.look(lease_s=60).last_end
    assert seen is not None
    assert seen.end == END


def test_no_end_is_stored_while_another_process_owns_the_replica(world: World) -> None:
    with world.owned() as sink, world.sink() as outsider:
        sink.begin(Ts(5))
        outsider.bookkeeping.store_end(END, "elsewhere", 7)
        assert world.look().last_end is None
        outsider.bookkeeping.store_end(END, *HERE)
        assert world.look().last_end is not None
