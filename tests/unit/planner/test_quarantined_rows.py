"""Rows that cannot be written are quarantined by policy, and nothing else of their segment is touched."""

import json

import pytest

from applier.model.errors import FatalSinkError, NeedsOperator, ProtocolError, RowRefused
from applier.model.events import MARKER_IMAGE
from applier.model.rejected_event import RejectedEvent
from applier.planner import PlanTarget, QuarantinePolicy, TransactionSet, plan_bucket
from applier.planner.port import Phase, Statement
from applier.sources.open_protocol import OPEN_PROTOCOL
from tests.builders.planning import (
    INT,
    KEY,
    ORDERS,
    ORDERS_TABLE,
    TEXT,
    PlainDialect,
    between,
    gone,
    packed,
    put,
    shape,
    sink_column,
    sink_table,
)

UNREADABLE = QuarantinePolicy(unreadable=True)
REFUSED = QuarantinePolicy(refused=True)
RUBBISH = b"rubbish"
BY_NAME = sink_table("id", "name", primary=("name",))
"""REPLACE by id finds no unique key: rows are deleted by their handle key first."""


class Choosy(PlainDialect):
    """Refuses rows that are longer than ``longest`` as dialects do: by a row's own error."""

    def _statements(self, *arguments):
        try:
            yield from super()._statements(*arguments)
        except FatalSinkError as error:
            raise RowRefused(error.message, **error.facts) from error


def planned(*chunks, policy, tables=(ORDERS_TABLE,), rekeyed=None, dialect=None):
    described = {table.folded: table for table in tables}
    items = list(plan_bucket(chunks, between(), PlanTarget(described, rekeyed or {}, dialect or PlainDialect()), OPEN_PROTOCOL, policy))
    statements = [item for item in items if isinstance(item, Statement)]
    rejected = [item for item in items if isinstance(item, RejectedEvent)]
    assert isinstance(items[-1], TransactionSet)
    return statements, rejected


def written(statements):
    return [json.loads(statement.text) for statement in sorted(statements, key=lambda one: one.phase)]


def rows(number, **more):
    return [put(5 + n, n, f"{n}", offset=n, **more) for n in range(number)]


def test_an_unreadable_final_image_is_quarantined_and_no_older_version_is_written():
    statements, rejected = planned(
        packed(put(5, 1, "x"), put(6, 1, "y", offset=9, index=2, image=RUBBISH), put(7, 2, "z")), policy=UNREADABLE
    )
    assert written(statements) == [["replace", "orders", ["id", "name"], [[2, "z"]]]]
    (event,) = rejected
    assert str(event.position) == "feed/3@9#2"
    assert (event.schema, event.table, event.key, event.commit_ts) == ("shop", "orders", "id=1", 6)
    assert event.error.startswith("an image cannot be read [kind=json")


@pytest.mark.parametrize("policy", [REFUSED, QuarantinePolicy()])
def test_without_the_policy_it_stops(policy):
    with pytest.raises(ProtocolError):
        planned(packed(put(6, 1, "y", image=RUBBISH)), policy=policy)


def test_a_marker_is_never_written_and_keeps_older_versions_out():
    statements, rejected = planned(packed(put(5, 1, "x"), put(6, 1, "?", image=MARKER_IMAGE), put(6, 2, "z")), policy=QuarantinePolicy())
    assert (written(statements), rejected) == ([["replace", "orders", ["id", "name"], [[2, "z"]]]], [])
    alone = packed(put(6, 1, "?", image=MARKER_IMAGE))
    assert planned(alone, policy=QuarantinePolicy()) == ([], [])
    assert planned(alone, policy=QuarantinePolicy(), tables=()) == ([], []), "its table need not be there"


def test_statements_show_the_right_times_when_rows_are_missing_between():
    data = packed(*[row for n in range(9) for row in (put(10 + n, n, f"{n}", offset=n, image=RUBBISH if n % 3 == 1 else None),)])
    statements, rejected = planned(data, policy=UNREADABLE, dialect=PlainDialect(most=2))
    assert [(one.min_ts, one.max_ts, one.rows) for one in statements] == [(10, 12, 2), (13, 15, 2), (16, 18, 2)]
    assert [event.commit_ts for event in rejected] == [11, 14, 17]


@pytest.mark.parametrize("rejected", [{0}, {8}, {3, 4}, set(range(9))])
def test_a_row_that_is_too_large_is_quarantined_and_the_rest_is_written(rejected):
    data = packed(*[put(10 + n, n, "x" * 99 if n in rejected else "x", offset=n) for n in range(9)])
    statements, found = planned(data, policy=REFUSED, dialect=Choosy(most=2, longest=50))
    assert [row[0] for text in written(statements) for row in text[3]] == [n for n in range(9) if n not in rejected]
    assert {event.position.offset for event in found} == rejected
    assert all(one.min_ts <= one.max_ts < 19 for one in statements)


def test_a_large_row_stops_without_the_policy():
    with pytest.raises(RowRefused) as caught:
        planned(packed(put(6, 1, "x" * 99, offset=4)), policy=UNREADABLE, dialect=Choosy(longest=50))
    assert (caught.value.facts["offset"], caught.value.facts["bytes"]) == (4, 105)


