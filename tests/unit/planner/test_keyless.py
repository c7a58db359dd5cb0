"""Tables without a key in a plan: refused unless they are asked for; one row at a time; what cannot be written is refused alone."""

import json

import pytest

from applier.model.errors import FatalSinkError, InvariantViolation, NeedsOperator, RowRefused
from applier.model.position import Offset, Stream, Ts
from applier.model.range_report import RepeatPoint
from applier.model.rejected_event import RejectedEvent
from applier.planner import PlanTarget, QuarantinePolicy, plan_bucket
from applier.planner.keyless import EqualRows
from applier.planner.statement import Phase, Statement
from applier.sources.open_protocol import OPEN_PROTOCOL
from tests.builders.planning import INT, ORDERS_TABLE, STREAM, TEXT, PlainDialect, between, gone, packed, put, shape, sink_table

UNKEYED = shape(("id", INT, 1), ("name", TEXT, 64))
TABLE = sink_table("id", "name", primary=())
QUARANTINE = QuarantinePolicy(unreadable=True, refused=True)


class Refusing(PlainDialect):
    """Its rows that are too large are refused, as a server's are."""

    def whole_rows(self):
        return Refusing(1, self.longest, keyless=True)

    def _statements(self, *args):
        try:
            yield from super()._statements(*args)
        except FatalSinkError as error:
            raise RowRefused(error.message, **error.facts) from error


def planned(*rows, policy=None, repeats=None, dialect=None, table=TABLE, equal_rows=EqualRows.ALL):
    target = PlanTarget({table.folded: table}, {}, dialect or PlainDialect(), {} if repeats is None else repeats, equal_rows)
    return list(plan_bucket([packed(*rows)], between(), target, OPEN_PROTOCOL, policy or QuarantinePolicy()))


def statements(*rows, **more):
    return [(one.phase, json.loads(one.text)[0], json.loads(one.text)[3]) for one in planned(*rows, **more) if isinstance(one, Statement)]


def test_deletes_are_single_and_exact_and_come_first():
    rows = [put(5, 1, "a", shape=UNKEYED), gone(6, 2, "b", shape=UNKEYED, offset=1), gone(7, 2, "b", shape=UNKEYED, offset=2)]
    assert statements(*rows) == [(Phase.DELETE, "delete", [[2, "b"]])] * 2 + [(Phase.REPLACE, "insert", [[1, "a"]])]
    assert [one.deletes_exactly for one in planned(*rows) if isinstance(one, Statement)] == [True, True, False]


def test_what_comes_and_goes_within_a_segment_is_not_written():
    assert statements(put(5, 1, "a", shape=UNKEYED), gone(6, 1, "a", shape=UNKEYED, offset=1)) == []


def test_equal_rows_in_several_records_stop_by_their_name_unless_the_operator_says_what_they_are():
    rows = [put(5, 1, "a", shape=UNKEYED, offset=offset) for offset in (3, 4)]
    with pytest.raises(NeedsOperator, match="real, or the producer has sent them again") as stopped:
        planned(*rows, equal_rows=EqualRows.STOP)
    facts = stopped.value.facts
    assert (facts["kind"], facts["rows"], facts["first_offset"], facts["offset"], facts["commit_ts"]) == ("equal_rows", 2, 3, 4, 5)
    assert statements(*rows, equal_rows=EqualRows.ONCE) == [(Phase.REPLACE, "insert", [[1, "a"]])]
    assert statements(*rows, equal_rows=EqualRows.ALL) == [(Phase.REPLACE, "insert", [[1, "a"]])] * 2


def test_of_several_commits_with_equal_rows_the_earliest_is_named():
    chunks = [
        packed(*(put(ts, 1, "a", shape=UNKEYED, offset=offset) for offset in (1, 2)), stream=Stream(STREAM.topic, number))
        for number, ts in enumerate((7, 6))
    ]
    target = PlanTarget({TABLE.folded: TABLE}, {}, PlainDialect(), {}, EqualRows.STOP)
    with pytest.raises(NeedsOperator) as stopped:
        list(plan_bucket(chunks, between(), target, OPEN_PROTOCOL, QuarantinePolicy()))
    assert stopped.value.facts["commit_ts"] == 6


