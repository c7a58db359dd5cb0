"""The identities of DDLs stay what they are: sinks store them, and compare them with those of a replay.

``tests/data/ddl_identities.jsonl`` was written by the reader of the first release that stores identities. A line of it is never edited:
a change here means that a replica would run a DDL a second time. New forms are appended.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from applier.ddl import identity, parse_ddl, same_ddl
from applier.model.events import DdlEvent, DdlIdentity, FoldedName, TableName
from applier.model.position import Ts

GOLDEN = Path(__file__).parents[2] / "data" / "ddl_identities.jsonl"
RECORDS: list[dict[str, Any]] = [json.loads(line) for line in GOLDEN.read_text().splitlines()]


def event(record: dict[str, Any]) -> DdlEvent:
    return DdlEvent(
        commit_ts=Ts(record["commit_ts"]),
        schema=record["schema"],
        table=record["table"],
        query=record["query"],
        ddl_type=record["ddl_type"],
    )


def names(found: tuple[TableName, ...]) -> list[list[str]]:
    return [list(name) for name in found]


@pytest.mark.parametrize("begin", range(0, len(RECORDS), 100))
def test_identities_are_those_that_sinks_have_stored(begin: int) -> None:
    for record in RECORDS[begin : begin + 100]:
        ts, name, touched = record["identity"]
        found = identity(event(record))
        assert (found.ts, found.name) == (ts, FoldedName(*name)), record["query"]
        stored = DdlIdentity(found.ts, found.name, None if touched is None else frozenset(FoldedName(*one) for one in touched))
        assert same_ddl(found, stored), record["query"]
        # A text that is not understood any more may touch everything.
        assert found.touches in {stored.touches, None}, record["query"]


@pytest.mark.parametrize("begin", range(0, len(RECORDS), 100))
def test_the_kind_of_a_statement_and_the_roles_of_its_names_stay_the_same(begin: int) -> None:
    for record in RECORDS[begin : begin + 100]:
        statement, wanted = parse_ddl(event(record)), record.get("statement")
        if statement is None or wanted is None:
            # The templates of this project's own tests, which were once taken for views.
            assert statement is None, record["query"]
            assert wanted is None or "{n}" in record["query"] or "``name``" in record["query"], record["query"]
            continue
        assert (statement.kind, statement.schema) == (wanted["kind"], wanted.get("schema", "")), record["query"]
        for role in ("needs", "creates", "drops", "mentions"):
            no_tables = names(statement.words)
            assert names(getattr(statement, role)) == [name for name in wanted.get(role, []) if name not in no_tables], record["query"]
        assert [names(pair) for pair in statement.renames] == wanted.get("renames", []), record["query"]
        for word in ("if_exists", "if_not_exists", "or_replace"):
            assert getattr(statement, word) == wanted.get(word, False), record["query"]
