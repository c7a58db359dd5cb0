"""The writer on real servers: all or nothing, under the fence, and honest about what it does not know."""

from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import make_url

from applier.model.errors import (
    FatalSinkError,
    RetryableSinkError,
    RowRefused,
    SinkFull,
    UnknownOutcome,
)
from applier.model.position import Offset, Stream, Ts
from applier.model.rejected_event import EventPosition, KeptRecord, QuarantineState, RejectedEvent
from applier.planner.port import ColumnDescription, Phase, Statement, StatementRows, TableDescription
from applier.sinks.mysql.dialect import MysqlDialect
from applier.sinks.mysql.writer import close_writer_sessions, writer_of
from applier.sinks.port import Writer
from applier.sinks.progress import WriteState
from applier.sinks.quarantine import Quarantined
from tests.integration.mysql_replica import SHOP, Replica, clean, commit_at, engine, read, replica, rows, run, settings
from tests.integration.tcp_proxy import Proxy, proxy_to

TABLE = f"""CREATE TABLE {SHOP}.t (id INT PRIMARY KEY, e ENUM('a','b'), v VARCHAR(3), n TINYINT, d DECIMAL(5,2), at DATETIME,
 ts TIMESTAMP NULL, UNIQUE KEY uk_v (v))"""


@pytest.fixture
def shop(mysql_url: str, least_privileged_url: str) -> Iterator[Replica]:
    clean(mysql_url)
    run(mysql_url, f"CREATE SCHEMA {SHOP}", TABLE)
    with replica(least_privileged_url) as opened:
        yield opened
    clean(mysql_url)


def ids(url: str) -> list[int]:
    return [row[0] for row in read(url, f"SELECT id FROM {SHOP}.t ORDER BY id")]


@pytest.mark.parametrize(
    ("statement", "code", "column"),
    [
        ("(id,v) VALUES (2,'toolong')", 1265, "v"),
        ("(id,v) VALUES (2,'abc ')", 1265, "v"),
        ("(id,n) VALUES (2,300)", 1264, "n"),
        ("(id,d) VALUES (2,1.005)", 1265, "d"),
        ("(id,e,v) VALUES (2,0,'toolong')", 1265, "v"),
        ("(id,n) VALUES (2,'secret')", 1366, None),
        ("(id,at) VALUES (2,'secret')", 1265, "at"),
        ("(id,ts) VALUES (2,'2020-02-31 00:00:00')", {1265, 1264}, "ts"),
    ],
)
def test_a_value_that_the_database_would_alter_stops_with_its_place_and_nothing_is_written(
    shop: Replica, mysql_url: str, statement: str, code: int | set[int], column: str | None
) -> None:
    outcome = shop.write(f"REPLACE INTO {SHOP}.t (id) VALUES (1)", f"REPLACE INTO {SHOP}.t {statement}")
    assert outcome.state is WriteState.FAILED
    error = outcome.error
    assert isinstance(error, FatalSinkError)
    assert error.facts["code"] in (code if isinstance(code, set) else {code})  # MariaDB's code, and MySQL's
    assert error.facts.get("column") == column
    assert (error.facts["table"], error.facts["min_ts"], error.facts["max_ts"]) == (f"{SHOP}.t", shop.ts, shop.ts)
    assert error.remedy
    assert "secret" not in str(error)
    assert ids(mysql_url) == []
    assert shop.write(f"REPLACE INTO {SHOP}.t (id) VALUES (3)").state is WriteState.COMMITTED


def test_values_that_only_strict_servers_refuse_are_written(shop: Replica, mysql_url: str) -> None:
    outcome = shop.write(
        f"REPLACE INTO {SHOP}.t (id,e,at,ts) VALUES (0,0,'2020-02-31 00:00:00','0000-00-00 00:00:00'),(1,1,'0000-00-00','0000-00-00')"
    )
    assert outcome.error is None
    assert read(mysql_url, f"SELECT id, e+0, CAST(at AS CHAR) FROM {SHOP}.t ORDER BY id") == [
        (0, 0, "2020-02-31 00:00:00"),
        (1, 1, "0000-00-00 00:00:00"),
    ]


