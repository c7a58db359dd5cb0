"""A DDL that the server refused has not run, whatever anybody does to its table later; an unknown outcome is compared, not guessed."""

import json
import signal
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from applier.ddl import identity
from applier.model.errors import FatalSinkError, NeedsOperator, RetryableSinkError
from applier.model.events import DdlEvent
from applier.sinks.ledger_entry import DdlState
from applier.sources.ticdc.tso import ts_at
from tests.integration.mysql_replica import SHOP, Replica, clean, commit_at, engine, read, replica, run
from tests.integration.run_process import started

PARTITIONED = "PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (10), PARTITION p1 VALUES LESS THAN (20))"


@pytest.fixture
def url(mysql_url: str) -> Iterator[str]:
    clean(mysql_url)
    run(mysql_url, f"CREATE SCHEMA {SHOP}")
    yield mysql_url
    clean(mysql_url)


def settle(url: str) -> None:
    """Begin as the next run does."""
    with replica(url) as shop:
        shop.sink.settle(shop.fence)
        assert [entry.state for entry in shop.sink.bookkeeping.ledger()] == [DdlState.DONE]


def columns_of(url: str, table: str) -> list[str]:
    return [row[0] for row in read(url, f"SHOW COLUMNS FROM {SHOP}.{table}")]


class Refusal:
    """A statement that the server refuses, what an operator does then, and what must be true when it has run."""

    def __init__(self, query: str, table: str, prepared: list[str], mended: list[str], shown: tuple[str, list[tuple[object, ...]]]) -> None:
        self.query, self.table, self.prepared, self.mended, self.shown = query, table, prepared, mended, shown

    def prepare(self, url: str) -> None:
        run(url, *(statement.format(s=SHOP) for statement in self.prepared))

    def mend(self, url: str) -> None:
        run(url, *(statement.format(s=SHOP) for statement in self.mended))

    def check(self, url: str) -> None:
        query, rows = self.shown
        assert read(url, query.format(s=SHOP)) == rows


REFUSALS = {
    "rename": Refusal(
        "RENAME TABLE t TO u",
        "u",
        ["CREATE TABLE {s}.t (id INT PRIMARY KEY, v INT)", "INSERT INTO {s}.t VALUES (1, 1)", "CREATE TABLE {s}.u (id INT PRIMARY KEY)"],
        ["DROP TABLE {s}.u", "ALTER TABLE {s}.t ADD INDEX (v)"],
        ("SELECT id FROM {s}.u", [(1,)]),
    ),
    "drop column": Refusal(
        "ALTER TABLE t DROP COLUMN v",
        "t",
        [
            "CREATE TABLE {s}.p (id INT PRIMARY KEY)",
            "CREATE TABLE {s}.t (id INT PRIMARY KEY, v INT, CONSTRAINT f FOREIGN KEY (v) REFERENCES {s}.p (id))",
        ],
        ["ALTER TABLE {s}.t DROP FOREIGN KEY f"],
        ("SELECT column_name FROM information_schema.columns WHERE table_schema = '{s}' AND table_name = 't'", [("id",)]),
    ),
    "exchange": Refusal(
        "ALTER TABLE p EXCHANGE PARTITION p0 WITH TABLE x",
        "p",
        [
            f"CREATE TABLE {{s}}.p (id INT PRIMARY KEY) {PARTITIONED}",
            "CREATE TABLE {s}.x (id INT PRIMARY KEY, v INT)",
            "INSERT INTO {s}.p VALUES (1)",
        ],
        ["ALTER TABLE {s}.x DROP COLUMN v"],
        ("SELECT id FROM {s}.x", [(1,)]),
    ),
}


@pytest.mark.parametrize("what", REFUSALS)
def test_a_refused_ddl_runs_when_the_operator_has_removed_the_obstacle(url: str, least_privileged_url: str, what: str) -> None:
    refusal = REFUSALS[what]
    refusal.prepare(url)
    with replica(least_privileged_url) as shop, pytest.raises(FatalSinkError):
        shop.ddl(refusal.query, refusal.table)
    refusal.mend(url)
    settle(least_privileged_url)
    refusal.check(url)


@pytest.mark.parametrize("what", REFUSALS)
def test_a_refusal_that_a_crash_kept_out_of_the_ledger_is_found_by_comparing_the_tables(
    url: str, least_privileged_url: str, what: str
) -> None:
    refusal = REFUSALS[what]
    refusal.prepare(url)
    with started(least_privileged_url, "ddl", json.dumps([(refusal.table, refusal.query)]), failpoint="ddl.refused") as process:
        assert process.wait(60) == -signal.SIGKILL
    refusal.mend(url)
    settle(least_privileged_url)
    refusal.check(url)


