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
from applier.sources.binlog.query import events_of_query
from applier.sources.binlog.query_event import read_query_event

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
    described["session"] = {name: value for name, value in event.session if name != "timestamp"}
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
    assert (ddl.commit_ts, ddl.time_ms, dict(ddl.session)["timestamp"]) == (TS, 1_600_000_000_123, "1600000000.123456")


def test_rows_as_a_statement_name_the_variable_and_the_session() -> None:
    with pytest.raises(ProtocolError) as raised:
        found(case_of("mariadb", "UPDATE q_b.t1 SET a = 'stmt2'"))
    assert raised.value.facts["variable"] == "binlog_format"
    assert raised.value.facts["thread"] > 0
    assert raised.value.facts["statement"] == "UPDATE q_b.t1 SET a = ?"


def test_a_filter_leaves_a_ddl_out_and_a_route_renames_its_tables() -> None:
    selection = TableSelection(TableFilter.parse(["q_a.*"]), (Route.parse("q_a.*", "there.{table}"),))
    assert ddl_of("mysql", "TRUNCATE q_a.t3x", selection).name == TableName("there", "t3x")
    assert ddl_of("mysql", "CREATE DATABASE q_d", selection).left_out


def test_an_event_that_is_cut_anywhere_is_refused_or_read_without_what_is_missing() -> None:
    event = base64.b64decode(case_of("mysql", "TRUNCATE TABLE t3")["event"])
    for size in range(len(event)):
        with suppress(ProtocolError):
            assert b"TRUNCATE TABLE t3".startswith(read_query_event(event[:size]).text)
