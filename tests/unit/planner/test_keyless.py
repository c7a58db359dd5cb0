"""Tables without a key in a plan: refused unless they are asked for; one row at a time; what cannot be written is refused alone."""

import json
from dataclasses import replace

import pytest

from applier.model.errors import FatalSinkError, InvariantViolation, NeedsOperator, RowRefused
from applier.model.events import TableName
from applier.model.position import Offset, Stream, Ts
from applier.model.range_report import RepeatPoint
from applier.model.rejected_event import RejectedEvent
from applier.planner import PlanTarget, QuarantinePolicy, plan_bucket
from applier.planner.keyless import AmbiguousRows, EqualRows, EqualRowsRule, Repeats
from applier.planner.port import Phase, Statement
from applier.sources.open_protocol import OPEN_PROTOCOL
from tests.builders.planning import INT, ORDERS_TABLE, STREAM, TEXT, PlainDialect, between, gone, packed, put, shape, sink_table

UNKEYED = shape(("id", INT, 1), ("name", TEXT, 64))
PARTITIONED = UNKEYED._replace(partitioned=True)
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
    target = PlanTarget({table.folded: table}, {}, dialect or PlainDialect(), repeats or Repeats(), EqualRowsRule(equal_rows))
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
    assert stopped_by(chunks, {TABLE.folded: TABLE}).facts["commit_ts"] == 6


def stopped_by(chunks, tables, rule=EqualRowsRule()):  # noqa: B008 - a value
    with pytest.raises(AmbiguousRows) as stopped:
        list(plan_bucket(chunks, between(), PlanTarget(tables, {}, PlainDialect(), Repeats(), rule), OPEN_PROTOCOL, QuarantinePolicy()))
    return stopped.value


def table_and_rows(name, *commits):
    unkeyed = shape(("id", INT, 1), ("name", TEXT, 64), table=name)
    rows = [put(ts, 1, "a", shape=unkeyed, offset=offset) for ts, offset in commits]
    return sink_table("id", "name", primary=(), table=name), packed(*rows)


def test_of_several_tables_that_of_the_earliest_commit_is_named_with_all_that_share_it():
    named = {"b": [(7, 1), (7, 2)], "c": [(6, 3), (6, 4)], "d": [(6, 5), (6, 6), (8, 7), (8, 8)], "e": [(6, 9)]}
    made = [table_and_rows(name, *commits) for name, commits in named.items()]
    error = stopped_by([rows for _, rows in made], {table.folded: table for table, _ in made})
    assert (error.facts["commit_ts"], error.facts["table"], error.facts["tables"]) == (6, "shop.c", "shop.c, shop.d")
    assert "`applier catchup --until-ts 6`" in error.remedy


def test_the_operator_decides_about_each_table():
    rule = EqualRowsRule(patterns=(("shop.b*", EqualRows.ALL), ("shop.*", EqualRows.STOP)))
    made = [table_and_rows(name, (6, 1), (6, 2)) for name in ("b1", "c")]
    error = stopped_by([rows for _, rows in made], {table.folded: table for table, _ in made}, rule)
    assert error.facts["tables"] == "shop.c"


@pytest.mark.parametrize(
    ("records", "inserted"),
    [
        ("b a / a", 3),
        ("b a / a c / a d", 6),
        ("b b a / a", 4),
        # The first row of what is sent again comes again, wherever the producer was interrupted.
        ("a / a", None),
        ("b a / b a a", None),
        ("b a c / b / b a c", None),
        ("b a c / b a c", None),
        # A client that got no answer has stored a record twice.
        ("b / a / a", None),
        ("b / a c / a c", None),
        ("b / c c / a c", 5),
    ],
)
def test_equal_rows_are_real_where_the_first_row_of_their_commit_came_once(records, inserted):
    rows = [
        put(5, ord(name), name, shape=UNKEYED, offset=offset, index=index)
        for offset, record in enumerate(records.split(" / "))
        for index, name in enumerate(record.split())
    ]
    if inserted is None:
        with pytest.raises(AmbiguousRows):
            planned(*rows, equal_rows=EqualRows.STOP)
    else:
        assert sum(len(one[2]) for one in statements(*rows, equal_rows=EqualRows.STOP)) == inserted == len(rows)
    # Partitions of a table are not ordered among one another: each of them may have been sent again alone.
    rows = [replace(row, shape=PARTITIONED) for row in rows]
    with pytest.raises(AmbiguousRows):
        planned(*rows, equal_rows=EqualRows.STOP)


