"""Tables without a key, ``keyless = "best_effort"``: their rows as a multiset, over replays and restarts (in process, on SQLite).

Scenario S22 of the consumers' reference: what ``force-replicate`` sends.
"""

import sqlite3
from dataclasses import replace

import pytest

from applier.model.errors import FatalSinkError, NeedsOperator
from applier.planner.keyless import EqualRows
from tests.builders.handwritten import CREATE_SCHEMA, ONE, PLAIN, TWO, ddl, everywhere, log_of, resolved, rows_of
from tests.builders.wire import column, head
from tests.rig.fake_source import FakeSource
from tests.rig.local_replica import SMALL, sqlite_replica

CREATED = ddl(10, "CREATE TABLE orders (n INT, word VARCHAR(20), f DOUBLE)")
BEGIN = [*everywhere(CREATE_SCHEMA), *everywhere(CREATED)]
INT, TEXT, DOUBLE = 3, 15, 5


def image(number, word="x", f=0.5):
    return {"n": column(INT, PLAIN, number), "word": column(TEXT, 64, word), "f": column(DOUBLE, PLAIN, f)}


def added(ts, *values):
    return head(ts), {"u": image(*values)}


def removed(ts, *values):
    return head(ts), {"d": image(*values)}


def changed(ts, old, new):
    return head(ts), {"u": image(*new), "p": image(*old)}


def replica_of(tmp_path, *events, **options):
    return sqlite_replica(tmp_path, FakeSource(log_of(*BEGIN, *events)), writes_keyless=True, equal_rows=EqualRows.ALL, **options)


def numbers(tmp_path):
    return [row[0] for row in rows_of(tmp_path)]


def test_s22_equal_rows_of_one_transaction_are_all_written(tmp_path):
    replica_of(tmp_path, (ONE, added(20, 1)), (ONE, added(20, 1)), (ONE, added(21, 1)), *everywhere(resolved(30))).catch_up()
    assert numbers(tmp_path) == [1, 1, 1]


def test_s22_a_delete_takes_one_of_several_equal_rows(tmp_path):
    events = [(ONE, added(20, 1)), (ONE, added(20, 1)), *everywhere(resolved(30)), (ONE, removed(40, 1)), *everywhere(resolved(50))]
    replica_of(tmp_path, *events).catch_up()
    assert numbers(tmp_path) == [1]


def test_s22_rows_that_come_again_before_a_promise_count_once(tmp_path):
    sent = [(ONE, added(20, 1)), (ONE, added(20, 1)), (ONE, added(21, 2)), (ONE, removed(22, 1))]
    replica_of(tmp_path, *sent, *sent, *everywhere(resolved(30))).catch_up()
    assert numbers(tmp_path) == [1, 2]


def test_s22_a_transaction_that_comes_again_after_a_promise_counts_once(tmp_path):
    sent = [(ONE, added(20, 1)), (ONE, added(20, 1))]
    replica_of(tmp_path, *sent, (ONE, resolved(25)), *sent, (ONE, resolved(30)), (TWO, resolved(30))).catch_up()
    assert numbers(tmp_path) == [1, 1]


@pytest.mark.parametrize("records", [1, 2, 3, 7])
def test_s22_a_promise_counts_in_whichever_range_it_was_read(records, tmp_path):
    sent = [(ONE, added(20, 1)), (ONE, added(20, 1)), (ONE, added(22, 2))]
    events = [*sent, (ONE, resolved(25)), *sent, (ONE, resolved(26)), *sent, *everywhere(resolved(30))]
    replica_of(tmp_path, *events, policy=replace(SMALL, range_records=records)).catch_up()
    assert numbers(tmp_path) == [1, 1, 2]


def test_s22_a_transaction_that_was_cut_short_counts_as_its_whole_copy(tmp_path):
    whole = [(ONE, added(20, 1)), (ONE, added(20, 1)), (ONE, added(20, 1))]
    replica_of(tmp_path, (ONE, added(19, 9)), *whole[:2], (ONE, added(19, 9)), *whole, *everywhere(resolved(30))).catch_up()
    assert numbers(tmp_path) == [1, 1, 1, 9]


