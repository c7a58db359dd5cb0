"""A new non-unique index is built in the background (``[ddl] background``), on real servers."""

import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest

from applier.ddl import identity
from applier.model.errors import FatalSinkError
from applier.model.events import DdlEvent, FoldedName
from applier.sinks.ledger_entry import DdlState, LedgerEntry
from applier.sinks.mysql.ddl import runner
from applier.sinks.mysql.ddl.runner import BackgroundDdl, BackgroundDdls
from tests.integration.mysql_replica import SHOP, Replica, commit_at, read, replica, run, states
from tests.integration.run_process import started, word
from tests.rig.clean_server import clean_server
from tests.rig.ddl_type_feed import SCHEMA, feed_of
from tests.rig.ddl_types import TypeCase
from tests.rig.fake_source import FakeSource
from tests.rig.faulty_sink import DeathError
from tests.rig.local_replica import Replica as Replay
from tests.rig.upstream import NAME, clear_sink, small_upstream

DOUBLINGS = 17
TABLE = "CREATE TABLE `t` (`id` INT PRIMARY KEY,`v` INT,`w` VARCHAR(20))"
NAMES = ("by_v", "by_v_id", "by_w", "by_w_v")
INDEXES = "ALTER TABLE t ADD INDEX by_v (v), ADD INDEX by_v_id (v, id), ADD INDEX by_w (w), ADD INDEX by_w_v (w, v)"
"""Four of them, over 131,072 rows: a server builds for a second or more."""


@pytest.fixture
def url(mysql_url: str) -> Iterator[str]:
    clean_server(mysql_url, SHOP, SCHEMA)
    run(mysql_url, f"CREATE SCHEMA {SHOP}")
    yield mysql_url
    clean_server(mysql_url, SHOP, SCHEMA)


@pytest.fixture
def shop(url: str, least_privileged_url: str) -> Iterator[Replica]:
    with replica(least_privileged_url, background=True) as opened:
        yield opened


def make_table(url: str, doublings: int = DOUBLINGS) -> None:
    run(url, f"CREATE TABLE {SHOP}.t (id INT PRIMARY KEY, v VARCHAR(100), w VARCHAR(100))", f"INSERT INTO {SHOP}.t VALUES (0, 'a', 'b')")
    for power in range(doublings):
        # MySQL wants a schema for it, although the names have theirs.
        run(
            url,
            f"USE {SHOP}",
            f"INSERT INTO {SHOP}.t SELECT id + {1 << power}, SHA2(RAND(), 256), SHA2(RAND(), 256) FROM {SHOP}.t",
        )


def indexes(url: str) -> set[str]:
    found = read(url, f"SELECT DISTINCT index_name FROM information_schema.statistics WHERE table_schema = '{SHOP}' AND table_name = 't'")
    return {str(name) for (name,) in found} - {"PRIMARY"}


def wait_until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def build_of(shop: Replica) -> BackgroundDdl:
    (build,) = shop.sink._ddl._builds._builds
    return build


def test_rows_go_on_while_an_index_is_built(shop: Replica, url: str) -> None:
    make_table(url)
    shop.ddl(INDEXES, "t")
    build, written = build_of(shop), 0
    assert states(shop) == [DdlState.BACKGROUND]
    while build.is_running:
        assert shop.write(f"REPLACE INTO {SHOP}.t VALUES ({-written - 1}, 'row', 'row')").state == "committed"
        written += build.is_running
    assert written, "no row was written while the server built"
    assert shop.sink.heartbeat_lost() is None
    assert states(shop) == [DdlState.DONE]
    assert indexes(url) == set(NAMES)
    assert read(url, f"SELECT COUNT(*) FROM {SHOP}.t FORCE INDEX (by_v) WHERE v = 'row'")[0][0] >= written