@pytest.mark.parametrize(
    ("records", "inserted"),
    [
        ("b a / a // b a / a", 3),
        # The rest of what was sent first comes from a node that does not know that it was replaced.
        ("b a // a", 3),
        ("b a // b a / a", None),
        ("b // b a / a", None),
        ("a // a", 1),
        ("a // a / a", None),
    ],
)
def test_equal_rows_behind_a_point_where_the_producer_went_back(records, inserted):
    rows = [
        put(5, ord(name), name, shape=UNKEYED, offset=offset, index=index)
        for offset, record in enumerate(records.replace("//", "/ back /").split(" / "))
        for index, name in enumerate(record.split())
        if record != "back"
    ]
    back = Repeats({STREAM: [RepeatPoint(Offset(records.partition("//")[0].count(" / ") + 1), Ts(0), is_return=True, table=TABLE.folded)]})
    if inserted is None:
        with pytest.raises(AmbiguousRows):
            planned(*rows, repeats=back, equal_rows=EqualRows.STOP)
    else:
        assert sum(len(one[2]) for one in statements(*rows, repeats=back, equal_rows=EqualRows.STOP)) == inserted


def test_a_promise_that_steps_back_does_not_prove_that_equal_rows_are_one():
    """The producer may have gone back before the first of them: its next promise comes some rows later."""
    rows = [put(5, 1, "a", shape=UNKEYED, offset=offset) for offset in (1, 3)]
    back = Repeats({STREAM: [RepeatPoint(Offset(2), Ts(3), is_return=True)]})
    with pytest.raises(AmbiguousRows):
        planned(*rows, repeats=back, equal_rows=EqualRows.STOP)
    assert len(statements(*rows, repeats=back, equal_rows=EqualRows.ALL)) == 1


@pytest.mark.parametrize(
    ("sent", "inserted"),
    [
        # Sent again whole.
        ("x3 y4 a5 x3 y4 a5", 3),
        ("x3 y4 a5 y4 a5", 3),
        ("x3 y4 a5 x3 y4 x3 y4 a5", 3),
        # Between two equal rows of a node that was replaced another one begins to send again.
        ("x3 y4 a5 x3 a5", None),
        ("x3 y4 a5 x3 a5 y4 a5 a5", None),
        ("x3 y4 a5 x3 y4 x3 a5", None),
        # Both rows are sent again.
        ("x3 y4 a5 x3 y4 a5 a5", None),
    ],
)
def test_what_a_node_sends_again_comes_without_a_gap(sent, inserted):
    rows = [put(int(name[1]), ord(name[0]), name, shape=UNKEYED, offset=offset) for offset, name in enumerate(sent.split())]
    if inserted is None:
        with pytest.raises(AmbiguousRows):
            planned(*rows, equal_rows=EqualRows.STOP)
    else:
        assert sum(len(one[2]) for one in statements(*rows, equal_rows=EqualRows.STOP)) == inserted


def test_a_run_does_not_end_within_a_record():
    rows = [put(5, 1, "a", shape=UNKEYED), put(6, 2, "b", shape=UNKEYED, offset=1)]
    rows += [put(5, 1, "a", shape=UNKEYED, offset=1, index=1), put(6, 2, "b", shape=UNKEYED, offset=1, index=2)]
    assert sorted(statements(*rows, equal_rows=EqualRows.STOP)) == [
        (Phase.REPLACE, "insert", [row]) for row in ([1, "a"], [2, "b"], [2, "b"])
    ]


def test_an_older_row_of_a_partitioned_table_does_not_show_that_the_producer_went_back():
    """Two physical partitions of the table: the rows at 5 are of one of them, and real."""
    rows = [put(5, 1, "a", shape=UNKEYED), put(6, 2, "b", shape=UNKEYED, offset=1), put(5, 1, "a", shape=UNKEYED, offset=2)]
    assert len(statements(*rows, equal_rows=EqualRows.STOP)) == 2
    rows = [replace(row, shape=PARTITIONED) for row in rows]
    with pytest.raises(AmbiguousRows):
        planned(*rows, equal_rows=EqualRows.STOP)
    # Nor does a row that was applied before.
    back = Repeats({STREAM: [RepeatPoint(Offset(2), Ts(0), is_return=True, table=TABLE.folded)]})
    with pytest.raises(AmbiguousRows):
        planned(*rows, repeats=back, equal_rows=EqualRows.STOP)


def test_where_the_number_of_partitions_has_changed_the_order_proves_nothing():
    """The first row was sent again into a partition that is new, and the other one into the same as before."""
    first = [put(5, 2, "b", shape=UNKEYED, offset=1), put(5, 1, "a", shape=UNKEYED, offset=1, index=1)]
    again = [put(5, 1, "a", shape=UNKEYED, offset=2)]
    moved = packed(put(5, 2, "b", shape=UNKEYED, offset=1), stream=Stream(STREAM.topic, 9))
    assert stopped_by([packed(*first, *again), moved], {TABLE.folded: TABLE}, EqualRowsRule()).facts["commit_ts"] == 5


