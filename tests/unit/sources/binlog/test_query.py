"""Statements of real binlogs (tests/data/binlog_queries.jsonl: MariaDB 10.11 and MySQL 9.7), and what the replica makes of them."""

import base64
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from applier.ddl import parse_ddl
from applier.model.errors import ProtocolError
from applier.model.events import DdlEvent, SkippedStatement, TableName
from applier.selection import EVERYTHING, Route, TableFilter, TableSelection
from applier.sources.binlog.part import PartHead, PartKind
from applier.sources.binlog.query import events_of_query, read_query_event

CASES = [json.loads(line) for line in (Path(__file__).parents[3] / "data/binlog_queries.jsonl").read_text().splitlines()]
TS = 7 << 32 | 1999


def head(server: str) -> PartHead:
    return PartHead(PartKind.QUERY, TS, 0, 0, server == "mariadb", "")


def found(case: dict[str, Any], selection: TableSelection = EVERYTHING) -> DdlEvent | SkippedStatement | None:
    return next(iter(events_of_query(base64.b64decode(case["event"]), head(case["server"]), selection)), None)


def case_of(server: str, statement: str) -> dict[str, Any]:
    return next(case for case in CASES if case["server"] == server and case["statement"] == statement)


def ddl_of(server: str, statement: str, selection: TableSelection = EVERYTHING) -> DdlEvent:
    ddl = found(case_of(server, statement), selection)
    assert isinstance(ddl, DdlEvent)
    return ddl


def described(case: dict[str, Any]) -> dict[str, Any]:
    """Describe what a case gives as the file does."""
    try:
        event = found(case)
    except ProtocolError as error:
        return {"error": error.facts["kind"]}
    if isinstance(event, SkippedStatement):
        return {"skipped": event.kind}
    if event is None:
        return {}
    described: dict[str, Any] = {"ddl": [event.ddl_type, event.schema, event.table]}
    described["session"] = {name: value for name, value in event.session if name not in {"timestamp", "server"}}
    described |= {"text": event.query} if event.query != case["statement"] else {}
    return described | ({"refusal": event.refusal.why} if event.refusal else {})


def test_each_recorded_statement_means_what_is_written_beside_it() -> None:
    given = {"server", "statement", "event"}
    differing = [case["statement"] for case in CASES if described(case) != {key: value for key, value in case.items() if key not in given}]
    assert differing == []


def test_every_ddl_that_runs_names_its_tables() -> None:
    ddls = [found(case) for case in CASES if "ddl" in case and "refusal" not in case]
    assert [ddl.query for ddl in ddls if isinstance(ddl, DdlEvent) and parse_ddl(ddl) is None] == []


def test_a_ddl_carries_the_time_and_the_microseconds_of_its_session() -> None:
    ddl = ddl_of("mysql", "ALTER TABLE t1 ADD n6 DATETIME(6) DEFAULT CURRENT_TIMESTAMP(6)")
    assert dict(ddl.session)["server"] in {"mariadb", "mysql"}
    assert (ddl.commit_ts, ddl.time_ms, dict(ddl.session)["timestamp"]) == (TS, 1_600_000_000_123, "1600000000.123456")


def test_the_language_of_the_session_is_replayed_where_it_is_not_english() -> None:
    event = base64.b64decode(case_of("mysql", "TRUNCATE TABLE t3")["event"])
    size = int.from_bytes(event[30:32], "little")
    german = event[:30] + (size + 3).to_bytes(2, "little") + b"\x07\x04\0" + event[32:]
    (ddl,) = events_of_query(german, head("mysql"))
    assert isinstance(ddl, DdlEvent)
    assert dict(ddl.session)["lc_time_names"] == 4
    (ddl,) = events_of_query(event, head("mysql"))
    assert isinstance(ddl, DdlEvent)
    assert "lc_time_names" not in dict(ddl.session)


def test_a_ddl_that_needs_variables_beside_it_is_refused_for_a_replicated_table_only() -> None:
    event = base64.b64decode(case_of("mysql", "TRUNCATE TABLE t3")["event"])
    place = PartHead(PartKind.QUERY, TS, 0, 0, False, "", True)
    (ddl,) = events_of_query(event, place)
    assert isinstance(ddl, DdlEvent)
    assert ddl.refusal is not None
    assert "not replayed" in ddl.refusal.why
    (ddl,) = events_of_query(event, place, SHOP)
    assert isinstance(ddl, DdlEvent)
    assert ddl.left_out


def test_rows_as_a_statement_name_the_variable_and_the_session() -> None:
    with pytest.raises(ProtocolError) as raised:
        found(case_of("mariadb", "UPDATE q_b.t1 SET a = 'stmt2'"))
    assert raised.value.facts["variable"] == "binlog_format"
    assert raised.value.facts["thread"] > 0
    assert raised.value.facts["statement"] == "UPDATE q_b.t1 SET a = ?"


def statement_of(server: str, statement: str, selection: TableSelection) -> DdlEvent | SkippedStatement | None:
    """Return what a statement in the schema q_a means."""
    event = base64.b64decode(case_of("mysql", "TRUNCATE TABLE t3")["event"]).replace(b"TRUNCATE TABLE t3", statement.encode())
    return next(iter(events_of_query(event, head(server), selection)), None)


