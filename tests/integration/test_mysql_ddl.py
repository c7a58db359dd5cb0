"""DDLs on real servers: once, whatever the crash; done only if the catalogue shows it; in the event's schema and time."""

import json
import signal
from datetime import UTC, datetime
from typing import Any

import pytest

from applier.ddl import identity
from applier.model.errors import FatalSinkError, Fenced, NeedsOperator
from applier.model.events import DdlEvent
from applier.sinks.ledger_entry import DdlState
from applier.sources.ticdc.tso import ts_at
from tests.integration.mysql_replica import SHOP, Replica, clean, commit_at, definitions, read, replica, run, states
from tests.integration.run_process import started
from tests.integration.sent_statements import sent_statements

MOST_ROUND_TRIPS = 30
"""Of a DDL on a table, on the owner's session. There may be an ocean between the applier and the database."""
HISTORY: list[tuple[str, str]] = [
    ("", f"CREATE DATABASE {SHOP}"),
    ("t", "CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(10), n INT)"),
    ("t", "ALTER TABLE t ADD COLUMN c INT DEFAULT 7"),
    ("t", "ALTER TABLE t ADD INDEX (v)"),
    ("t", "ALTER TABLE t MODIFY n BIGINT, RENAME COLUMN v TO w"),
    ("u", "RENAME TABLE t TO u"),
    ("l", "CREATE TABLE l LIKE u"),
    ("p", "CREATE TABLE p (id INT PRIMARY KEY) PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (10))"),
    ("p", "ALTER TABLE p ADD PARTITION (PARTITION p1 VALUES LESS THAN (20))"),
    ("x", "CREATE TABLE x (id INT PRIMARY KEY)"),
    ("p", "ALTER TABLE p EXCHANGE PARTITION p0 WITH TABLE x"),
    ("x", "TRUNCATE TABLE x"),
    ("view", "CREATE VIEW view AS SELECT id FROM u"),
    ("l", "DROP TABLE l"),
    ("u", "ALTER TABLE u DROP COLUMN c"),
]


@pytest.mark.usually_on("mariadb", reason="test_deaths_around_ddls.py dies in this process, on each server")
@pytest.mark.parametrize(
    "point",
    [
        "ddl.after_statement",
        *(
            pytest.param(point, marks=pytest.mark.soak(reason="test_deaths_around_ddls.py dies in this process, at each point"))
            for point in ("ddl.after_intent", "ddl.before_done", "ddl.after_done")
        ),
    ],
)
def test_every_ddl_runs_once_although_every_run_dies_at_it(url: str, point: str, least_privileged_url: str) -> None:
    with replica(least_privileged_url) as shop:
        for table, query in HISTORY:
            shop.ddl(query, table)
    expected = definitions(url)
    clean(url)
    for index in range(len(HISTORY)):
        # Settling the DDL before passes this point too.
        count = 2 if point == "ddl.before_done" and index else 1
        with started(least_privileged_url, "ddl", json.dumps(HISTORY), failpoint=f"{point}:{count}") as process:
            assert process.wait(60) == -signal.SIGKILL
        if index == 2:
            run(url, f"INSERT INTO {SHOP}.t (id, v, n) VALUES (1, 'a', 2)")
    with started(least_privileged_url, "ddl", json.dumps(HISTORY)) as process:
        assert process.wait(60) == 0
    assert definitions(url) == expected
    with replica(least_privileged_url) as shop:
        assert states(shop) == [DdlState.DONE] * len(HISTORY)
    assert read(url, f"SELECT id, w, n FROM {SHOP}.u") == [(1, "a", 2)]


SWAPS = {
    "exchange": "ALTER TABLE one EXCHANGE PARTITION p0 WITH TABLE two",
    "rename": "RENAME TABLE one TO x, two TO one, x TO two",
}


def make_twins(url: str, swap: str) -> None:
    """Make two tables that look alike, with a row each."""
    partitions = " PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (10))" if swap == "exchange" else ""
    run(url, f"CREATE SCHEMA {SHOP}", f"CREATE TABLE {SHOP}.one (id INT PRIMARY KEY){partitions}")
    run(url, f"CREATE TABLE {SHOP}.two (id INT PRIMARY KEY)", f"INSERT INTO {SHOP}.one VALUES (1)", f"INSERT INTO {SHOP}.two VALUES (2)")