def test_what_is_recorded_before_the_ddl_is_not_lost(shop: Replica, url: str) -> None:
    make_table(url, 0)
    event = DdlEvent(commit_ts=shop.tick(), schema=SHOP, table="t", query="CREATE INDEX by_v ON t (v)", ddl_type=0)
    places = {FoldedName("shop", "log"): FoldedName("", "")}
    before = replace(commit_at(event.commit_ts), locations=places, known_tables=frozenset({event.name.fold()}))
    shop.sink.run_ddl(shop.fence, identity(event), event, before=before, after=commit_at(event.commit_ts))
    shop.sink.finish_ddls()
    progress = shop.sink.load()
    assert progress is not None
    assert (shop.sink.bookkeeping.locations(), progress.known_tables) == (places, {event.name.fold()})


def test_the_next_ddl_of_the_table_waits_for_the_index_and_another_table_does_not(shop: Replica, url: str) -> None:
    make_table(url)
    shop.ddl(INDEXES, "t")
    shop.ddl("CREATE TABLE u (id INT PRIMARY KEY)", "u")
    assert states(shop) == [DdlState.BACKGROUND, DdlState.DONE]
    shop.ddl("ALTER TABLE t DROP INDEX by_v, ADD UNIQUE INDEX by_id (id)", "t")
    assert states(shop) == [DdlState.DONE] * 3
    assert indexes(url) == {*NAMES, "by_id"} - {"by_v"}


@pytest.mark.parametrize("next_ddl", ["DROP TABLE t", f"DROP DATABASE {SHOP}", "RENAME TABLE t TO u"])
def test_what_takes_the_table_away_waits_for_the_index(shop: Replica, url: str, next_ddl: str) -> None:
    make_table(url, 12)
    shop.ddl("CREATE INDEX by_v ON t (v)", "t")
    shop.ddl(next_ddl, "" if "DATABASE" in next_ddl else "t")
    assert states(shop) == [DdlState.DONE] * 2


@pytest.mark.parametrize("is_there", [False, True])
def test_a_run_that_is_killed_while_it_builds_leaves_the_index_to_the_next_one(url: str, least_privileged_url: str, is_there: bool) -> None:  # noqa: FBT001
    make_table(url)
    with started(least_privileged_url, "beside", INDEXES) as process:
        assert word(process) == "ready"
        if is_there:
            wait_until(lambda: len(indexes(url)) == len(NAMES))
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    with replica(least_privileged_url, background=True) as shop:
        shop.fence = shop.sink.settle(shop.fence)
        shop.write(f"REPLACE INTO {SHOP}.t VALUES (-1, 'row', 'row')")
        shop.sink.finish_ddls()
        assert states(shop) == [DdlState.DONE]
    assert indexes(url) == set(NAMES)


def test_a_build_of_a_dead_run_is_finished_in_the_foreground_where_background_was_switched_off(url: str, least_privileged_url: str) -> None:
    make_table(url)
    with started(least_privileged_url, "beside", INDEXES) as process:
        assert word(process) == "ready"
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    with replica(least_privileged_url) as shop:
        shop.fence = shop.sink.settle(shop.fence)
        assert states(shop) == [DdlState.DONE]
    assert indexes(url) == set(NAMES)


def test_a_take_over_ends_the_build_and_builds_again(url: str, least_privileged_url: str) -> None:
    make_table(url)
    with started(least_privileged_url, "beside", INDEXES) as process:
        assert word(process) == "ready"
        # Frozen: it holds its lock and its session builds on.
        process.send_signal(signal.SIGSTOP)
        with replica(least_privileged_url, background=True, lock_timeout_s=30.0) as shop:
            shop.fence = shop.sink.settle(shop.fence)
            shop.sink.finish_ddls()
            assert states(shop) == [DdlState.DONE]
            assert indexes(url) == set(NAMES)
            process.send_signal(signal.SIGCONT)
            assert word(process) == "Fenced"


def test_a_raised_epoch_ends_the_build_and_settling_builds_again(shop: Replica, url: str) -> None:
    make_table(url)
    shop.ddl(INDEXES, "t")
    shop.fence = shop.sink.raise_epoch().fence
    shop.fence = shop.sink.settle(shop.fence)
    assert shop.sink.heartbeat_lost() is None
    shop.sink.finish_ddls()
    assert (states(shop), indexes(url)) == ([DdlState.DONE], set(NAMES))