@pytest.mark.parametrize("equal_rows", EqualRows)
def test_equal_rows_of_one_record_are_real(equal_rows):
    rows = [put(5, 1, "a", shape=UNKEYED, offset=3, index=index) for index in (0, 1)]
    assert statements(*rows, equal_rows=equal_rows) == [(Phase.REPLACE, "insert", [[1, "a"]])] * 2
    # Sent again behind a point where the producer went back, in two records.
    again = [put(5, 1, "a", shape=UNKEYED, offset=offset) for offset in (7, 8)]
    back = {STREAM: [RepeatPoint(Offset(5), Ts(0), is_return=True)]}
    assert statements(*rows, *again, repeats=back, equal_rows=equal_rows) == [(Phase.REPLACE, "insert", [[1, "a"]])] * 2


@pytest.mark.parametrize("equal_rows", EqualRows)
def test_two_equal_rows_that_become_different_ones_in_two_partitions_both_change(equal_rows):
    """The dispatcher ``columns`` sends each update to the partition of its new row."""
    chunks = [
        packed(gone(5, 9, "z", shape=UNKEYED), put(5, number, "z", shape=UNKEYED), stream=Stream(STREAM.topic, number)) for number in (0, 1)
    ]
    target = PlanTarget({TABLE.folded: TABLE}, {}, PlainDialect(), {}, equal_rows)
    found = [one for one in plan_bucket(chunks, between(), target, OPEN_PROTOCOL, QuarantinePolicy()) if isinstance(one, Statement)]
    assert [json.loads(one.text)[3] for one in found if one.phase is Phase.DELETE] == [[[9, "z"]]] * 2
    assert sorted(row for one in found if one.phase is Phase.REPLACE for row in json.loads(one.text)[3]) == [[0, "z"], [1, "z"]]


def test_without_best_effort_they_need_the_operator():
    target = PlanTarget({TABLE.folded: TABLE}, {}, PlainDialect())
    with pytest.raises(NeedsOperator, match="no key"):
        list(plan_bucket([packed(put(5, 1, "a", shape=UNKEYED))], between(), target, OPEN_PROTOCOL))


def test_rows_with_and_without_a_key_in_one_segment_are_a_defect_of_the_caller():
    with pytest.raises(InvariantViolation, match="disagree"):
        planned(put(5, 1, "a", shape=UNKEYED), put(6, 1, "a", offset=1), table=ORDERS_TABLE)


@pytest.mark.parametrize("make", [put, gone])
def test_a_row_that_is_too_large_is_refused_alone(make):
    rows = [make(5, number, text, shape=UNKEYED, offset=number) for number, text in enumerate(["a", "b" * 60, "c"])]
    found = planned(*rows, policy=QUARANTINE, dialect=Refusing(longest=50))
    assert [one.place.offset for one in found if isinstance(one, RejectedEvent)] == [1]
    assert [json.loads(one.text)[3] for one in found if isinstance(one, Statement)] == [[[0, "a"]], [[2, "c"]]]


def test_an_unreadable_row_is_quarantined_and_its_marker_stands_for_no_other_row():
    rows = [
        put(5, 1, "a", shape=UNKEYED),
        put(6, 2, "b", shape=UNKEYED, offset=1, image=b"rubbish"),
        put(7, 3, "c", shape=UNKEYED, offset=2, image=b""),
    ]
    found = planned(*rows, policy=QUARANTINE)
    assert [one.place.offset for one in found if isinstance(one, RejectedEvent)] == [1]
    assert [json.loads(one.text)[3] for one in found if isinstance(one, Statement)] == [[[1, "a"]]]


def test_a_row_that_is_in_the_cache_twice_counts_once():
    once = put(5, 1, "a", shape=UNKEYED, offset=3)
    assert statements(once, once) == [(Phase.REPLACE, "insert", [[1, "a"]])]


def test_traced_statements_carry_their_rows():
    policy = QuarantinePolicy(trace_rows=True)
    found = [
        one
        for one in planned(put(5, 1, "a", shape=UNKEYED), gone(6, 2, "b", shape=UNKEYED, offset=1), policy=policy)
        if isinstance(one, Statement)
    ]
    assert [[row.place.offset for row in one.source_rows.rows] for one in found] == [[1], [0]]
