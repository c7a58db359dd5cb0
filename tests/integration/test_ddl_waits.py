"""DDLs that wait: for a blocker, for a session that was killed, for a statement that a dead run left, for an answer that was lost."""

import logging
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import make_url

from applier.model.errors import RetryableSinkError, UnknownOutcome
from applier.model.events import DdlEvent
from applier.sinks.ledger_entry import DdlState
from applier.sinks.mysql.ddl.runner import LOCK_WAIT_TIMEOUT
from applier.sinks.mysql.ddl.statement import sessions_with, wait_until_ended
from applier.sources.ticdc.tso import ts_at
from applier.telemetry.retries import retries_noted
from tests.integration.mysql_replica import SHOP, Replica, definitions, engine, read, replica, run, states
from tests.integration.tcp_proxy import proxy_to


class Blocked(logging.Handler):
    """Hears of the first blocked DDL."""

    def __init__(self) -> None:
        super().__init__()
        self.heard = threading.Event()
        self.blocked_by = ""

    def emit(self, record: logging.LogRecord) -> None:
        self.blocked_by = str(record.__dict__["blocked_by"])
        self.heard.set()


class Notes:
    """Hears what a daemon's watcher would."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, Any, str]] = []

    def changed(self) -> None:
        """Nothing to see."""

    def note(self, message: str, /, **facts: Any) -> None:
        self.heard.append((message, facts.get("code"), facts["reason"]))


@pytest.fixture
def notes() -> Iterator[Notes]:
    heard = Notes()
    with retries_noted(heard):
        yield heard


def test_a_blocked_ddl_waits_names_its_blocker_and_then_runs(shop: Replica, url: str, notes: Notes) -> None:
    run(url, f"CREATE TABLE {SHOP}.t (id INT PRIMARY KEY)", f"INSERT INTO {SHOP}.t VALUES (1)")
    handler, logger = Blocked(), logging.getLogger("applier.sinks.mysql.ddl.statement")
    logger.addHandler(handler)
    with engine(url).connect() as blocker:
        number = blocker.exec_driver_sql("SELECT CONNECTION_ID()").scalar_one()
        blocker.exec_driver_sql(f"UPDATE {SHOP}.t SET id = 2")
        worker = threading.Thread(target=lambda: shop.ddl("ALTER TABLE t ADD COLUMN v INT", "t"))
        worker.start()
        assert handler.heard.wait(30)
        blocker.rollback()
    worker.join(30)
    logger.removeHandler(handler)
    assert f"session {number} of " in handler.blocked_by
    assert notes.heard[0][:2] == ("retry", LOCK_WAIT_TIMEOUT)
    assert "`v` int" in definitions(url)["t"]
    assert states(shop) == [DdlState.DONE]


def test_a_ddl_that_stays_blocked_is_retryable_and_is_settled_at_the_next_start(url: str, least_privileged_url: str) -> None:
    run(url, f"CREATE SCHEMA {SHOP}", f"CREATE TABLE {SHOP}.t (id INT PRIMARY KEY)", f"INSERT INTO {SHOP}.t VALUES (1)")
    with replica(least_privileged_url, lock_wait_timeout_s=1, retries=0) as shop:
        with engine(url).connect() as blocker:
            number = blocker.exec_driver_sql("SELECT CONNECTION_ID()").scalar_one()
            blocker.exec_driver_sql(f"UPDATE {SHOP}.t SET id = 2")
            with pytest.raises(RetryableSinkError) as caught:
                shop.ddl("ALTER TABLE t ADD COLUMN v INT", "t")
            blocker.rollback()
        assert f"session {number} of " in caught.value.facts["blocked_by"]
        assert states(shop) == [DdlState.INTENT]
        shop.sink.settle(shop.sink.raise_epoch().fence)
        assert "`v` int" in definitions(url)["t"]
        assert states(shop) == [DdlState.DONE]


def test_a_transaction_around_a_ddl_is_repeated_and_noted_when_its_session_was_killed(shop: Replica, url: str, notes: Notes) -> None:
    run(url, f"KILL {shop.sink._ownership._session_id}")
    shop.ddl("CREATE TABLE t (id INT PRIMARY KEY)", "t")
    assert {(message, "recording a DDL's intent" in reason) for message, _, reason in notes.heard} == {("retry", True)}
    assert states(shop) == [DdlState.DONE]


def test_a_ddl_whose_session_was_killed_is_run_again(shop: Replica, url: str, notes: Notes) -> None:
    run(url, f"CREATE TABLE {SHOP}.t (id INT PRIMARY KEY)", f"INSERT INTO {SHOP}.t VALUES (1)")
    with engine(url).connect() as blocker:
        blocker.exec_driver_sql(f"UPDATE {SHOP}.t SET id = 2")
        worker = threading.Thread(target=lambda: shop.ddl("ALTER TABLE t ADD COLUMN v INT", "t"))
        worker.start()
        waiting: list[tuple[int]] = []
        while not waiting:
            waiting = read(url, "SELECT id FROM information_schema.processlist WHERE info LIKE 'ALTER TABLE t ADD%'")
        run(url, f"KILL {waiting[0][0]}")
        blocker.rollback()
    worker.join(30)
    assert {"running a DDL" in reason for _, _, reason in notes.heard} == {True}
    assert "`v` int" in definitions(url)["t"]
    assert states(shop) == [DdlState.DONE]


def test_a_statement_with_characters_of_four_bytes_is_seen_as_long_as_it_runs(url: str, shop: Replica) -> None:
    # Read from outside as the applier reads: MySQL's information_schema.processlist cannot be read meanwhile.
    left = "DO SLEEP(3) /* \N{GRINNING FACE} */ + LENGTH('\N{GRINNING FACE}')"
    connection = shop.sink._ownership.connection
    with ThreadPoolExecutor() as pool:
        running = pool.submit(run, url, left)
        while not sessions_with(connection, left):
            assert not running.done()
        assert sessions_with(connection, "DO SLEEP(3) /* another */") == []
        wait_until_ended(connection, DdlEvent(commit_ts=ts_at(datetime.now(UTC)), schema="", table="", query=left, ddl_type=0))
        assert running.done() or running.exception(1) is None


@pytest.mark.usually_on("mariadb", reason="the wait is ours: the test before looks at each server's list of sessions")
def test_waiting_for_the_statement_of_a_dead_run_logs_few_lines(url: str, shop: Replica, caplog: pytest.LogCaptureFixture) -> None:
    left = "DO SLEEP(15)"
    with ThreadPoolExecutor() as pool:
        running = pool.submit(run, url, left)
        while not read(url, f"SELECT id FROM information_schema.processlist WHERE info = '{left}'"):
            assert not running.done()
        wait_until_ended(
            shop.sink._ownership.connection, DdlEvent(commit_ts=ts_at(datetime.now(UTC)), schema="", table="", query=left, ddl_type=0)
        )
        assert read(url, f"SELECT id FROM information_schema.processlist WHERE info = '{left}'") == []
    logged = [record for record in caplog.records if record.getMessage() == "waiting_for_ddl"]
    # It was looked at thirty times.
    assert 1 <= len(logged) <= 7


@pytest.mark.parametrize("has_arrived", [True, False])
def test_an_intent_whose_commit_lost_its_answer_is_resumed_by_the_next_attempt(
    url: str, least_privileged_url: str, *, has_arrived: bool
) -> None:
    target = make_url(least_privileged_url)
    run(url, f"CREATE SCHEMA {SHOP}")
    with proxy_to(target.host or "127.0.0.1", target.port or 3306) as proxy:
        through = target.set(host="127.0.0.1", port=proxy.port).render_as_string(hide_password=False)
        with replica(through) as shop:
            proxy.cut_after, proxy.cut_before = has_arrived, not has_arrived
            with pytest.raises(UnknownOutcome):
                shop.ddl("CREATE TABLE t (id INT PRIMARY KEY)", "t")
            proxy.cut_after = proxy.cut_before = False
            assert definitions(url) == {}
            shop.fence = shop.sink.raise_epoch().fence
            assert states(shop) == ([DdlState.INTENT] if has_arrived else [])
            shop.ddl("CREATE TABLE t (id INT PRIMARY KEY)", "t", ts=shop.ts)
            assert states(shop) == [DdlState.DONE]
            assert list(definitions(url)) == ["t"]