@pytest.mark.parametrize("point", ["ddl.after_intent", "ddl.after_statement"])
@pytest.mark.parametrize("swap", SWAPS)
def test_tables_that_look_alike_change_places_once(url: str, least_privileged_url: str, swap: str, point: str) -> None:
    make_twins(url, swap)
    history = json.dumps([("one", SWAPS[swap])])
    with started(least_privileged_url, "ddl", history, failpoint=point) as process:
        assert process.wait(60) == -signal.SIGKILL
    with started(least_privileged_url, "ddl", history) as process:
        assert process.wait(60) == 0
    assert [read(url, f"SELECT id FROM {SHOP}.{table}") for table in ("one", "two")] == [[(2,)], [(1,)]]


@pytest.mark.parametrize("fact", ["server", "storage_ids"])
@pytest.mark.parametrize("swap", SWAPS)
def test_storage_ids_of_another_server_do_not_show_whether_tables_were_exchanged(
    url: str, least_privileged_url: str, swap: str, fact: str
) -> None:
    make_twins(url, swap)
    with started(least_privileged_url, "ddl", json.dumps([("one", SWAPS[swap])]), failpoint="ddl.after_intent") as process:
        assert process.wait(60) == -signal.SIGKILL
    changed = "'another'" if fact == "server" else "JSON_OBJECT('', 1, 'p0', 2)"
    for table in ("one", "two"):
        run(url, f"UPDATE applier.ddl_ledger SET before_state = JSON_SET(before_state, '$.\"{SHOP}.{table}\".{fact}', {changed})")
    with replica(least_privileged_url) as shop, pytest.raises(NeedsOperator):
        shop.sink.settle(shop.fence)
    assert [read(url, f"SELECT id FROM {SHOP}.{table}") for table in ("one", "two")] == [[(1,)], [(2,)]]


def test_a_table_with_a_binary_default_is_described(shop: Replica) -> None:
    shop.ddl("CREATE TABLE t (id INT PRIMARY KEY, b BINARY(3) DEFAULT 0x84E50A)", "t")
    shop.ddl("ALTER TABLE t MODIFY b BINARY(3) DEFAULT 0x85E50A", "t")
    shop.ddl("DROP TABLE t", "t")
    ((first, second),) = [[json.loads(entry.before)[f"{SHOP}.t"]["create"] for entry in shop.sink.bookkeeping.ledger()[1:]]]
    assert first != second
    assert states(shop) == [DdlState.DONE] * 3


def test_a_ddl_moves_the_checkpoint_with_its_intent_and_the_fence_twice(shop: Replica) -> None:
    before = shop.fence
    shop.ddl("CREATE TABLE t (id INT PRIMARY KEY)", "t")
    assert (shop.fence.epoch, shop.fence.window_id) == (before.epoch, before.window_id + 2)
    progress = shop.sink.load()
    assert progress is not None
    assert (progress.checkpoint_ts, progress.fence) == (shop.ts, shop.fence)
    assert states(shop) == [DdlState.DONE]


def test_d40_defaults_of_existing_rows_have_the_time_of_the_commit_ts(shop: Replica, url: str) -> None:
    moment = datetime(2021, 3, 4, 5, 6, 7, tzinfo=UTC)
    run(url, f"CREATE TABLE {SHOP}.t (id INT PRIMARY KEY)", f"INSERT INTO {SHOP}.t VALUES (1)")
    shop.ddl("ALTER TABLE t ADD COLUMN at DATETIME DEFAULT CURRENT_TIMESTAMP", "t", ts=ts_at(moment))
    assert read(url, f"SELECT at FROM {SHOP}.t") == [(moment.replace(tzinfo=None),)]
    shop.ddl("CREATE TABLE u (id INT PRIMARY KEY)", "u")
    owner = shop.sink._ownership.connection
    assert abs(owner.exec_driver_sql("SELECT UNIX_TIMESTAMP(SYSDATE()) - UNIX_TIMESTAMP(NOW())").scalar_one()) <= 1
    owner.rollback()