def test_more_warnings_than_a_server_shows_by_default_are_all_judged(shop: Replica, mysql_url: str) -> None:
    values = ",".join(f"({i},0,NULL)" for i in range(200)) + ",(200,1,'toolong')"
    outcome = shop.write(f"REPLACE INTO {SHOP}.t (id,e,v) VALUES {values}")
    assert isinstance(outcome.error, FatalSinkError)
    assert ids(mysql_url) == []


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        (f"INSERT INTO {SHOP}.t (id,v) VALUES (1,'s'),(2,'s')", 1062),
        (f"REPLACE INTO {SHOP}.t (id,nope) VALUES (1,'secret')", 1054),
        (f"REPLACE INTO {SHOP}.nope (id) VALUES (1)", 1146),
        (f"REPLACE INTO {SHOP}.t VALUES (secret secret)", 1064),
    ],
)
def test_a_refused_statement_stops_without_its_values(shop: Replica, statement: str, code: int) -> None:
    error = shop.write(statement).error
    assert isinstance(error, FatalSinkError)
    assert error.facts["code"] == code
    assert error.remedy
    assert "secret" not in str(error)
    assert error.__cause__ is None


def test_a_lock_wait_is_retryable(shop: Replica, mysql_url: str) -> None:
    with engine(mysql_url).begin() as blocker:
        blocker.exec_driver_sql(f"INSERT INTO {SHOP}.t (id) VALUES (1)")
        outcome = shop.write(f"REPLACE INTO {SHOP}.t (id) VALUES (1)")
    assert isinstance(outcome.error, RetryableSinkError)
    assert outcome.error.facts["code"] == 1205
    assert shop.write(f"REPLACE INTO {SHOP}.t (id) VALUES (1)").state is WriteState.COMMITTED


def test_a_session_that_died_of_idleness_is_replaced(shop: Replica, mysql_url: str) -> None:
    assert shop.write().state is WriteState.COMMITTED
    own = {row[0] for row in read(mysql_url, "SELECT id FROM information_schema.processlist WHERE command = 'Sleep'")}
    owner = shop.sink._ownership._session_id
    for session in own - {owner}:
        run(mysql_url, f"KILL {session}")
    assert shop.write().state is WriteState.COMMITTED


@pytest.fixture
def proxied(shop: Replica, least_privileged_url: str) -> Iterator[tuple[Proxy, Writer]]:
    url = make_url(least_privileged_url)
    with proxy_to(url.host or "127.0.0.1", url.port or 3306) as proxy:
        through = url.set(host="127.0.0.1", port=proxy.port).render_as_string(hide_password=False)
        writer = writer_of(settings(through))
        assert shop.write(writer=writer).state is WriteState.COMMITTED
        yield proxy, writer
        close_writer_sessions()


@pytest.mark.parametrize("has_arrived", [True, False])
def test_a_lost_answer_to_commit_is_neither_repeated_nor_lost(
    shop: Replica, mysql_url: str, proxied: tuple[Proxy, Writer], *, has_arrived: bool
) -> None:
    proxy, writer = proxied
    before = shop.ts
    proxy.cut_after, proxy.cut_before = has_arrived, not has_arrived
    outcome = shop.write(f"REPLACE INTO {SHOP}.t (id) VALUES (1)", writer=writer)
    assert proxy.commits > 1
    assert outcome.state is WriteState.RELOAD
    assert isinstance(outcome.error, UnknownOutcome)
    progress = shop.sink.raise_epoch()
    assert progress.checkpoint_ts == (shop.ts if has_arrived else before)
    assert ids(mysql_url) == ([1] if has_arrived else [])
    late = shop.sink.writer.write(shop.fence, [rows(f"REPLACE INTO {SHOP}.t (id) VALUES (2)", shop.ts)], commit_at(shop.ts))
    assert late.state is WriteState.FENCED


def test_a_writer_in_flight_cannot_arrive_after_the_epoch_was_raised(shop: Replica, mysql_url: str) -> None:
    raised: list[Any] = []

    def statements() -> Iterator[Statement]:
        yield rows(f"REPLACE INTO {SHOP}.t (id) VALUES (1)", shop.ts)
        raised.append(shop.sink.raise_epoch())
        yield Statement(Phase.REPLACE, f"{SHOP}.t", f"REPLACE INTO {SHOP}.t (id) VALUES (2)".encode(), 1, shop.ts, shop.ts)

    outcome = shop.sink.writer.write(shop.fence, statements(), commit_at(Ts(shop.ts + 1)))
    assert outcome.state is WriteState.FAILED
    assert raised[0].checkpoint_ts < shop.ts + 1
    assert ids(mysql_url) == []