def blocked_truncate(url: str, least_privileged_url: str) -> None:
    """Let a TRUNCATE fail because somebody holds a lock."""
    run(url, f"CREATE TABLE {SHOP}.t (id INT PRIMARY KEY, v INT)", f"INSERT INTO {SHOP}.t VALUES (1, 1)")
    with replica(least_privileged_url, lock_wait_timeout_s=1, retries=0) as shop, engine(url).connect() as blocker:
        blocker.exec_driver_sql(f"UPDATE {SHOP}.t SET v = 2")
        with pytest.raises(RetryableSinkError):
            shop.ddl("TRUNCATE TABLE t", "t")
        blocker.rollback()


def test_a_truncate_that_timed_out_on_a_lock_runs_although_somebody_changed_the_table(url: str, least_privileged_url: str) -> None:
    blocked_truncate(url, least_privileged_url)
    run(url, f"ALTER TABLE {SHOP}.t ADD INDEX (v)")
    settle(least_privileged_url)
    assert read(url, f"SELECT * FROM {SHOP}.t") == []


def test_a_refusal_is_in_the_ledger_with_its_reason(url: str, least_privileged_url: str) -> None:
    with replica(least_privileged_url) as shop:
        with pytest.raises(FatalSinkError):
            shop.ddl("ALTER TABLE t ADD COLUMN v INT", "t")
        (entry,) = shop.sink.bookkeeping.ledger()
    assert (entry.state, entry.before) == (DdlState.INTENT, "")
    assert f"{SHOP}.t" in entry.error


def killed_at(point: str, least_privileged_url: str, query: str, table: str = "t") -> None:
    with started(least_privileged_url, "ddl", json.dumps([(table, query)]), failpoint=point) as process:
        assert process.wait(60) == -signal.SIGKILL


ADD = "ALTER TABLE t ADD COLUMN c INT DEFAULT 7"


@pytest.mark.parametrize("point", ["ddl.after_intent", "ddl.after_statement"])
def test_a_table_that_is_neither_as_before_nor_as_after_the_ddl_asks_the_operator(url: str, least_privileged_url: str, point: str) -> None:
    run(url, f"CREATE TABLE {SHOP}.t (id INT PRIMARY KEY, v INT)")
    killed_at(point, least_privileged_url, ADD)
    run(url, f"ALTER TABLE {SHOP}.t ADD INDEX (v)")
    with replica(least_privileged_url) as shop, pytest.raises(NeedsOperator) as caught:
        shop.sink.settle(shop.fence)
    assert caught.value.facts["query"] == ADD
    assert "applier ddl done" in caught.value.remedy
    assert columns_of(url, "t") == (["id", "v"] if point == "ddl.after_intent" else ["id", "v", "c"])


@pytest.mark.parametrize("point", ["ddl.after_intent", "ddl.after_statement"])
def test_another_wording_of_the_same_definition_is_no_change(url: str, least_privileged_url: str, point: str) -> None:
    run(url, f"CREATE TABLE {SHOP}.t (id INT PRIMARY KEY, v INT DEFAULT 5, n VARCHAR(10) NOT NULL)")
    run(url, f"INSERT INTO {SHOP}.t VALUES (1, 1, 'x')")
    killed_at(point, least_privileged_url, ADD)
    # Another version's display widths, quotes, and character sets.
    ((before,),) = read(url, "SELECT before_state FROM applier.ddl_ledger")
    worded = before.replace("int(11)", "int").replace("int NOT", "int(11) NOT").replace("DEFAULT 5", "DEFAULT '5'")
    assert worded != before
    with engine(url).begin() as connection:
        connection.exec_driver_sql("UPDATE applier.ddl_ledger SET before_state = %s", (worded,))
    settle(least_privileged_url)
    assert columns_of(url, "t") == ["id", "v", "n", "c"]
    assert read(url, f"SELECT c FROM {SHOP}.t") == [(7,)]


def test_an_index_that_was_dropped_before_the_crash_is_not_dropped_again(url: str, least_privileged_url: str) -> None:
    run(url, f"CREATE TABLE {SHOP}.t (id INT PRIMARY KEY, v INT, KEY k (v))")
    killed_at("ddl.after_statement", least_privileged_url, "DROP INDEX k ON t")
    settle(least_privileged_url)
    assert read(url, f"SHOW INDEX FROM {SHOP}.t WHERE Key_name = 'k'") == []


def test_no_scratch_table_is_left_behind(url: str, least_privileged_url: str) -> None:
    run(url, f"CREATE TABLE {SHOP}.t (id INT PRIMARY KEY, v INT)")
    killed_at("ddl.after_statement", least_privileged_url, ADD)
    killed_at("ddl.scratch", least_privileged_url, ADD)
    assert [row for row in read(url, "SHOW TABLES FROM applier") if "scratch" in row[0]]
    settle(least_privileged_url)
    assert [row for row in read(url, "SHOW TABLES FROM applier") if "scratch" in row[0]] == []


