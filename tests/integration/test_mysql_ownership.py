"""Owning a replica on real servers: two processes, kill -9, frozen owners, lost locks."""

import logging
import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from subprocess import Popen

import pytest
from sqlalchemy import text

from applier.model.errors import Fenced, RetryableSinkError
from applier.mysql.session import discard
from applier.sinks.mysql import ownership
from applier.sinks.mysql import ownership as lock_wait
from applier.sinks.mysql.ownership import LOCK_SLICE_S
from applier.sinks.mysql.registry import end_holder
from applier.sinks.mysql.sink import MysqlSink
from applier.sinks.progress import WriteState
from tests.integration.mysql_replica import LEASE_S, SHOP, Replica, clean, engine, read, replica, run, settings
from tests.integration.run_process import started, stop, word


@pytest.fixture
def url(mysql_url: str) -> Iterator[str]:
    clean(mysql_url)
    run(mysql_url, f"CREATE SCHEMA {SHOP}", f"CREATE TABLE {SHOP}.t (id INT PRIMARY KEY)")
    yield mysql_url
    clean(mysql_url)


@pytest.fixture
def owner(url: str, least_privileged_url: str) -> Iterator["Popen[str]"]:
    with started(least_privileged_url, "hold") as process:
        assert word(process) == "ready"
        yield process


def test_a_second_run_waits_and_then_names_the_owner(
    url: str, owner: "Popen[str]", least_privileged_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "applier")
    sink = MysqlSink(settings(least_privileged_url, lock_timeout_s=0.5))
    began = time.monotonic()
    with pytest.raises(Fenced) as caught:
        sink.acquire()
    assert time.monotonic() - began >= 0.5
    assert caught.value.facts["process"] == owner.pid
    assert caught.value.facts["host"]
    assert caught.value.facts["since"]
    (logged,) = (vars(record) for record in caplog.records if record.getMessage() == "waiting_for_replica_lock")
    assert logged["owner_process"] == owner.pid
    sink.close()
    assert owner.poll() is None


def test_after_kill_9_the_next_start_does_not_wait_for_the_lease(url: str, owner: "Popen[str]", least_privileged_url: str) -> None:
    owner.kill()
    owner.wait()
    with replica(least_privileged_url, lock_timeout_s=0.0) as next_run:
        assert next_run.fence.epoch == 2
        assert next_run.write().state is WriteState.COMMITTED


def test_a_dead_run_is_replaced_although_the_clock_of_the_database_was_set_back_since(
    url: str, owner: "Popen[str]", least_privileged_url: str
) -> None:
    owner.kill()
    owner.wait()
    run(url, "UPDATE applier.owner SET heartbeat_at = heartbeat_at + INTERVAL 1 HOUR")
    with replica(least_privileged_url, lock_timeout_s=5 * LEASE_S) as next_run:
        assert next_run.fence.epoch == 2


def test_a_frozen_owner_is_taken_over_after_its_lease_and_exits_when_it_wakes(
    url: str, owner: "Popen[str]", least_privileged_url: str
) -> None:
    stop(owner)
    with replica(least_privileged_url, lock_timeout_s=5 * LEASE_S) as next_run:
        assert next_run.fence.epoch == 2
        owner.send_signal(signal.SIGCONT)
        assert word(owner) == "Fenced"
        assert next_run.sink.heartbeat_lost() is None
        assert next_run.write().state is WriteState.COMMITTED


def test_take_over_ends_a_living_owner_at_once(url: str, owner: "Popen[str]", least_privileged_url: str) -> None:
    with MysqlSink(settings(least_privileged_url, lease_s=3600)) as sink:
        sink.acquire(take_over=True)
        assert word(owner) == "Fenced"


def test_a_frozen_writer_loses_its_transaction_and_writes_nothing_when_it_wakes(url: str, least_privileged_url: str) -> None:
    with started(least_privileged_url, "write") as zombie:
        assert word(zombie) == "ready"
        os.waitid(os.P_PID, zombie.pid, os.WSTOPPED | os.WNOWAIT)
        with replica(least_privileged_url, lock_timeout_s=5 * LEASE_S) as next_run:
            assert next_run.write(f"REPLACE INTO {SHOP}.t (id) VALUES (3)").state is WriteState.COMMITTED
            zombie.send_signal(signal.SIGCONT)
            assert [word(zombie) for _ in range(3)] == ["failed", "fenced", "Fenced"]
            assert next_run.write().state is WriteState.COMMITTED
    assert read(url, f"SELECT id FROM {SHOP}.t") == [(3,)]
    assert read(url, f"SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = '{SHOP}' AND table_name = 'zombie'") == [(0,)]


