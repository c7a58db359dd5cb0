"""Compaction, then all deletes, then all REPLACEs, gives what applying every event one by one gives."""

import json
from dataclasses import dataclass
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from applier.model.events import RowKind
from tests.builders.planning import INT, TEXT, PlainDialect, Row, between, gone, packed, plan, put, shape, sink_table

ACCOUNTS = shape(("id", TEXT, 2), ("email", TEXT, 64), ("version", INT, 1))
"""``id`` is the handle key, ``email`` a second unique key."""
WITH_PRIMARY_KEY = sink_table("id", "email", "version", unique=[("email",)])
WITHOUT = sink_table("id", "email", "version", primary=(), unique=[("email",)])
IDS, EMAILS = ["a", "A", "b", "c"], ["x", "y", "z", None]


@dataclass
class Table:
    """A table with a ``_ci`` key and a nullable unique column, as MySQL has them."""

    rows: list[tuple[str, str | None, int]]

    def delete(self, key: str) -> None:
        self.rows = [row for row in self.rows if row[0].casefold() != key.casefold()]

    def replace(self, new: tuple[str, str | None, int], *, keyed: bool = True) -> None:
        """Remove every row that collides on a unique index, then insert."""
        if keyed:
            self.delete(new[0])
        self.rows = [row for row in self.rows if row[1] is None or row[1] != new[1]]
        self.rows.append(new)

    def state(self) -> list[tuple[str, str | None, int]]:
        return sorted(self.rows, key=lambda row: row[0])


@st.composite
def histories(draw: st.DrawFn) -> tuple[Table, list[Row], Table]:
    """The sink at A, the events of (A, W] of a legal upstream, and upstream at W."""
    upstream = Table([])
    for version in range(draw(st.integers(0, 3))):
        upstream.replace((draw(st.sampled_from(IDS)), draw(st.sampled_from(EMAILS)), version))
    start, events = Table(list(upstream.rows)), []
    for commit_ts in range(1, draw(st.integers(1, 10)) + 1):
        events += _transaction(draw, upstream, commit_ts, len(events))
    return start, events, upstream


def _transaction(draw: st.DrawFn, upstream: Table, commit_ts: int, offset: int) -> list[Row]:
    """Change some rows; emit, as a producer does, deletes of keys that went and upserts of rows that came or changed.

    A changed row may come split, its delete at the same commit_ts and before or after its upsert.
    """
    before = {row[0]: row for row in upstream.rows}
    for step in range(draw(st.integers(1, 3))):
        key, email = draw(st.sampled_from(IDS)), draw(st.sampled_from(EMAILS))
        if draw(st.booleans()):
            upstream.replace((key, email, commit_ts * 10 + step))
        else:
            upstream.delete(key)
    after = {row[0]: row for row in upstream.rows}
    went = [row for key, row in before.items() if key not in after]
    came = [row for key, row in after.items() if before.get(key) != row]
    split = [before[row[0]] for row in came if row[0] in before and draw(st.booleans())]
    events = [(gone, row) for row in went + split] + [(put, row) for row in came]
    return [make(commit_ts, *row, shape=ACCOUNTS, offset=offset + n) for n, (make, row) in enumerate(draw(st.permutations(events)))]


def run(table: Table, data: list[bytes], most: int, *, keyed: bool) -> None:
    statements, _ = plan(*data, tables=[WITH_PRIMARY_KEY if keyed else WITHOUT], window=between(0, 100), dialect=PlainDialect(most=most))
    for statement in sorted(statements, key=lambda one: one.phase):
        operation, _, columns, rows = json.loads(statement.text)
        for row in rows:
            if operation == "delete":
                assert columns == ["id"]
                table.delete(row[0])
            else:
                table.replace(tuple(row), keyed=keyed)


def one_by_one(table: Table, events: list[Row]) -> None:
    for event in sorted(events, key=lambda one: (one.commit_ts, one.kind, one.offset)):
        values: Any = event.values
        if event.kind is RowKind.DELETE:
            table.delete(values[0])
        else:
            table.replace(values)


@given(history=histories(), data=st.data(), keyed=st.booleans())
def test_s2_a_planned_segment_leaves_the_state_that_one_by_one_leaves(
    *, history: tuple[Table, list[Row], Table], data: st.DataObject, keyed: bool
) -> None:
    start, events, upstream = history
    replica, planned = Table(list(start.rows)), Table(list(start.rows))
    one_by_one(replica, events)
    assert replica.state() == upstream.state()

    repeated = events + (data.draw(st.lists(st.sampled_from(events), max_size=5)) if events else [])
    shuffled = data.draw(st.permutations(repeated))
    size = data.draw(st.integers(1, 5))
    chunks = [packed(*shuffled[start_at : start_at + size]) for start_at in range(0, len(shuffled), size)]
    run(planned, chunks, data.draw(st.integers(1, 4)), keyed=keyed)
    assert planned.state() == upstream.state()
    if keyed:
        run(planned, chunks, 2, keyed=True)
        assert planned.state() == upstream.state()