def test_a_schema_that_a_ddl_makes_has_tidbs_default_collation(url: str, least_privileged_url: str) -> None:
    with replica(least_privileged_url) as shop:
        shop.ddl(f"CREATE DATABASE {SHOP}")
        shop.ddl("CREATE TABLE t (id VARCHAR(10) PRIMARY KEY)", "t")
    assert read(url, f"SELECT collation_name FROM information_schema.columns WHERE table_schema = '{SHOP}'") == [("utf8mb4_bin",)]


def test_keys_that_differ_in_case_stay_two_keys_where_the_ddl_names_only_a_charset(shop: Replica, url: str) -> None:
    shop.ddl("CREATE TABLE t (id VARCHAR(10) PRIMARY KEY) DEFAULT CHARSET=utf8mb4", "t")
    shop.ddl("ALTER TABLE t ADD COLUMN v VARCHAR(10) CHARACTER SET utf8mb4, ADD UNIQUE (v)", "t")
    shop.write(f"REPLACE INTO {SHOP}.t VALUES ('a', 'x'), ('A', 'X')")
    assert read(url, f"SELECT COUNT(*) FROM {SHOP}.t") == [(2,)]


@pytest.mark.parametrize(
    ("prepared", "table", "query"),
    [
        ("CREATE TABLE {s}.t (other INT)", "t", "CREATE TABLE t (id INT, v INT)"),
        ("CREATE TABLE {s}.t (id INT, v INT)", "t", "ALTER TABLE t ADD COLUMN w INT, ADD COLUMN v INT"),
        ("CREATE TABLE {s}.u (id INT)", "u", "RENAME TABLE t TO u"),
        ("CREATE TABLE {s}.t (id INT, b INT)", "t", "ALTER TABLE t RENAME COLUMN a TO b"),
        ("CREATE TABLE {s}.t (id INT NOT NULL, v INT PRIMARY KEY)", "t", "ALTER TABLE t ADD PRIMARY KEY (id)"),
        ("CREATE TABLE {s}.other (id INT)", "t", "TRUNCATE TABLE t"),
        ("CREATE TABLE {s}.other (id INT)", "t", "ALTER TABLE t ADD COLUMN v INT"),
        ("CREATE VIEW {s}.t AS SELECT 1 AS id", "t", "CREATE VIEW t AS SELECT 2 AS id"),
        ("CREATE TABLE {s}.other (id INT)", "t", "THIS IS NO SQL"),
    ],
)
def test_a_result_that_differs_stops_with_the_statement_and_the_intent_stays(
    shop: Replica, url: str, prepared: str, table: str, query: str
) -> None:
    run(url, prepared.format(s=SHOP))
    with pytest.raises(FatalSinkError) as caught:
        shop.ddl(query, table)
    assert caught.value.facts["query"] == query
    assert caught.value.facts["commit_ts"] == shop.ts
    assert "applier ddl" in caught.value.remedy or "upstream" in caught.value.remedy
    (entry,) = shop.sink.bookkeeping.ledger()
    assert entry.state is DdlState.INTENT
    assert entry.error.startswith(("the database failed while running a DDL", "the sink's server does not know words of the DDL"))


def test_the_operator_settles_a_ddl_that_cannot_run(shop: Replica) -> None:
    with pytest.raises(FatalSinkError):
        shop.ddl("ALTER TABLE t ADD COLUMN v INT", "t")
    assert shop.sink.bookkeeping.resolve_ddl(shop.ts, SHOP, "t", DdlState.DONE) == 1
    progress = shop.sink.load()
    assert progress is not None
    assert shop.sink.settle(progress.fence) == progress.fence


def test_retry_runs_it_again_without_a_comparison(shop: Replica, url: str) -> None:
    with pytest.raises(FatalSinkError):
        shop.ddl("ALTER TABLE t ADD COLUMN v INT", "t")
    run(url, f"CREATE TABLE {SHOP}.t (id INT PRIMARY KEY)")
    assert shop.sink.bookkeeping.resolve_ddl(shop.ts, SHOP, "t", None) == 1
    progress = shop.sink.load()
    assert progress is not None
    shop.sink.settle(progress.fence)
    assert "`v` int" in definitions(url)["t"]
    assert states(shop) == [DdlState.DONE]


