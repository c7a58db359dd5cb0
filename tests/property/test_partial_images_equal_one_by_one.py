"""Partial images, planned and completed by the writer, give what applying every event one by one gives, column by column."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from applier.model.events import RowKind, Shape
from applier.model.rejected_event import RejectedEvent
from applier.planner.port import Phase, Statement
from tests.builders.planning import INT, TEXT, PlainDialect, Row, between, gone, packed, plan, put, shape, sink_column, sink_table

ID, EMAIL, A, B = ("id", INT, 11), ("email", TEXT, 80), ("a", INT, 65), ("b", INT, 65)
SHAPES = [shape(ID, EMAIL, A, B), shape(ID, EMAIL, A), shape(ID, EMAIL, B), shape(ID, EMAIL), shape(B, EMAIL, ID)]
"""``email`` is a second unique key: every image lists it, or the sink would not have upstream's values to tell rows apart."""
ONLY_KEY = shape(ID)
COLUMNS = [
    sink_column("id"),
    sink_column("email", nullable=True, default="null"),
    sink_column("a", default="-1"),
    sink_column("b", default="-2"),
]
KEYED = sink_table(*COLUMNS, unique=[("email",)])
UNKEYED = sink_table(*COLUMNS, primary=(), unique=[("email",)])
EMAILS = ["x", "y", "z", None]
SinkRows = dict[int, dict[str, Any]]


@dataclass
class Sink:
    """A table with two unique keys: a REPLACE deletes every row that it collides with."""

    rows: list[dict[str, Any]]

    def write(self, statements: Sequence[Statement], *, is_keyed: bool) -> None:
        later: list[Statement] = []
        for statement in sorted(statements, key=lambda one: one.phase):
            if statement.reading is not None:
                later += statement.reading.replaces(self._found(statement), _raise)
            elif statement.phase is Phase.DELETE:
                *_, keys = json.loads(statement.text)
                self.rows = [row for row in self.rows if [row["id"]] not in keys]
            else:
                later.append(statement)
        for statement in later:
            _, _, columns, texts = json.loads(statement.text)
            for values in texts:
                self._replace(dict(zip(columns, values, strict=True)), is_keyed=is_keyed)

    def _found(self, statement: Statement) -> dict[int, list[Any]]:
        operation, _, _, keys = json.loads(statement.text)
        wanted = operation.removeprefix("read ").removesuffix(" by").split(",")
        first = getattr(statement.reading, "first", 0)
        found: dict[int, list[Any]] = {}
        for number, (key,) in enumerate(keys, first):
            for row in self.rows:
                if row["id"] == key:
                    assert number not in found
                    found[number] = [row[name] for name in wanted]
        return found

    def _replace(self, new: dict[str, Any], *, is_keyed: bool) -> None:
        if is_keyed:
            self.rows = [row for row in self.rows if row["id"] != new["id"]]
        self.rows = [row for row in self.rows if row["email"] is None or row["email"] != new["email"]]
        self.rows.append(new)

    def by_key(self) -> SinkRows:
        assert len({row["id"] for row in self.rows}) == len(self.rows)
        return {row["id"]: row for row in self.rows}


def _raise(_: Sequence[RejectedEvent], __: Sequence[str], error: Exception) -> None:
    raise error


def one_by_one(start: SinkRows, events: Sequence[Row]) -> SinkRows:
    """Each event alone, on the row of its key: what a row keeps does not depend on other rows."""
    rows = {key: dict(row) for key, row in start.items()}
    for event in sorted(events, key=lambda one: (one.commit_ts, one.kind, one.offset)):
        values = dict(zip((column.name for column in event.shape.columns), event.values, strict=True))
        if event.kind is RowKind.DELETE:
            rows.pop(values["id"], None)
        else:
            rows[values["id"]] = {"email": None, "a": -1, "b": -2} | rows.get(values["id"], {}) | values
    return rows


@st.composite
def histories(draw: st.DrawFn) -> tuple[SinkRows, list[Row]]:
    """The sink at A, whose unlisted columns are its own, and the events of a legal upstream in (A, W]."""
    emails: dict[int, str | None] = {}
    for key in draw(st.lists(st.integers(1, 4), unique=True, max_size=4)):
        emails[key] = draw(st.sampled_from([one for one in EMAILS if one is None or one not in emails.values()]))
    start = {key: {"id": key, "email": email, "a": key * 1000, "b": key * 2000} for key, email in emails.items()}
    events: list[Row] = []
    for commit_ts in range(1, draw(st.integers(1, 8)) + 1):
        events += _transaction(draw, emails, commit_ts, len(events))
    return start, events


def _transaction(draw: st.DrawFn, emails: dict[int, str | None], commit_ts: int, offset: int) -> list[Row]:
    before = dict(emails)
    touched = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4, unique=True))
    for key in touched:
        emails.pop(key, None)
    kept = [key for key in touched if draw(st.integers(0, 3))]
    for key in kept:
        emails[key] = draw(st.sampled_from([one for one in EMAILS if one is None or one not in emails.values()]))
    split = [key for key in kept if key in before and draw(st.booleans())]
    events: list[tuple[RowKind, int]] = [(RowKind.DELETE, key) for key in touched if key in before and (key not in kept or key in split)]
    events += [(RowKind.UPSERT, key) for key in kept]
    return [_event(draw, kind, key, emails, commit_ts, offset + n) for n, (kind, key) in enumerate(draw(st.permutations(events)))]


def _event(draw: st.DrawFn, kind: RowKind, key: int, emails: Mapping[int, str | None], commit_ts: int, offset: int) -> Row:
    if kind is RowKind.DELETE:
        return gone(commit_ts, key, shape=ONLY_KEY, offset=offset)
    found: Shape = draw(st.sampled_from(SHAPES))
    values = {"id": key, "email": emails[key], "a": commit_ts * 10, "b": commit_ts * 10 + 1}
    return put(commit_ts, *(values[column.name] for column in found.columns), shape=found, offset=offset)


@given(history=histories(), data=st.data(), is_keyed=st.booleans())
def test_s21_a_planned_segment_of_partial_images_leaves_the_state_that_one_by_one_leaves(
    *, history: tuple[SinkRows, list[Row]], data: st.DataObject, is_keyed: bool
) -> None:
    start, events = history
    wanted = one_by_one(start, events)
    repeated = events + (data.draw(st.lists(st.sampled_from(events), max_size=5)) if events else [])
    shuffled = data.draw(st.permutations(repeated))
    size = data.draw(st.integers(1, 5))
    chunks = [packed(*shuffled[at : at + size]) for at in range(0, len(shuffled), size)]
    sink, table = Sink([dict(row) for row in start.values()]), KEYED if is_keyed else UNKEYED
    statements, _ = plan(*chunks, tables=[table], window=between(0, 100), dialect=PlainDialect(most=data.draw(st.integers(1, 4))))
    sink.write(statements, is_keyed=is_keyed)
    assert sink.by_key() == wanted

    # The group at the checkpoint may be applied again, to a sink that has it already.
    last = max((event.commit_ts for event in events), default=0)
    again, _ = plan(*chunks, tables=[table], window=between(last, last + 1, again=True))
    sink.write(again, is_keyed=is_keyed)
    assert sink.by_key() == wanted