SHOP = TableSelection(TableFilter.parse(["shop.*"]))


@pytest.mark.parametrize("server", ["mariadb", "mysql"])
@pytest.mark.parametrize(
    ("statement", "selection"),
    [
        ("REPLACE INTO percona.checksums (a) SELECT COUNT(*) FROM shop.orders", SHOP),
        ("UPDATE heartbeat SET ts = NOW()", SHOP),
        ("INSERT INTO mysql.rds_heartbeat2(id, value) values (1,2) ON DUPLICATE KEY UPDATE value = 2", EVERYTHING),
        ("DELETE a FROM a JOIN percona.b USING (id)", SHOP),
    ],
)
def test_rows_as_a_statement_of_tables_that_a_replica_does_not_have_are_skipped_and_counted(server, statement, selection) -> None:
    assert statement_of(server, statement, selection) == SkippedStatement(TS, "excluded_rows", "q_a")


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO shop.orders SELECT * FROM percona.x",
        "UPDATE a JOIN shop.orders USING (id) SET a.b = 1",
        "DELETE a FROM a JOIN shop.orders USING (id)",
        "UPDATE a SET b = stored(b)",
        "CALL anything()",
    ],
)
def test_rows_as_a_statement_that_may_be_of_a_replicas_tables_stop(statement) -> None:
    with pytest.raises(ProtocolError, match="as a statement"):
        statement_of("mariadb", statement, SHOP)


def test_a_filter_leaves_a_ddl_out_and_a_route_renames_its_tables() -> None:
    selection = TableSelection(TableFilter.parse(["q_a.*"]), (Route.parse("q_a.*", "there.{table}"),))
    assert ddl_of("mysql", "TRUNCATE q_a.t3x", selection).name == TableName("there", "t3x")
    assert ddl_of("mysql", "CREATE DATABASE q_d", selection).left_out


def test_a_ddl_that_cannot_be_repeated_stops_nobody_who_leaves_its_table_out() -> None:
    statement = "CREATE TABLE sv (id INT PRIMARY KEY, a INT) WITH SYSTEM VERSIONING"
    assert ddl_of("mariadb", statement).refusal is not None
    assert ddl_of("mariadb", statement, TableSelection(TableFilter.parse(["*.*", "!q_a.sv"]))).left_out


def test_statements_of_the_servers_own_schemas_are_skipped() -> None:
    event = base64.b64decode(case_of("mysql", "TRUNCATE TABLE t3")["event"]).replace(b"TRUNCATE TABLE t3", b"ANALYZE TABLE xyz")
    assert events_of_query(event, head("mysql")) == (SkippedStatement(TS, "maintenance", "q_a"),)
    event = event.replace(b"ANALYZE TABLE xyz", b"TRUNCATE mysql.t1")
    assert events_of_query(event, head("mysql")) == (SkippedStatement(TS, "system_schema", "mysql"),)


def test_a_memory_table_that_a_restart_has_emptied_is_truncated() -> None:
    statement = b"DELETE FROM `q_a`.`mem` /* generated by server, implicitly emptying in-memory table */"
    event = base64.b64decode(case_of("mysql", "TRUNCATE TABLE t3")["event"]).replace(b"TRUNCATE TABLE t3", statement)
    (ddl,) = events_of_query(event, head("mysql"))
    assert isinstance(ddl, DdlEvent)
    assert (ddl.query, ddl.name) == ("TRUNCATE TABLE `q_a`.`mem`", TableName("q_a", "mem"))


def test_an_event_that_is_cut_anywhere_is_refused_or_read_without_what_is_missing() -> None:
    event = base64.b64decode(case_of("mysql", "TRUNCATE TABLE t3")["event"])
    for size in range(len(event)):
        with suppress(ProtocolError):
            assert b"TRUNCATE TABLE t3".startswith(read_query_event(event[:size]).text)


VIEW = (
    "CREATE OR REPLACE ALGORITHM=MERGE DEFINER=`root`@`%` SQL SECURITY INVOKER VIEW `q_b`.`v1`(`x`, `y`) AS SELECT t1.id, t1.a FROM t1 "
    "JOIN q_b.t1 AS o ON o.id = t1.id WITH CHECK OPTION"
)


@pytest.mark.parametrize("tables", [b"q_a.t1 JOIN q_b.t1 AS o", b"q_a.t1 JOIN q_b.t1 FOR SYSTEM_TIME ALL o"])
@pytest.mark.parametrize("server", ["mariadb", "mysql"])
def test_a_view_of_a_session_without_a_schema_has_the_views_name(server: str, tables: bytes) -> None:
    event = bytearray(base64.b64decode(case_of(server, VIEW)["event"]).replace(b"t1 JOIN q_b.t1 AS o", tables))
    schema, length_at = event.index(b"q_a\0CREATE"), 19 + 8
    event[length_at] = 0
    del event[schema : schema + 3]
    (ddl,) = events_of_query(bytes(event), head(server))
    assert isinstance(ddl, DdlEvent)
    assert ddl.name == TableName("q_b", "v1")
    # Where the query is not understood, the statement may touch everything, and is still skipped by its name.
    assert (parse_ddl(ddl) is None) == (b"SYSTEM_TIME" in tables)