def test_a_lock_that_was_lost_is_taken_again_by_its_owner(url: str, least_privileged_url: str) -> None:
    with replica(least_privileged_url) as shop:
        first = shop.sink._ownership._session_id
        run(url, f"KILL {first}")
        deadline = time.monotonic() + 10
        while shop.sink._ownership._session_id == first:
            assert shop.sink.heartbeat_lost() is None
            assert time.monotonic() < deadline
            time.sleep(0.02)
        with pytest.raises(Fenced):
            MysqlSink(settings(least_privileged_url, lock_timeout_s=0.2)).acquire()
        shop.ddl(f"CREATE TABLE {SHOP}.u (id INT PRIMARY KEY)", "u")
        assert shop.sink.raise_epoch().fence.epoch == 2


def test_a_lost_lock_does_not_let_another_run_in_while_the_owner_lives(url: str, least_privileged_url: str) -> None:
    with replica(least_privileged_url) as shop:
        run(url, f"KILL {shop.sink._ownership._session_id}")
        with pytest.raises(Fenced):
            # It takes the lock again and again meanwhile; its own lease says when the owner would be dead.
            MysqlSink(settings(least_privileged_url, lease_s=15.0, lock_timeout_s=1.0)).acquire()
        assert shop.write().state is WriteState.COMMITTED


@contextmanager
def lingering(url: str, shop: Replica) -> Iterator[None]:
    """The owner's session was killed, and for the time of the block the server still holds its lock (it rolls back a DDL, say)."""
    with engine(url).connect() as stand_in:
        run(url, f"KILL {shop.sink._ownership._session_id}")
        lock = {"name": shop.sink._ownership._lock_name}
        assert stand_in.execute(text("SELECT GET_LOCK(:name, 60)"), lock).scalar_one() == 1
        yield
        stand_in.execute(text("SELECT RELEASE_LOCK(:name)"), lock)


def test_a_server_that_takes_its_time_to_end_the_owners_session_is_waited_for(url: str, least_privileged_url: str) -> None:
    with replica(least_privileged_url, lock_timeout_s=0.0) as shop, ThreadPoolExecutor() as pool:
        with lingering(url, shop):
            retaking = pool.submit(shop.sink._ownership.retake)
            wait([retaking], 3 * LOCK_SLICE_S)
        retaking.result(60)
        assert shop.sink.raise_epoch().fence.epoch == 2


def test_a_run_whose_session_does_not_end_may_try_again_and_is_not_its_own_rival(
    url: str, least_privileged_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock_wait, "ENDING_S", 0)
    with replica(least_privileged_url, lock_timeout_s=0.0) as shop:
        with lingering(url, shop), pytest.raises(RetryableSinkError, match="still ending"):
            shop.sink._ownership.retake()
        shop.ddl(f"CREATE TABLE {SHOP}.u (id INT PRIMARY KEY)", "u")


def test_a_session_that_holds_the_lock_is_ended_although_the_first_attempt_at_that_was_cut_off(
    url: str, least_privileged_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with replica(least_privileged_url) as shop:
        owned = shop.sink._ownership
        # As if the server had not noticed that its client is gone.
        unnoticed, owned._connection = owned._connection, None
        with monkeypatch.context() as patched:
            patched.setattr(
                ownership, "end_holder", lambda connection, name: (run(url, f"KILL {owned._session_id}"), end_holder(connection, name))
            )
            with pytest.raises(RetryableSinkError):
                owned.retake()
        owned.retake()
        assert shop.sink.raise_epoch().fence.epoch == 2
        discard(unnoticed)


def test_sessions_are_forgotten_once_they_have_ended(url: str, least_privileged_url: str) -> None:
    for _ in range(3):
        with replica(least_privileged_url) as shop:
            assert shop.write().state is WriteState.COMMITTED
    with replica(least_privileged_url):
        assert len(read(url, "SELECT token FROM applier.owner_session")) == 1


def test_replicas_of_one_server_do_not_disturb_one_another(url: str, least_privileged_url: str) -> None:
    with replica(least_privileged_url) as one, replica(least_privileged_url, name="other") as other:
        assert one.write().state is WriteState.COMMITTED
        assert other.write().state is WriteState.COMMITTED
        assert one.sink.raise_epoch().fence.epoch == 2
        assert other.write().state is WriteState.COMMITTED