def test_an_error_of_a_whole_table_stops_and_is_not_quarantined():
    everything = QuarantinePolicy(unreadable=True, refused=True)
    with pytest.raises(FatalSinkError, match="missing"):
        planned(packed(put(6, 1, "y")), policy=everything, tables=())
    with pytest.raises(NeedsOperator, match="no default"):
        planned(packed(gone(5, 1, "x"), put(6, 1, "y")), policy=everything, tables=(sink_table("id", "name", "more"),))


def test_a_row_whose_delete_cannot_be_rendered_is_not_written_either():
    stale = shape(("id", TEXT, 2), ("name", TEXT, 0))
    data = packed(put(5, "a", "x", shape=stale), put(6, "b", "y", shape=stale, image=RUBBISH))
    table = sink_table(sink_column("id", binary=True), "name", primary=("name",))
    statements, rejected = planned(data, policy=UNREADABLE, tables=(table,))
    assert written(statements) == [
        ["delete", "orders", ["id"], [[{"bytes": "61"}]]],
        ["replace", "orders", ["id", "name"], [[{"bytes": "61"}, "x"]]],
    ]
    assert [event.commit_ts for event in rejected] == [6]


def test_a_row_of_a_rekeyed_table_whose_key_cannot_be_read_is_quarantined():
    by_code = shape(("id", INT, 0), ("code", INT, KEY))
    table = sink_table("id", "code")
    data = packed(
        put(5, 1, 70, shape=by_code),
        put(6, 1, 70, shape=by_code, image=RUBBISH, offset=3),
        put(7, 1, 70, shape=by_code, image=MARKER_IMAGE),
    )
    statements, rejected = planned(data, policy=UNREADABLE, tables=(table,), rekeyed={ORDERS: ("id",)})
    assert written(statements) == [["replace", "orders", ["id", "code"], [[1, 70]]]]
    assert [(event.position.offset, event.key) for event in rejected] == [(3, "code=70")]


def test_a_rekeyed_row_is_described_by_the_key_of_the_sink():
    by_code = shape(("id", INT, 0), ("code", INT, KEY), ("note", TEXT, 0))
    table = sink_table("id", "code", "note")
    data = packed(put(5, 1, 70, "x" * 99, shape=by_code))
    _, (event,) = planned(data, policy=REFUSED, tables=(table,), rekeyed={ORDERS: ("id",)}, dialect=Choosy(longest=50))
    assert event.key == "id=1"


# Statements with traced rows


def halved(statement):
    """Halve a statement down to single rows."""
    if statement.rows == 1:
        return [statement]
    return [one for half in statement.source_rows.halves() for one in halved(half)]


@pytest.mark.parametrize("table", [ORDERS_TABLE, BY_NAME], ids=["unique", "deleted first"])
def test_a_traced_statement_can_be_halved_to_single_rows_that_say_the_same(table):
    data = packed(*rows(7), gone(20, 9, "gone", offset=20))
    trace_rows = QuarantinePolicy(refused=True, trace_rows=True)
    statements, _ = planned(data, policy=trace_rows, tables=(table,), dialect=PlainDialect(most=4))
    plain, _ = planned(data, policy=REFUSED, tables=(table,), dialect=PlainDialect(most=4))
    assert written(statements) == written(plain)
    assert all(one.source_rows is None for one in plain)
    for statement in statements:
        singles = halved(statement)
        assert [json.loads(one.text)[3][0] for one in singles] == json.loads(statement.text)[3]
        assert [row.commit_ts for one in singles for row in one.source_rows.rows] == [one.min_ts for one in singles]
        assert {one.phase for one in singles} == {statement.phase}
    names = [row.key for one in statements if one.phase is Phase.REPLACE for row in one.source_rows.rows]
    assert names == [f"id={n}" for n in range(7)]


def test_texts_and_rows_of_traced_statements_stay_together_when_rows_are_quarantined():
    data = packed(*[put(10 + n, n, "x" * 99 if n == 2 else "x", offset=n, image=RUBBISH if n == 4 else None) for n in range(7)])
    policy = QuarantinePolicy(unreadable=True, refused=True, trace_rows=True)
    statements, rejected = planned(data, policy=policy, dialect=Choosy(most=3, longest=50))
    assert [event.position.offset for event in rejected] == [2, 4]
    for one in (single for statement in statements for single in halved(statement)):
        assert one.source_rows.rows[0].key == f"id={json.loads(one.text)[3][0][0]}"


def test_rows_of_other_tables_in_a_chunk_keep_their_own_keys():
    lines = shape(("id", INT, KEY), ("name", TEXT, 0), table="lines")
    data = packed(put(5, 1, "x", shape=lines), put(6, 1, "y"), put(7, 2, "z", image=MARKER_IMAGE))
    tables = (ORDERS_TABLE, sink_table("id", "name", table="lines"))
    statements, rejected = planned(data, policy=QuarantinePolicy(), tables=tables, rekeyed={ORDERS: ("id",)})
    assert rejected == []
    assert sorted(written(statements)) == [
        ["replace", "lines", ["id", "name"], [[1, "x"]]],
        ["replace", "orders", ["id", "name"], [[1, "y"]]],
    ]