def test_up_to_a_growth_of_the_topic_no_order_proves_that_equal_rows_are_real_or_one():
    """The first row may have come again in another partition, where it was not read."""
    records = [put(5, 2, "b", shape=UNKEYED), put(5, 1, "a", shape=UNKEYED, index=1), put(5, 1, "a", shape=UNKEYED, offset=1)]
    restart = [put(4, 3, "c", shape=UNKEYED), put(5, 1, "a", shape=UNKEYED, offset=1)]
    restart += [put(4, 3, "c", shape=UNKEYED, offset=2), put(5, 1, "a", shape=UNKEYED, offset=3)]
    for rows, inserted in ((records, 3), (restart, 2)):
        with pytest.raises(AmbiguousRows):
            planned(*rows, repeats=Repeats(unordered_ts=Ts(5)), equal_rows=EqualRows.STOP)
        found = statements(*rows, repeats=Repeats(unordered_ts=Ts(3)), equal_rows=EqualRows.STOP)
        assert sum(len(one[2]) for one in found) == inserted
    again = statements(*restart, repeats=Repeats(unordered_ts=Ts(5)), equal_rows=EqualRows.ALL)
    assert sum(len(one[2]) for one in again) == 2


def test_equal_rows_in_two_partitions_stop_since_their_number_has_changed():
    chunks = [packed(put(5, 1, "a", shape=UNKEYED), stream=Stream(STREAM.topic, number)) for number in (0, 1)]
    assert stopped_by(chunks, {TABLE.folded: TABLE}).facts["rows"] == 2


def test_equal_rows_of_two_tables_that_are_routed_into_one_are_real():
    chunks = [
        packed(put(5, 1, "a", shape=UNKEYED._replace(routed_from=TableName("shop", name))), stream=Stream(STREAM.topic, number))
        for number, name in enumerate(("old_1", "old_2"))
    ]
    target = PlanTarget({TABLE.folded: TABLE}, {}, PlainDialect(), Repeats(), EqualRowsRule())
    found = [one for one in plan_bucket(chunks, between(), target, OPEN_PROTOCOL, QuarantinePolicy()) if isinstance(one, Statement)]
    assert [row for one in found for row in json.loads(one.text)[3]] == [[1, "a"], [1, "a"]]


@pytest.mark.parametrize("equal_rows", EqualRows)
def test_equal_rows_of_one_record_are_real(equal_rows):
    rows = [put(5, 1, "a", shape=UNKEYED, offset=3, index=index) for index in (0, 1)]
    assert statements(*rows, equal_rows=equal_rows) == [(Phase.REPLACE, "insert", [[1, "a"]])] * 2
    # Sent again behind a point where the producer went back, in two records.
    again = [put(5, 1, "a", shape=UNKEYED, offset=offset) for offset in (7, 8)]
    back = Repeats({STREAM: [RepeatPoint(Offset(5), Ts(0), is_return=True, table=TABLE.folded)]})
    assert statements(*rows, *again, repeats=back, equal_rows=equal_rows) == [(Phase.REPLACE, "insert", [[1, "a"]])] * 2


@pytest.mark.parametrize("equal_rows", EqualRows)
def test_two_equal_rows_that_become_different_ones_in_two_partitions_both_change(equal_rows):
    """The dispatcher ``columns`` sends each update to the partition of its new row."""
    chunks = [
        packed(gone(5, 9, "z", shape=UNKEYED), put(5, number, "z", shape=UNKEYED), stream=Stream(STREAM.topic, number)) for number in (0, 1)
    ]
    target = PlanTarget({TABLE.folded: TABLE}, {}, PlainDialect(), Repeats(), EqualRowsRule(equal_rows))
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
    assert [one.position.offset for one in found if isinstance(one, RejectedEvent)] == [1]
    assert [json.loads(one.text)[3] for one in found if isinstance(one, Statement)] == [[[0, "a"]], [[2, "c"]]]


def test_an_unreadable_row_is_quarantined_and_its_marker_stands_for_no_other_row():
    rows = [
        put(5, 1, "a", shape=UNKEYED),
        put(6, 2, "b", shape=UNKEYED, offset=1, image=b"rubbish"),
        put(7, 3, "c", shape=UNKEYED, offset=2, image=b""),
    ]
    found = planned(*rows, policy=QUARANTINE)
    assert [one.position.offset for one in found if isinstance(one, RejectedEvent)] == [1]
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
    assert [[row.position.offset for row in one.source_rows.rows] for one in found] == [[1], [0]]