def test_what_the_server_cannot_do_online_runs_in_the_foreground(shop: Replica, url: str) -> None:
    make_table(url, 4)
    run(url, f"ALTER TABLE {SHOP}.t ENGINE=MyISAM")
    shop.ddl(INDEXES, "t")
    build_of(shop).join()
    assert indexes(url) == set()
    assert shop.sink.heartbeat_lost() is None
    assert (states(shop), indexes(url)) == ([DdlState.DONE], set(NAMES))


def test_an_index_that_cannot_be_built_stops_the_run_and_the_next_one(url: str, least_privileged_url: str) -> None:
    make_table(url, 4)
    run(url, f"ALTER TABLE {SHOP}.t ADD INDEX by_v (w)")
    with replica(least_privileged_url, background=True) as shop:
        shop.ddl("ALTER TABLE t ADD INDEX by_v (v)", "t")
        build_of(shop).join()
        error = shop.sink.heartbeat_lost()
        assert isinstance(error, FatalSinkError)
        assert error.facts["query"] == "ALTER TABLE t ADD INDEX by_v (v)"
        assert states(shop) == [DdlState.BACKGROUND]
    with replica(least_privileged_url, background=True) as shop:
        shop.sink.settle(shop.fence)
        with pytest.raises(FatalSinkError):
            shop.sink.finish_ddls()
    run(url, f"ALTER TABLE {SHOP}.t DROP INDEX by_v")
    with replica(least_privileged_url, background=True) as shop:
        shop.sink.settle(shop.fence)
        shop.sink.finish_ddls()
        assert (states(shop), indexes(url)) == ([DdlState.DONE], {"by_v"})


@pytest.mark.parametrize("query", ["ALTER TABLE t ADD UNIQUE INDEX by_v (id)", "ALTER TABLE t ADD INDEX by_v (v), ADD COLUMN c INT"])
def test_everything_else_is_waited_for(shop: Replica, url: str, query: str) -> None:
    make_table(url, 4)
    shop.ddl(query, "t")
    assert states(shop) == [DdlState.DONE]


@pytest.mark.parametrize("dies", [False, True])
def test_a_catch_up_ends_when_the_index_is_there(url: str, dies: bool, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: FBT001
    index = TypeCase(number=7, what="", ddl="ALTER TABLE `t` ADD INDEX `by_w`(`w`)", before=(TABLE,), after={})
    upstream = Replay(url, feed_of(index), background=True)
    if dies:
        monkeypatch.setattr(runner, "reach", die_at("ddl.after_intent", query="by_w", ledger=upstream.ledger))
        with pytest.raises(DeathError):
            upstream.catch_up()
        monkeypatch.undo()
    upstream.catch_up()
    assert [(entry.state, entry.ddl.query) for entry in upstream.ledger()][-1] == (DdlState.DONE, index.ddl)
    assert read(url, "SELECT COUNT(*) FROM lab.t FORCE INDEX (by_w) WHERE w LIKE 'row%'") == [(2,)]


def die_at(point: str, *, query: str, ledger: Callable[[], Sequence[LedgerEntry]]) -> Callable[[str], None]:
    """Return a failpoint that kills a run where the last DDL of the ledger is this one."""

    def reach(reached: str) -> None:
        if reached == point and query in ledger()[-1].ddl.query:
            raise DeathError

    return reach


@pytest.mark.parametrize("seed", [1, 2])
def test_a_history_ends_identical_where_indexes_are_built_beside_its_rows(url: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    built, start = [], BackgroundDdls.start

    def counted(self: BackgroundDdls, *of_build: Any) -> None:
        built.append(of_build)
        start(self, *of_build)

    monkeypatch.setattr(BackgroundDdls, "start", counted)
    clear_sink(url)
    upstream = small_upstream(seed, "feed", 150)
    Replay(url, FakeSource(upstream.log), name=NAME, background=True).catch_up()
    assert built
    assert upstream.wrong_in(url) == []
    clear_sink(url)