def test_an_intent_that_no_comparison_can_decide_asks_the_operator(url: str, least_privileged_url: str) -> None:
    run(url, f"CREATE SCHEMA {SHOP}")
    query = "OPTIMIZE SOMETHING"
    with started(least_privileged_url, "ddl", json.dumps([("t", query)]), failpoint="ddl.after_intent") as process:
        assert process.wait(60) == -signal.SIGKILL
    with replica(least_privileged_url) as shop, pytest.raises(NeedsOperator) as caught:
        shop.sink.settle(shop.fence)
    assert caught.value.facts["query"] == query


def test_a_skipped_ddl_is_in_the_ledger_and_does_not_run(shop: Replica, url: str) -> None:
    ddl = DdlEvent(commit_ts=shop.tick(), schema=SHOP, table="t", query="CREATE TABLE t (id INT)", ddl_type=3)
    fence = shop.sink.skip_ddl(shop.fence, identity(ddl), ddl, after=commit_at(ddl.commit_ts))
    assert fence.window_id == shop.fence.window_id + 1
    assert states(shop) == [DdlState.SKIPPED]
    assert definitions(url) == {}


def test_a_ddl_asks_twice_for_its_tables_name_and_not_again_what_the_server_is(shop: Replica) -> None:
    shop.ddl("CREATE TABLE t (id INT PRIMARY KEY, v INT)", "t")
    shop.ddl("ALTER TABLE t ADD INDEX i (v)", "t")
    owner: Any = shop.sink
    with sent_statements(owner._ownership.connection) as sent:
        shop.ddl("ALTER TABLE t DROP INDEX i", "t")
    # Before the intent, and when the statement is sent: in between somebody may have changed something.
    assert sum("information_schema.SCHEMATA" in statement for statement in sent) == 2
    assert [statement for statement in sent if "VERSION()" in statement or ".COLLATIONS" in statement] == []
    assert len(sent) <= MOST_ROUND_TRIPS, "\n".join(sent)


def test_a_ddl_of_a_fenced_run_does_not_begin(shop: Replica, url: str) -> None:
    shop.sink.raise_epoch()
    with pytest.raises(Fenced):
        shop.ddl("CREATE TABLE t (id INT)", "t")
    assert shop.sink.bookkeeping.ledger() == []
    assert definitions(url) == {}


def test_texts_in_a_view_have_tidbs_default_collation(url: str, shop: Replica) -> None:
    shop.ddl("CREATE VIEW w AS SELECT 'a' AS x", "w")
    collations = read(url, f"SELECT COLLATION_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = '{SHOP}' AND TABLE_NAME = 'w'")
    assert collations == [("utf8mb4_bin",)]


def test_a_partition_is_exchanged_although_a_column_was_added_to_one_table_only(url: str, shop: Replica) -> None:
    # MySQL adds the column without rebuilding the table, and refuses the EXCHANGE then (1731).
    shop.ddl("CREATE TABLE p (a INT PRIMARY KEY, b INT) PARTITION BY RANGE (a) (PARTITION p0 VALUES LESS THAN (10))", "p")
    shop.write(f"REPLACE INTO {SHOP}.p VALUES (1, 1)")
    shop.ddl("ALTER TABLE p ADD COLUMN c INT DEFAULT 5", "p")
    shop.ddl("CREATE TABLE x (a INT PRIMARY KEY, b INT, c INT DEFAULT 5)", "x")
    shop.write(f"REPLACE INTO {SHOP}.x VALUES (3, 3, 3)")
    shop.ddl("ALTER TABLE p EXCHANGE PARTITION p0 WITH TABLE x", "p")
    assert read(url, f"SELECT * FROM {SHOP}.p") == [(3, 3, 3)]
    assert read(url, f"SELECT * FROM {SHOP}.x") == [(1, 1, 5)]
    assert set(states(shop)) == {DdlState.DONE}
