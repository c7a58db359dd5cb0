"""Placeholders: only final ones are read from upstream, as of the segment's end, and then they are rows like any other."""

import json
from dataclasses import dataclass, field

import pytest

from applier.model.errors import NeedsOperator, ProtocolError, SourceError
from applier.model.failure import FailureKind
from applier.model.rejected_event import RejectedEvent
from applier.planner import PlanTarget, QuarantinePolicy, plan_bucket
from applier.planner.compaction import TransactionSet
from applier.planner.port import LookedUpRows, Phase, Statement
from applier.sources.open_protocol import OpenProtocolDecoder
from applier.sources.ticdc.large_row import WholeRowSources
from tests.builders.planning import INT, ORDERS, TEXT, PlainDialect, between, gone, packed, put, shape, sink_column, sink_table

WHOLE = shape(("id", INT, 11), ("a", TEXT, 64), ("b", TEXT, 64))
PART = shape(("id", INT, 11), ("a", TEXT, 64))
PLACEHOLDER = shape(("id", INT, 11))._replace(placeholder=True)
TABLE = sink_table(sink_column("id"), sink_column("a"), sink_column("b"))


@dataclass
class Upstream:
    """Implements ``RowLookup``: rows by id; ``asked`` are the ids and the snapshot of each call, ``at_once`` the rows of a part.

    ``gone``: from which timestamp on rows are deleted; ``forgotten``: the first that upstream still knows.
    """

    rows_by_id: dict
    at_once: int = 2
    gone: dict = field(default_factory=dict)
    forgotten: int = 0
    asked: list = field(default_factory=list)
    error: Exception | None = None

    def rows(self, shape, keys, ts):
        self.asked.append((sorted(key for (key,) in keys), ts))
        if self.error is not None:
            raise self.error
        if ts < self.forgotten:
            raise NeedsOperator("too old", code=8055)
        # Backwards: upstream gives rows in any order.
        found = [(place, (key, *self.rows_by_id[key])) for place, (key,) in enumerate(keys) if self.has(key, ts)][::-1]
        for first in range(0, len(found), self.at_once):
            part = found[first : first + self.at_once]
            yield LookedUpRows(shape._replace(columns=WHOLE.columns, placeholder=False), [p for p, _ in part], [row for _, row in part])

    def has(self, key, ts):
        return key in self.rows_by_id and ts < self.gone.get(key, ts + 1)


def stub(ts, number, **more):
    return put(ts, number, shape=PLACEHOLDER, **more)


def planned(upstream, *rows, window=None, policy=None, table=TABLE, rekeyed=None):
    decoder = OpenProtocolDecoder(WholeRowSources(lookup=upstream))
    target = PlanTarget({ORDERS: table}, rekeyed or {}, PlainDialect())
    more = () if policy is None else (policy,)
    return list(plan_bucket([packed(*rows)], window or between(), target, decoder, *more))


def said(items):
    """What the statements say, in the writer's order: (operation, rows)."""
    statements = sorted((item for item in items if isinstance(item, Statement)), key=lambda one: one.phase)
    return [(document[0], sorted(document[3])) for document in (json.loads(one.text) for one in statements if one.phase is not Phase.READ)]


def rows_of(items):
    return sorted(row for operation, rows in said(items) if operation == "replace" for row in rows)


def test_final_placeholders_become_whole_rows():
    upstream = Upstream({1: ("a1", "b1"), 2: (None, "b2"), 3: ("a3", "b3")})
    items = planned(upstream, stub(5, 1), stub(6, 2), stub(7, 3), put(8, 4, "a4", "b4", shape=WHOLE))
    assert rows_of(items) == [[1, "a1", "b1"], [2, None, "b2"], [3, "a3", "b3"], [4, "a4", "b4"]]
    assert upstream.asked == [([1, 2, 3], 99)]


def test_what_is_superseded_or_deleted_is_never_looked_up():
    upstream = Upstream({1: ("a1", "b1")})
    rows = [stub(5, 1), stub(6, 1), stub(5, 2), put(6, 2, "a2", "b2", shape=WHOLE), stub(5, 3), gone(6, 3, shape=PLACEHOLDER)]
    items = planned(upstream, *rows)
    assert upstream.asked == [([1], 99)]
    assert said(items) == [("delete", [[3]]), ("replace", [[2, "a2", "b2"]]), ("replace", [[1, "a1", "b1"]])]


def test_a_placeholder_supersedes_a_whole_row():
    upstream = Upstream({1: ("new", "new")})
    assert rows_of(planned(upstream, put(5, 1, "old", "old", shape=WHOLE), stub(6, 1))) == [[1, "new", "new"]]


def test_nothing_is_asked_where_nothing_is_left():
    upstream = Upstream({})
    planned(upstream, put(5, 1, "a", "b", shape=WHOLE), stub(4, 1))
    assert upstream.asked == []


@pytest.mark.parametrize(("upto", "snapshot"), [(100, 99), (8, 7), (7, 7)])
def test_the_snapshot_is_late_but_before_a_ddl_at_the_segments_end(upto, snapshot):
    upstream = Upstream({1: ("a", "b"), 2: ("a", "b")})
    planned(upstream, stub(5, 1), stub(7, 2), window=between(0, upto))
    assert upstream.asked == [([1, 2], snapshot)]