KEPT = KeptRecord(b"key", b"'value\\\x00")


def trace_rows(ts: Ts, *values: str) -> Statement:
    """A statement that knows its rows: (id,v,n) each."""
    columns = tuple(ColumnDescription(name=name, sql_type="", nullable=True) for name in ("id", "v", "n"))
    table = TableDescription(schema=SHOP, table="t", columns=columns, unique_keys=(("id",),), primary_key=("id",))
    rows = tuple(RejectedEvent(position=EventPosition(Stream("feed", 0), Offset(n), 0), error="", commit_ts=ts) for n in range(len(values)))
    doubled = StatementRows(
        phase=Phase.REPLACE,
        table=table,
        columns=("id", "v", "n"),
        key=("id",),
        dialect=MysqlDialect(),
        texts=(*values, *values),
        rows=rows + rows,
    )
    return next(doubled.halves())


def test_refused_rows_are_stored_with_the_progress_and_all_others_are_written(shop: Replica, mysql_url: str) -> None:
    ts = shop.tick()
    statement = trace_rows(ts, "(1,'a',1)", "(2,'b',300)", "(3,'c',3)", "(4,'long',4)", "(5,'e',5)", "(6,NULL,'secret')")
    outcome = shop.sink.writer.write(shop.fence, [statement], commit_at(ts), Quarantined(lambda _: KEPT))
    assert (outcome.state, outcome.rows, outcome.error) == (WriteState.COMMITTED, 3, None)
    assert [event.position.offset for event in outcome.quarantined] == [1, 3, 5]
    assert ids(mysql_url) == [1, 3, 5]
    entries = shop.sink.bookkeeping.quarantine.entries()
    assert [(entry.event.position.offset, entry.event.state) for entry in entries] == [
        (1, QuarantineState.HELD),
        (3, QuarantineState.HELD),
        (5, QuarantineState.HELD),
    ]
    assert shop.sink.bookkeeping.quarantine.record(entries[0].event.position) == KEPT
    assert "column=n" in entries[0].event.error
    assert "secret" not in entries[2].event.error


def test_without_a_quarantine_the_refused_row_is_named_with_its_column(shop: Replica, mysql_url: str) -> None:
    ts = shop.tick()
    statement = trace_rows(ts, "(1,'a',1)", "(2,'b',300)", "(3,'secret',3)")
    outcome = shop.sink.writer.write(shop.fence, [statement], commit_at(ts), Quarantined(lambda _: KEPT, takes_refused=False))
    assert (outcome.state, type(outcome.error)) == (WriteState.FAILED, RowRefused)
    assert {name: outcome.error.facts[name] for name in ("offset", "event", "commit_ts", "key_columns", "column")} == {
        "offset": 1,
        "event": 0,
        "commit_ts": ts,
        "key_columns": "id",
        "column": "n",
    }
    assert "secret" not in str(outcome.error)
    assert (ids(mysql_url), shop.sink.bookkeeping.quarantine.count()) == ([], 0)


def test_a_table_that_is_full_is_reported_as_such_and_writes_nothing(shop: Replica, mysql_url: str) -> None:
    run(mysql_url, f"CREATE TABLE {SHOP}.small (id INT PRIMARY KEY, v CHAR(250)) ENGINE = MEMORY")
    before = shop.sink.raise_epoch()
    shop.fence = before.fence
    [largest] = read(mysql_url, "SELECT @@max_heap_table_size")
    values = ",".join(f"({number},'y')" for number in range(int(largest[0]) // 250 + 1000))
    outcome = shop.write(f"REPLACE INTO {SHOP}.small VALUES {values}")
    assert outcome.state is WriteState.FAILED
    assert isinstance(outcome.error, SinkFull)
    assert outcome.error.facts["code"] == 1114
    assert shop.sink.raise_epoch().checkpoint_ts == before.checkpoint_ts