def test_a_promise_that_steps_back_ends_a_run(tmp_path):
    events = [(ONE, resolved(15)), (ONE, added(20, 1)), (ONE, resolved(14)), (ONE, added(20, 1)), *everywhere(resolved(30))]
    replica_of(tmp_path, *events).catch_up()
    assert numbers(tmp_path) == [1]


def test_rows_that_are_older_than_those_before_them_are_no_repetition_by_themselves(tmp_path):
    """Two physical partitions of one table: each in the order of its commit_ts, and not in that of the other."""
    events = [(ONE, added(22, 1)), (ONE, added(20, 2)), (ONE, added(22, 1)), *everywhere(resolved(30))]
    replica_of(tmp_path, *events).catch_up()
    assert numbers(tmp_path) == [1, 1, 2]


def test_s22_a_replay_below_the_checkpoint_changes_nothing_after_a_restart(tmp_path):
    sent = [(ONE, added(20, 1)), (ONE, added(21, 1))]
    first = [*sent, *everywhere(resolved(30))]
    replica_of(tmp_path, *first).catch_up()
    later = [*first, *sent, (ONE, added(40, 1)), *sent, (ONE, added(40, 1)), *everywhere(resolved(50))]
    replica_of(tmp_path, *later).catch_up()
    assert numbers(tmp_path) == [1, 1, 1]


def test_rows_at_the_checkpoint_are_not_applied_again(tmp_path):
    events = [(ONE, added(30, 1)), *everywhere(resolved(30))]
    replica_of(tmp_path, *events).catch_up()
    replica_of(tmp_path, *events, (ONE, added(30, 1)), *everywhere(resolved(40))).catch_up()
    assert numbers(tmp_path) == [1]


def test_an_update_replaces_one_row(tmp_path):
    events = [(ONE, added(20, 1)), (ONE, added(20, 1)), (ONE, changed(21, (1,), (2,))), *everywhere(resolved(30))]
    replica_of(tmp_path, *events).catch_up()
    assert numbers(tmp_path) == [1, 2]


def test_an_update_that_sends_changed_columns_only_replaces_the_whole_row(tmp_path):
    update = head(40), {"u": image(1, "b"), "p": {"word": column(TEXT, 64, "a")}}
    events = [(ONE, added(20, 1, "a")), (ONE, added(20, 2, "a")), *everywhere(resolved(30)), (ONE, update), *everywhere(resolved(50))]
    replica_of(tmp_path, *events).catch_up()
    assert rows_of(tmp_path) == [(1, "b", 0.5), (2, "a", 0.5)]


def test_an_update_that_changed_nothing_changes_nothing(tmp_path):
    events = [(ONE, added(20, 1)), (ONE, (head(21), {"u": image(1), "p": {}})), *everywhere(resolved(30))]
    replica_of(tmp_path, *events).catch_up()
    assert numbers(tmp_path) == [1]


def test_a_delete_finds_null_and_texts_that_a_collation_takes_for_others(tmp_path):
    words = ["a", "A", "a ", None, ""]
    first = [(ONE, added(20, 1, word)) for word in words]
    gone = [(ONE, removed(40, 1, word)) for word in ("A", None, "a ")]
    replica_of(tmp_path, *first, *everywhere(resolved(30)), *gone, *everywhere(resolved(50))).catch_up()
    assert rows_of(tmp_path) == [(1, "", 0.5), (1, "a", 0.5)]


def test_a_delete_of_a_row_that_the_sink_lacks_stops_with_its_place(tmp_path):
    replica = replica_of(tmp_path, (ONE, added(20, 1)), *everywhere(resolved(30)), (ONE, removed(40, 2)), *everywhere(resolved(50)))
    with pytest.raises(FatalSinkError, match="lacks a row that upstream has deleted") as caught:
        replica.catch_up()
    assert {"table": "shop.orders", "commit_ts": 40, "topic": "feed", "partition": 0}.items() <= caught.value.facts.items()
    assert "output-old-value" in caught.value.remedy


def test_a_delete_of_a_row_that_the_sink_lacks_can_be_quarantined(tmp_path):
    events = [(ONE, added(20, 1)), *everywhere(resolved(30)), (ONE, removed(40, 2)), (ONE, added(41, 3)), *everywhere(resolved(50))]
    replica_of(tmp_path, *events, quarantines=frozenset({"rejected"})).catch_up()
    assert numbers(tmp_path) == [1, 3]