def test_a_partial_row_over_a_placeholder_is_laid_over_the_whole_row():
    upstream = Upstream({1: ("a of 9", "b of 5"), 2: ("a2", "b2")})
    items = planned(upstream, stub(5, 1), put(9, 1, "a of 9", shape=PART), stub(5, 2))
    assert rows_of(items) == [[1, "a of 9", "b of 5"], [2, "a2", "b2"]]


def test_a_placeholder_after_a_partial_row_replaces_it():
    upstream = Upstream({1: ("a of 9", "b of 9")})
    assert rows_of(planned(upstream, put(5, 1, "a of 5", shape=PART), stub(9, 1))) == [[1, "a of 9", "b of 9"]]


def test_where_the_key_is_no_unique_index_of_the_sink_the_row_is_deleted_first():
    upstream = Upstream({1: ("a1", "b1")})
    table = sink_table(sink_column("id"), sink_column("a"), sink_column("b"), primary=())
    assert said(planned(upstream, stub(5, 1), table=table)) == [("delete", [[1]]), ("replace", [[1, "a1", "b1"]])]


def test_a_row_that_upstream_lacks_stops_with_its_place():
    with pytest.raises(ProtocolError, match="no row with this key") as raised:
        planned(Upstream({1: ("a", "b")}), stub(5, 1), stub(6, 2, offset=17))
    facts = raised.value.facts
    assert (facts["kind"], facts["offset"], facts["commit_ts"], facts["snapshot"], facts["table"]) == (
        "handle_key_only",
        17,
        6,
        99,
        "shop.orders",
    )


def test_a_row_whose_delete_an_event_filter_leaves_out_is_read_as_of_its_own_commit():
    upstream = Upstream({1: ("a1", "b1"), 2: ("a2", "b2"), 3: ("a3", "b3")}, gone={2: 9, 3: 50})
    assert rows_of(planned(upstream, stub(5, 1), stub(6, 2), stub(7, 3))) == [[1, "a1", "b1"], [2, "a2", "b2"], [3, "a3", "b3"]]
    assert upstream.asked == [([1, 2, 3], 99), ([2], 6), ([3], 7)]


def test_a_row_of_a_time_that_upstream_has_forgotten_is_quarantined_by_policy():
    upstream = Upstream({1: ("a1", "b1"), 2: ("a2", "b2")}, gone={2: 9}, forgotten=50)
    items = planned(upstream, stub(5, 1), stub(6, 2), policy=QuarantinePolicy(unreadable=True))
    assert rows_of(items) == [[1, "a1", "b1"]]
    assert [(item.key, item.commit_ts) for item in items if isinstance(item, RejectedEvent)] == [("id=2", 6)]


def test_a_row_that_upstream_lacks_is_quarantined_by_policy():
    items = planned(Upstream({1: ("a", "b")}), stub(5, 1), stub(6, 2), policy=QuarantinePolicy(unreadable=True))
    assert rows_of(items) == [[1, "a", "b"]]
    assert [(item.key, item.commit_ts) for item in items if isinstance(item, RejectedEvent)] == [("id=2", 6)]


def test_a_partial_row_over_a_row_that_upstream_lacks_is_quarantined_with_it():
    rows = [stub(5, 1), put(9, 1, "a", shape=PART, offset=2)]
    items = planned(Upstream({}), *rows, policy=QuarantinePolicy(unreadable=True))
    assert said(items) == []
    assert sorted(item.commit_ts for item in items if isinstance(item, RejectedEvent)) == [5, 9]


@pytest.mark.parametrize("error", [NeedsOperator("too old", code=8055), SourceError("gone", kind=FailureKind.UNREACHABLE)])
def test_errors_of_upstream_keep_their_kind_and_name_the_earliest_row(error):
    with pytest.raises(type(error)) as raised:
        planned(Upstream({}, error=error), stub(7, 2, offset=9), stub(5, 1, offset=8), policy=QuarantinePolicy(unreadable=True))
    assert (raised.value.facts["commit_ts"], raised.value.facts["offset"]) == (5, 8)
    assert error.facts.items() <= raised.value.facts.items()


def test_s16_without_an_address_a_placeholder_is_never_applied():
    with pytest.raises(NeedsOperator) as raised:
        planned(None, stub(5, 1))
    assert "source.upstream" in raised.value.remedy


def test_an_upstream_with_other_columns_than_the_sink_stops():
    upstream = Upstream({1: ("a", "b")})
    with pytest.raises(NeedsOperator, match="lacks columns"):
        planned(upstream, stub(5, 1), table=sink_table(sink_column("id"), sink_column("a"), sink_column("b"), sink_column("c")))


def test_transactions_are_counted_as_of_any_row():
    (commits,) = (item for item in planned(Upstream({1: ("a", "b")}), stub(5, 1), stub(6, 1)) if isinstance(item, TransactionSet))
    assert commits == TransactionSet.of({5: None, 6: None})
