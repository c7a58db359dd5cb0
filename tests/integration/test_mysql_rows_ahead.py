"""Rows ahead of W on real servers: under the fence, side by side, and none in flight when the progress moves."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from sqlalchemy import text

from applier.coordinator.policy import RowPolicy
from applier.demo.simulator.dispatch import Dispatcher
from applier.demo.simulator.history import History, HistoryOptions
from applier.demo.simulator.producer import ProducerOptions
from applier.model.errors import ConfigError
from applier.model.position import Ts
from applier.planner.port import Statement
from applier.sinks.mysql import server_check as shared_locks
from applier.sinks.mysql.writer import close_writer_sessions, writer_of
from applier.sinks.port import Writer
from applier.sinks.progress import Fence, WriteOutcome, WriteState
from applier.sinks.registry import open_sink
from applier.sinks.write_transaction import CHUNK_ATTEMPTS, WriteTransaction
from applier.tasks import plan
from applier.tasks.plan import SMALL_SEGMENT_ROWS
from tests.histories.test_late_copies_of_rows_ahead import respelled
from tests.histories.test_rows_ahead import BY_TABLE
from tests.integration.mysql_replica import LEASE_S, SHOP, Replica, clean, commit_at, engine, read, replica, rows, run, settings
from tests.integration.run_process import started, word
from tests.rig.fake_source import FakeSource
from tests.rig.late_copies import LateCopies
from tests.rig.local_replica import Replica as LocalReplica
from tests.rig.upstream import NAME, clear_sink, upstream


@pytest.fixture
def shop(mysql_url: str, least_privileged_url: str) -> Iterator[Replica]:
    clean(mysql_url)
    run(mysql_url, f"CREATE SCHEMA {SHOP}", f"CREATE TABLE {SHOP}.t (id INT PRIMARY KEY)")
    with replica(least_privileged_url) as opened:
        yield opened
    close_writer_sessions()
    clean(mysql_url)


def row(number: int) -> Statement:
    return rows(f"REPLACE INTO {SHOP}.t VALUES ({number})", Ts(5))


def ids(url: str) -> list[int]:
    return [found[0] for found in read(url, f"SELECT id FROM {SHOP}.t ORDER BY id")]


def test_rows_are_durable_and_the_progress_is_where_it_was(shop: Replica, mysql_url: str) -> None:
    outcome = shop.sink.writer.write_rows(shop.fence, [row(1), row(2)])
    assert (outcome.state, outcome.rows, ids(mysql_url)) == (WriteState.COMMITTED, 2, [1, 2])
    assert shop.sink.load().fence == shop.fence


@pytest.mark.parametrize(
    ("epochs", "windows", "state"), [(-1, 0, WriteState.FENCED), (0, -1, WriteState.RELOAD)], ids=["older epoch", "older window"]
)
def test_a_writer_of_a_dead_run_writes_nothing(shop: Replica, mysql_url: str, epochs: int, windows: int, state: WriteState) -> None:
    old = Fence(shop.fence.epoch + epochs, shop.fence.window_id + windows)
    assert shop.sink.writer.write_rows(old, [row(1)]).state is state
    assert ids(mysql_url) == []


def test_what_is_written_at_once_is_one_transaction(shop: Replica, mysql_url: str) -> None:
    # A copy that repeats deletes and ends before the other rows would leave a hole.
    wrong = rows(f"REPLACE INTO {SHOP}.missing VALUES (1)", Ts(5))
    assert shop.sink.writer.write_rows(shop.fence, [row(1), wrong], at_once=True).state is WriteState.FAILED
    assert ids(mysql_url) == []
    assert shop.sink.writer.write_rows(shop.fence, [row(1), row(2)], at_once=True).rows == 2
    assert ids(mysql_url) == [1, 2]


@pytest.mark.parametrize("most", [0, SMALL_SEGMENT_ROWS], ids=["several tasks", "one task"])
def test_a_late_copy_of_a_delete_removes_no_row_that_its_step_has_written(
    most: int, mysql_url: str, least_privileged_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan, "SMALL_SEGMENT_ROWS", most)
    clear_sink(mysql_url)
    first, then = respelled()
    replica = LocalReplica(least_privileged_url, FakeSource(first), name=NAME, rows=BY_TABLE, new_runner=LateCopies)
    replica.catch_up()
    replica.source = FakeSource(then)
    replica.catch_up()
    assert read(mysql_url, "SELECT HEX(id), n FROM shop.orders") == [("61", 2)]
    assert set(replica.runner.ended) <= {WriteState.RELOAD}


def test_a_server_whose_shared_locks_do_not_hold_is_refused_by_name(shop: Replica, monkeypatch: pytest.MonkeyPatch) -> None:
    ahead = open_sink(replace(shop.sink._settings, rows_ahead=True, name="ahead"))
    ahead.acquire()
    ahead.close()
    monkeypatch.setattr(shared_locks, "VERSION", text("SELECT '8.0.11-TiDB-v8.5.0'"))
    with pytest.raises(ConfigError, match="cannot be used with TiDB") as refused:
        ahead.acquire()
    ahead.close()
    assert refused.value.facts == {"server": "TiDB"}


def test_the_progress_moves_only_after_every_writer_of_rows_has_ended(shop: Replica, mysql_url: str) -> None:
    slow = rows(f"REPLACE INTO {SHOP}.t SELECT 1 + SLEEP(1.5)", Ts(5))
    with ThreadPoolExecutor(2) as pool:
        began = time.monotonic()
        writing = pool.submit(shop.sink.writer.write_rows, shop.fence, [slow])
        time.sleep(0.5)
        with engine(mysql_url).begin() as other:
            shared = other.execute(text("SELECT 1 FROM applier.progress LOCK IN SHARE MODE")).all()
        assert shared
        assert time.monotonic() - began < 1.4
        with engine(mysql_url).begin() as other:
            other.execute(text("SELECT 1 FROM applier.progress FOR UPDATE")).all()
        assert writing.done() or time.monotonic() - began >= 1.4
        assert writing.result().state is WriteState.COMMITTED
    assert shop.sink.save(shop.fence, commit_at(Ts(9))).state is WriteState.COMMITTED
    assert shop.sink.writer.write_rows(shop.fence, [row(2)]).state is WriteState.RELOAD
    assert ids(mysql_url) == [1]


@pytest.mark.parametrize(
    ("point", "states"),
    [
        # The session was ended in its transaction, and the answer to COMMIT is none.
        pytest.param("rows.before_commit", ["reload", "fenced"], id="in a transaction"),
        pytest.param("rows.before_lock", ["fenced", "fenced"], id="between two transactions"),
    ],
)
def test_a_writer_that_wakes_after_a_take_over_writes_no_more_rows(
    point: str, states: list[str], mysql_url: str, least_privileged_url: str
) -> None:
    clean(mysql_url)
    run(mysql_url, f"CREATE SCHEMA {SHOP}", f"CREATE TABLE {SHOP}.t (id INT PRIMARY KEY)")
    with started(least_privileged_url, "rows", failpoint=f"{point}:2:stop") as zombie:
        os.waitid(os.P_PID, zombie.pid, os.WSTOPPED | os.WNOWAIT)
        assert ids(mysql_url) == [1]
        with replica(least_privileged_url, lock_timeout_s=5 * LEASE_S) as next_run:
            assert next_run.fence.epoch == 2
            assert next_run.sink.writer.write_rows(next_run.fence, [row(5)]).state is WriteState.COMMITTED
            zombie.send_signal(signal.SIGCONT)
            assert [word(zombie) for _ in states] == states
            assert next_run.write().state is WriteState.COMMITTED
    assert ids(mysql_url) == [1, 5]
    close_writer_sessions()
    clean(mysql_url)


@pytest.fixture
def attempts(monkeypatch: pytest.MonkeyPatch) -> list[WriteOutcome]:
    """How each attempt at a transaction of rows has ended."""
    ended: list[WriteOutcome] = []
    attempt = WriteTransaction._write_chunk

    def noted(transaction: WriteTransaction, fence: Fence, statements: list[Statement]) -> WriteOutcome:
        outcome = attempt(transaction, fence, statements)
        ended.append(outcome)
        return outcome

    monkeypatch.setattr(WriteTransaction, "_write_chunk", noted)
    return ended


def crossing(first: int, second: int) -> list[Statement]:
    """Two statements of one transaction; the second one comes so late that another writer has locked its row meanwhile."""
    return [row(first), rows(f"REPLACE INTO {SHOP}.t SELECT {second} + SLEEP(0.7)", Ts(5))]


def test_parallel_writers_that_meet_in_a_deadlock_both_end(
    shop: Replica, mysql_url: str, least_privileged_url: str, attempts: list[WriteOutcome]
) -> None:
    # A process keeps one session per settings: these two have one each, as tasks in two processes do.
    writers = [writer_of(settings(least_privileged_url, retries=number)) for number in (2, 3)]
    together = threading.Barrier(2)

    def write(writer: Writer, statements: list[Statement]) -> WriteOutcome:
        together.wait()
        return writer.write_rows(shop.fence, statements)

    with ThreadPoolExecutor(2) as pool:
        outcomes = list(pool.map(write, writers, [crossing(1, 2), crossing(2, 1)]))
    assert [(outcome.state, outcome.rows) for outcome in outcomes] == [(WriteState.COMMITTED, 2)] * 2
    assert ids(mysql_url) == [1, 2]
    failed = [outcome.error for outcome in attempts if outcome.error is not None]
    assert 1 <= len(failed) < CHUNK_ATTEMPTS
    assert {error.facts["code"] for error in failed} == {1213}


@pytest.mark.parametrize("seed", range(300, 304))
def test_a_history_ends_identical(seed: int, mysql_url: str, least_privileged_url: str) -> None:
    dispatcher = (Dispatcher.TABLE, Dispatcher.INDEX_VALUE)[seed % 2]
    drawn = ProducerOptions.drawn(seed)
    images = drawn.images if dispatcher is Dispatcher.TABLE else replace(drawn.images, raw_updates=False)
    options = replace(drawn, dispatcher=dispatcher, images=images, open_tail=False)
    world = upstream(History(seed, HistoryOptions(transactions=50)), options)
    clear_sink(mysql_url)
    row_policy = RowPolicy(by_table=dispatcher is Dispatcher.TABLE, most_rows=60, settle_span=0)
    result = LocalReplica(least_privileged_url, FakeSource(world.log), name=NAME, rows=row_policy).catch_up()
    assert result.checkpoint_ts == world.final_ts
    assert world.wrong_in(mysql_url) == []