def test_an_unreadable_row_is_quarantined_alone(tmp_path):
    bad = head(21), {"u": {**image(1), "n": column(INT, PLAIN, "not a number")}}
    events = [(ONE, added(20, 1)), (ONE, bad), (ONE, added(22, 1)), *everywhere(resolved(30))]
    replica_of(tmp_path, *events, quarantines=frozenset({"unreadable"})).catch_up()
    assert numbers(tmp_path) == [1, 1]


def test_a_table_gets_a_key_and_loses_it(tmp_path):
    keyed = {**image(5), "n": column(INT, 11, 5)}
    events = [
        (ONE, added(20, 1)),
        *everywhere(ddl(25, "ALTER TABLE orders MODIFY n INT NOT NULL, ADD PRIMARY KEY (n)", t=61)),
        (ONE, (head(26), {"u": keyed})),
        (ONE, (head(27), {"u": {**keyed, "f": column(DOUBLE, PLAIN, 0.75)}})),
        *everywhere(ddl(30, "ALTER TABLE orders DROP PRIMARY KEY", t=33)),
        (ONE, added(35, 5, "x", 0.75)),
        *everywhere(resolved(40)),
    ]
    replica_of(tmp_path, *events).catch_up()
    assert rows_of(tmp_path) == [(1, "x", 0.5), (5, "x", 0.75), (5, "x", 0.75)]


def test_events_without_a_key_go_by_the_key_that_upstreams_ddl_gave_the_sink(tmp_path):
    """Stale flags: the producer does not know of the key yet."""
    events = [
        *everywhere(ddl(15, "ALTER TABLE orders ADD PRIMARY KEY (n)", t=32)),
        (ONE, added(20, 1, "a")),
        (ONE, changed(21, (1, "a"), (1, "b"))),
        (ONE, changed(21, (1, "a"), (1, "b"))),
        *everywhere(resolved(30)),
    ]
    replica_of(tmp_path, *events).catch_up()
    assert rows_of(tmp_path) == [(1, "b", 0.5)]


def test_rows_with_flags_of_a_key_that_is_gone_and_rows_without_are_not_written_together(tmp_path):
    """What the former have left out of updates, the latter would need: the operator divides the segment."""
    keyed = {**image(5), "n": column(INT, 11, 5)}
    events = [
        *everywhere(ddl(15, "ALTER TABLE orders MODIFY n INT NOT NULL, ADD PRIMARY KEY (n)", t=61)),
        *everywhere(ddl(20, "ALTER TABLE orders DROP PRIMARY KEY", t=33)),
        (ONE, (head(25), {"u": keyed})),
        *everywhere(resolved(30)),
        (ONE, added(35, 5)),
        *everywhere(resolved(40)),
    ]
    with pytest.raises(NeedsOperator, match="different keys"):
        replica_of(tmp_path, *events).catch_up()
    replica_of(tmp_path, *events).catch_up(until_ts=30)
    replica_of(tmp_path, *events).catch_up()
    assert numbers(tmp_path) == [5, 5]


def test_rows_that_lack_columns_need_the_operator(tmp_path):
    partial = {name: value for name, value in image(1).items() if name != "f"}
    with pytest.raises(NeedsOperator):
        replica_of(tmp_path, (ONE, (head(20), {"u": partial})), *everywhere(resolved(30))).catch_up()


def test_tables_without_a_key_stop_by_default(tmp_path):
    log = log_of(*BEGIN, (ONE, added(20, 1)), *everywhere(resolved(30)))
    with pytest.raises(NeedsOperator, match="no key") as caught:
        sqlite_replica(tmp_path, FakeSource(log)).catch_up()
    assert "best_effort" in caught.value.remedy


def test_a_unique_index_that_only_the_sink_has_needs_the_operator(tmp_path):
    first = [(ONE, added(20, 1)), *everywhere(resolved(30))]
    replica_of(tmp_path, *first).catch_up()
    with sqlite3.connect(tmp_path / "replica.db") as connection:
        connection.execute('CREATE UNIQUE INDEX "shop.orders.by_hand" ON "shop.orders" (n)')
    with pytest.raises(NeedsOperator, match="unique index"):
        replica_of(tmp_path, *first, (ONE, added(40, 1)), *everywhere(resolved(50))).catch_up()
    assert numbers(tmp_path) == [1]