def test_the_scratch_table_of_a_dead_run_is_dropped_at_the_next_start(url: str, least_privileged_url: str) -> None:
    run(url, f"CREATE TABLE {SHOP}.t (id INT PRIMARY KEY, v INT)")
    killed_at("ddl.after_statement", least_privileged_url, ADD)
    killed_at("ddl.scratch", least_privileged_url, ADD)
    with replica(least_privileged_url) as shop:
        progress = shop.sink.load()
        assert progress is not None
        shop.sink.bookkeeping.resolve_ddl(progress.checkpoint_ts, SHOP, "t", DdlState.DONE)
        shop.sink.settle(shop.fence)
    assert [row for row in read(url, "SHOW TABLES FROM applier") if "scratch" in row[0]] == []


def test_the_table_is_described_again_before_the_statement_is_sent_again(url: str, least_privileged_url: str) -> None:
    run(url, f"CREATE TABLE {SHOP}.t (id INT PRIMARY KEY, v INT)")
    killed_at("ddl.after_intent", least_privileged_url, ADD)
    with replica(least_privileged_url) as shop:
        progress = shop.sink.load()
        assert progress is not None
        shop.sink.bookkeeping.resolve_ddl(progress.checkpoint_ts, SHOP, "t", None)
    run(url, f"ALTER TABLE {SHOP}.t ADD INDEX by_v (v)")
    killed_at("ddl.before_done", least_privileged_url, ADD)
    settle(least_privileged_url)
    assert columns_of(url, "t") == ["id", "v", "c"]


def variables_of(shop: Replica) -> dict[str, str]:
    """Read what a session may have left over; the clock and what the server counts run on."""
    connection = shop.sink._ownership.connection
    found = {str(name): str(value) for name, value in connection.exec_driver_sql("SHOW SESSION VARIABLES")}
    found["is the clock's time"] = connection.exec_driver_sql(
        "SELECT ABS(UNIX_TIMESTAMP(SYSDATE()) - UNIX_TIMESTAMP(NOW())) <= 1"
    ).scalar_one()
    connection.rollback()
    return {name: value for name, value in found.items() if name not in RUNNING}


RUNNING = {
    "timestamp",
    "pseudo_thread_id",
    "error_count",
    "warning_count",
    "rand_seed1",
    "rand_seed2",
    "last_insert_id",
    "identity",
    "statement_id",
}


@pytest.mark.parametrize(
    "query", ["ALTER TABLE missing ADD COLUMN v INT", "CREATE TABLE t (id NO_SUCH_TYPE)", "ALTER TABLE t ADD COLUMN v INT"]
)
def test_a_ddl_that_fails_leaves_the_session_as_it_was(url: str, least_privileged_url: str, query: str) -> None:
    run(url, f"CREATE TABLE {SHOP}.t (id INT PRIMARY KEY, v BIGINT)")
    with replica(least_privileged_url) as shop:
        before = variables_of(shop)
        with pytest.raises(FatalSinkError):
            shop.ddl(query, "t", ts=ts_at(datetime(2021, 3, 4, tzinfo=UTC)))
        assert variables_of(shop) == before


def test_a_ddl_that_failed_once_ends_after_it_began(url: str, least_privileged_url: str) -> None:
    with replica(least_privileged_url) as shop:
        with pytest.raises(FatalSinkError):
            shop.ddl("ALTER TABLE t ADD COLUMN v INT", "t", ts=ts_at(datetime(2021, 3, 4, tzinfo=UTC)))
        run(url, f"CREATE TABLE {SHOP}.t (id INT PRIMARY KEY)")
        shop.sink.settle(shop.sink.raise_epoch().fence)
        (entry,) = shop.sink.bookkeeping.ledger()
        assert entry.ended_at is not None
        assert entry.began_at <= entry.ended_at


def test_a_ddl_without_a_schema_does_not_run_in_that_of_the_ddl_before(url: str, least_privileged_url: str) -> None:
    with replica(least_privileged_url) as shop:
        shop.ddl("CREATE TABLE t (id INT PRIMARY KEY)", "t")
        event = DdlEvent(commit_ts=shop.tick(), schema="", table="", query="CREATE TABLE u (id INT PRIMARY KEY)", ddl_type=0)
        at = commit_at(event.commit_ts)
        with pytest.raises(FatalSinkError):
            shop.sink.run_ddl(shop.fence, identity(event), event, before=at, after=at)
    assert [row[0] for row in read(url, f"SHOW TABLES FROM {SHOP}")] == ["t"]
