"""Partial rows for the planner's tests: shapes with some columns of one table, and what a writer makes of the statements."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from applier.model.events import Shape
from applier.model.rejected_event import RejectedEvent
from applier.planner.port import Phase, Statement
from tests.builders.planning import INT, KEY, TEXT, Row, gone, put, shape, sink_column, sink_table

WHOLE = shape(("id", INT, KEY), ("a", TEXT, 64), ("b", TEXT, 64), ("c", TEXT, 64))
ONLY_A = shape(("id", INT, KEY), ("a", TEXT, 64))
ONLY_B = shape(("id", INT, KEY), ("b", TEXT, 64))
A_AND_B = shape(("id", INT, KEY), ("a", TEXT, 64), ("b", TEXT, 64))
ONLY_C = shape(("id", INT, KEY), ("c", TEXT, 64))
ONLY_KEY = shape(("id", INT, KEY))
FILLED = sink_table("id", *(sink_column(name, default=f'"default of {name}"') for name in "abc"))
BARE = sink_table("id", "a", "b", "c")


def part(commit_ts: int, key: int, *, shape: Shape = WHOLE, **more: Any) -> Row:
    """Make an upsert whose values name their column and time."""
    values = [key if column.name == "id" else f"{column.name}{commit_ts}" for column in shape.columns]
    return put(commit_ts, *values, shape=shape, **more)


def drop(commit_ts: int, key: int, **more: Any) -> Row:
    return gone(commit_ts, key, shape=ONLY_KEY, **more)


def ran(statements: Sequence[Statement], sink: Mapping[int, Mapping[str, Any]]) -> dict[int, dict[str, Any]]:
    """Do what a writer does, on rows by their key: READs first, then deletes, then REPLACEs of whole rows."""
    rows = {key: dict(row) for key, row in sink.items()}
    later: list[Statement] = []
    for statement in sorted(statements, key=lambda one: one.phase):
        operation, _, columns, texts = json.loads(statement.text)
        if statement.reading is not None:
            assert statement.phase is Phase.READ
            wanted = operation.removeprefix("read ").removesuffix(" by").split(",")
            found = {
                number: [rows[key][name] for name in wanted] for number, (key,) in enumerate(texts, statement.reading.first) if key in rows
            }
            later += statement.reading.replaces(found, refuse)
        elif statement.phase is Phase.DELETE:
            assert columns == ["id"]
            for (key,) in texts:
                rows.pop(key, None)
        else:
            later.append(statement)
    for statement in later:
        _, _, columns, texts = json.loads(statement.text)
        assert len(columns) == len(BARE.columns)
        for text in texts:
            rows[text[0]] = dict(zip(columns, text, strict=True))
    return rows


def refuse(events: Sequence[RejectedEvent], key: Sequence[str], error: Exception) -> None:
    raise error
