"""Tables that upstream has at a position and the sink lacks there."""

import sqlite3
from contextlib import closing

import pytest

from applier.ddl import identity
from applier.model.errors import NeedsOperator, SourceError
from applier.model.events import DdlEvent, TableName
from applier.model.position import Ts
from applier.planner.table_check import ListedTables
from applier.replica.missing_tables import FIRST_S, MissingTables, missing_at, missing_tables
from applier.selection import LEFT_OUT
from applier.sinks.progress import ProgressCommit
from applier.sinks.registry import open_sink
from applier.sinks.settings import SinkSettings

ORDERS, LINES = TableName("shop", "orders"), TableName("shop", "Lines")


@pytest.fixture
def sink(tmp_path):
    path = tmp_path / "replica.db"
    with open_sink(SinkSettings(url=f"sqlite:///{path}")) as sink:
        sink.migrate()
        sink.acquire()
        sink.begin(Ts(0))
        with closing(sqlite3.connect(path)) as connection:
            connection.execute('CREATE TABLE "shop.orders" (id INTEGER PRIMARY KEY)')
        yield sink


def listed(*names, to=lambda name: name):
    return ListedTables({name: to(name) for name in names})


def commit(sink, **facts):
    sink.save(sink.load().fence, ProgressCommit(checkpoint_ts=Ts(1), positions={}, **facts))


def test_a_table_without_a_create_is_missing(sink):
    assert missing_tables(sink, listed(ORDERS, LINES)) == [LINES]
    assert missing_tables(sink, listed(LINES, to=lambda _: ORDERS)) == []


def run(sink, query, table, ddl_type, *, is_skipped=False):
    ddl = DdlEvent(commit_ts=Ts(10), schema="shop", table=table, query=query, ddl_type=ddl_type)
    after = ProgressCommit(checkpoint_ts=Ts(10), positions={})
    if is_skipped:
        sink.skip_ddl(sink.load().fence, identity(ddl), ddl, after=after)
    else:
        sink.run_ddl(sink.load().fence, identity(ddl), ddl, before=after, after=after)


@pytest.mark.parametrize("is_skipped", [True, False])
def test_what_a_statement_of_the_stream_creates_is_not_missing(sink, is_skipped):
    run(sink, "CREATE TABLE `Lines` (id INT PRIMARY KEY)", "lines", 3, is_skipped=is_skipped)
    assert missing_tables(sink, listed(LINES)) == []


def test_what_a_skipped_statement_drops_is_not_missing(sink):
    # With semi-synchronous replication a primary logs a DDL before its catalogue shows it.
    run(sink, "DROP TABLE `Lines`", "Lines", 4, is_skipped=True)
    assert missing_tables(sink, listed(LINES)) == []


def test_what_a_dropped_schema_held_is_not_missing(sink):
    run(sink, "DROP DATABASE shop", "", 2, is_skipped=True)
    assert missing_tables(sink, listed(LINES)) == []


@pytest.mark.parametrize(
    ("query", "table", "ddl_type"),
    [
        ("CREATE DATABASE IF NOT EXISTS shop", "", 1),
        ("ALTER TABLE orders ADD CONSTRAINT k FOREIGN KEY (id) REFERENCES `Lines` (id)", "orders", 9),
    ],
)
def test_a_table_that_a_statement_only_mentions_is_missing(sink, query, table, ddl_type):
    run(sink, query, table, ddl_type, is_skipped=True)
    assert missing_tables(sink, listed(LINES)) == [LINES]


def test_a_table_that_was_left_out_is_not_missing_and_a_renamed_one_is_looked_for_where_it_is(sink):
    commit(sink, locations={LINES.fold(): LEFT_OUT})
    assert missing_tables(sink, listed(LINES)) == []
    commit(sink, locations={LINES.fold(): ORDERS.fold()})
    assert missing_tables(sink, listed(LINES)) == []


def test_ten_thousand_tables_cost_as_many_statements_as_one(sink, monkeypatch):
    calls = []
    monkeypatch.setattr(sink, "present", lambda tables: calls.append(len(tables)) or frozenset())
    assert len(missing_tables(sink, listed(*(TableName("shop", f"t{number}") for number in range(10_000))))) == 10_000
    assert calls == [10_000]


class Upstream:
    """Answers in turn."""

    def __init__(self, *answers):
        self.answers, self.asked = list(answers), []

    def listed_at(self, ts, settled=()):
        self.asked.append((ts, list(settled)))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def test_what_is_missing_is_listed_again_once_its_own_statements_have_ended(sink):
    upstream = Upstream(listed(ORDERS, LINES), listed(ORDERS))
    assert missing_at(sink, upstream, Ts(7)) == []
    assert upstream.asked == [(7, []), (7, [LINES])]


def test_an_upstream_that_cannot_tell_the_second_time_has_not_told(sink):
    assert missing_at(sink, Upstream(listed(LINES), None), Ts(7)) is None


@pytest.mark.parametrize("answer", [None, SourceError("upstream refuses access")])
def test_a_run_looks_once_and_again_only_where_upstream_could_not_tell(sink, answer):
    now = [0.0]
    upstream = Upstream(answer, listed(ORDERS))
    missing = MissingTables(sink, upstream, clock=lambda: now[0])
    for second in range(1, 20):
        now[0] = float(second)
        missing.check_if_due(Ts(second))
    assert [ts for ts, _ in upstream.asked] == [FIRST_S, 3 * FIRST_S]


def test_a_run_stops_and_names_the_table_and_what_to_run(sink):
    with pytest.raises(NeedsOperator, match="1 table that upstream has") as caught:
        MissingTables(sink, Upstream(listed(ORDERS, LINES), listed(ORDERS, LINES))).check(Ts(7))
    assert (caught.value.exit_code, caught.value.facts["tables"]) == (6, "shop.Lines")
    assert "create it in the sink as upstream has it" in caught.value.remedy


def test_a_source_that_is_not_upstream_is_not_asked(sink):
    MissingTables(sink, None).check(Ts(7))
