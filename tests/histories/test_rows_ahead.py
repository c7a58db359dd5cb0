"""``consistency = "row"``: whatever the changefeed does within its conditions, the sink ends identical to the oracle."""

from dataclasses import replace

import pytest

from applier.coordinator.policy import RowPolicy
from applier.demo.simulator.dispatch import Dispatcher
from applier.demo.simulator.history import History, HistoryOptions
from applier.demo.simulator.producer import Producer, ProducerOptions
from applier.model.errors import NeedsOperator
from applier.model.position import Stream
from applier.sinks.ledger_entry import DdlState
from tests.builders.handwritten import CREATE_SCHEMA, KEY, ONE, PLAIN, TWO, ddl, everywhere, log_of, resolved, row, rows_of
from tests.builders.wire import column
from tests.histories.test_any_history_ends_identical import assert_identical
from tests.rig.fake_source import FakeSource
from tests.rig.faulty_sink import DeathError, Faults, FaultySink
from tests.rig.local_replica import sqlite_replica
from tests.rig.protocol import in_format
from tests.rig.seeds import seeds


def world(seed, **changes):
    """A history, and what a producer with one of the two dispatchers that row consistency allows makes of it."""
    history = History(seed, HistoryOptions(transactions=60))
    dispatcher = (Dispatcher.TABLE, Dispatcher.INDEX_VALUE)[seed % 2]
    drawn = ProducerOptions.drawn(seed)
    # Raw updates that change a key are ordered where a table has one stream.
    images = drawn.images if dispatcher is Dispatcher.TABLE else replace(drawn.images, raw_updates=False)
    options = replace(drawn, dispatcher=dispatcher, partitions=1 + seed % 5, images=images, **changes)
    producer = Producer(history, in_format(options))
    # The simulator sends resolved events to some partitions at a time: without growth they were always there all the same.
    rows = RowPolicy(by_table=dispatcher is Dispatcher.TABLE, most_rows=50, settle_span=0, checks_beginning=options.growth > 0)
    return history, producer, list(producer.log()), rows


@pytest.mark.parametrize("seed", seeds(range(60), daily=16))
def test_the_sink_equals_the_oracle_at_the_last_common_resolved_ts(seed, tmp_path, row_steps):
    history, producer, log, rows = world(seed)
    replica = sqlite_replica(tmp_path, FakeSource(log), rows=rows)
    assert replica.catch_up().checkpoint_ts == producer.final_ts
    # After growth all wait for W, mostly longer than a history lasts.
    assert row_steps or rows.checks_beginning
    assert_identical(history, producer.final_ts, replica.url)


@pytest.mark.usefixtures("without_waiting")
@pytest.mark.parametrize("seed", seeds(range(103, 115), daily=4))
def test_deaths_refused_writes_and_lost_answers_at_any_commit_lose_and_repeat_nothing(seed, tmp_path, row_steps):
    history, producer, log, rows = world(seed, growth=0)
    faults = Faults(seed, rate=0.1, deaths=0.1)
    replica = sqlite_replica(tmp_path, FakeSource(log), rows=rows, wrap=lambda sink: FaultySink(sink, faults))
    while True:
        try:
            replica.catch_up()
            break
        except DeathError:
            continue
    assert faults.counts["death before"] + faults.counts["death after"] > 0
    assert row_steps
    assert_identical(history, producer.final_ts, replica.url)
    done = [entry.identity for entry in replica.ledger() if entry.state is DdlState.DONE]
    assert len(done) == len(set(done)) == sum(len(step.ddls) for step in history if step.ts < producer.final_ts)


@pytest.mark.usefixtures("without_waiting")
@pytest.mark.parametrize("seed", seeds(range(120, 132), daily=4))
def test_a_replica_may_change_its_consistency_at_any_start(seed, tmp_path):
    history, producer, log, rows = world(seed, growth=0)
    faults = Faults(seed, rate=0.0, deaths=0.15)
    replica = sqlite_replica(tmp_path, FakeSource(log), rows=rows, wrap=lambda sink: FaultySink(sink, faults))
    while True:
        try:
            replica.catch_up()
            break
        except DeathError:
            replica.rows = None if replica.rows else rows
    assert_identical(history, producer.final_ts, replica.url)


BY_KEY = RowPolicy(by_table=False, settle_span=0, checks_beginning=False)
BY_TABLE = RowPolicy(by_table=True, settle_span=0, checks_beginning=False)


def version(ts, key, number, **more):
    return row(ts, id=column(3, KEY, key), n=column(3, PLAIN, number), **more)


def begun(*rest, create="CREATE TABLE orders (id INT PRIMARY KEY, n INT)"):
    return log_of(*everywhere(CREATE_SCHEMA), *everywhere(ddl(10, create)), *everywhere(resolved(11)), *rest)


def test_rows_of_a_stream_are_visible_although_another_one_lags(tmp_path):
    log = begun((ONE, version(15, 1, 1)), (TWO, version(20, 2, 1)), (TWO, version(30, 2, 2)), (TWO, version(40, 4, 4)), (TWO, resolved(40)))
    replica = sqlite_replica(tmp_path, FakeSource(log), rows=BY_KEY)
    assert replica.catch_up().checkpoint_ts == 11
    # At exactly its promise a stream may still bring a row, so 40 waits; the stream that has promised nothing more waits too.
    assert rows_of(tmp_path) == [(2, 2)]
    assert replica.stored_positions()[TWO].applied_ts == 39


def test_a_late_row_of_the_other_stream_takes_nothing_back_and_w_ends_whole(tmp_path):
    lagging = begun((TWO, version(20, 2, 1)), (TWO, version(30, 2, 2)), (TWO, resolved(40)))
    replica = sqlite_replica(tmp_path, FakeSource(lagging), rows=BY_KEY)
    replica.catch_up()
    replica.source = FakeSource([*lagging, *log_of((ONE, version(15, 1, 1)), (ONE, resolved(25)))])
    # W is 25 now: the version at 20 belongs to the window, and the later one is in the sink.
    assert replica.catch_up().checkpoint_ts == 25
    assert rows_of(tmp_path) == [(1, 1), (2, 2)]
    replica.source = FakeSource([*lagging, *log_of((ONE, version(15, 1, 1)), (ONE, resolved(25)), (ONE, resolved(40)))])
    assert replica.catch_up().checkpoint_ts == 40
    assert rows_of(tmp_path) == [(1, 1), (2, 2)]


def test_after_a_switch_to_transactions_the_sink_is_upstream_from_the_greatest_applied_ts_on(tmp_path):
    lagging = begun((TWO, version(20, 2, 1)), (TWO, version(30, 2, 2)), (TWO, resolved(40)))
    replica = sqlite_replica(tmp_path, FakeSource(lagging), rows=BY_KEY)
    replica.catch_up()
    assert rows_of(tmp_path) == [(2, 2)]
    replica.source, replica.rows = FakeSource([*lagging, *log_of((ONE, resolved(25)))]), None
    replica.catch_up()
    assert rows_of(tmp_path) == [(2, 1)]
    assert replica.stored_positions()[TWO].applied_ts == 0
    replica.source = FakeSource([*lagging, *log_of((ONE, resolved(25)), (ONE, resolved(39)))])
    replica.catch_up()
    assert rows_of(tmp_path) == [(2, 2)]


def test_no_row_passes_a_ddl_that_waits(tmp_path):
    altered = ddl(25, "ALTER TABLE orders ADD COLUMN x INT", t=5)
    log = begun((TWO, version(20, 2, 1)), *everywhere(altered), (TWO, version(30, 3, 2)), (TWO, resolved(40)))
    replica = sqlite_replica(tmp_path, FakeSource(log), rows=BY_KEY)
    replica.catch_up()
    assert rows_of(tmp_path) == [(2, 1)]
    assert replica.stored_positions()[TWO].applied_ts == 25


@pytest.mark.parametrize(
    "create",
    [
        "CREATE TABLE orders (id INT PRIMARY KEY, n INT UNIQUE)",
        "CREATE TABLE orders (id DOUBLE PRIMARY KEY, n INT)",
        "CREATE TABLE orders (id INT PRIMARY KEY, n INT, UNIQUE KEY (n, id))",
    ],
)
def test_tables_that_do_not_qualify_wait_for_w(create, tmp_path):
    kind = 5 if "DOUBLE" in create else 3
    waiting = row(20, id=column(kind, KEY, 2), n=column(3, PLAIN | 24 if "UNIQUE" in create else PLAIN, 1))
    replica = sqlite_replica(tmp_path, FakeSource(begun((TWO, waiting), (TWO, resolved(40)), create=create)), rows=BY_KEY)
    replica.catch_up()
    assert rows_of(tmp_path) == []


def test_a_table_in_two_streams_contradicts_the_dispatcher_table(tmp_path):
    log = begun((ONE, version(20, 1, 1)), (TWO, version(20, 2, 1)), *everywhere(resolved(30)))
    with pytest.raises(NeedsOperator, match="declared dispatcher is table") as stopped:
        sqlite_replica(tmp_path, FakeSource(log), rows=BY_TABLE).catch_up()
    assert stopped.value.facts["kind"] == "dispatcher"


def test_a_raw_update_that_changes_its_key_stops_where_keys_choose_the_stream(tmp_path):
    changed = version(20, 1, 1)
    changed = changed[0], {**changed[1], "p": {"id": column(3, KEY, 2), "n": column(3, PLAIN, 1)}}
    with pytest.raises(NeedsOperator, match="output-raw-change-event") as stopped:
        sqlite_replica(tmp_path, FakeSource(begun((ONE, changed), *everywhere(resolved(30)))), rows=BY_KEY).catch_up()
    assert (stopped.value.facts["table"], stopped.value.facts["commit_ts"]) == ("shop.orders", 20)


def admin(partitions):
    return {"t": 4}, {"partition": partitions}


def test_after_an_announced_change_of_partitions_w_orders_the_versions_of_a_key(tmp_path):
    # TWO is used no more: its keys go to ONE. What TWO still holds lags.
    replica = sqlite_replica(tmp_path, FakeSource(begun()), rows=BY_KEY)
    replica.catch_up()
    begin = begun((ONE, admin(1)), (ONE, version(30, 1, 30)), (ONE, resolved(40)))
    replica.source = FakeSource(begin)
    replica.catch_up()
    assert rows_of(tmp_path) == []
    replica.catch_up()
    assert rows_of(tmp_path) == []
    replica.source = FakeSource([*begin, *log_of((TWO, version(20, 1, 20)), (TWO, admin(1)), (ONE, resolved(50)))])
    assert replica.catch_up().checkpoint_ts == 50
    assert rows_of(tmp_path) == [(1, 30)]


def test_a_stop_during_an_announced_change_of_partitions_does_not_forget_it(tmp_path):
    replica = sqlite_replica(tmp_path, FakeSource(begun()), rows=BY_KEY)
    replica.catch_up()
    begin = begun((ONE, version(25, 7, 7)), (ONE, admin(1)), (ONE, version(30, 1, 30)), (ONE, resolved(40)))
    # W passes the row before the admin event: the next run reads from behind that event on.
    moved = [*begin, *log_of((TWO, resolved(29)))]
    replica.source = FakeSource(moved)
    assert replica.catch_up().checkpoint_ts == 29
    assert replica.stored_positions()[ONE].next_offset == 5
    replica.catch_up()
    assert rows_of(tmp_path) == [(7, 7)]
    replica.source = FakeSource([*moved, *log_of((TWO, version(29, 1, 20)), (TWO, admin(1)), (ONE, resolved(50)))])
    assert replica.catch_up().checkpoint_ts == 50
    assert rows_of(tmp_path) == [(1, 30), (7, 7)]


THREE = Stream("feed", 2)
LATER = (ONE, version(20, 1, 1)), (ONE, version(30, 1, 2)), (ONE, resolved(40))
"""Two versions of a row, which go to TWO from the growth to THREE on."""


def ahead_of_growth(tmp_path, rows):
    """A replica that has written the later version while TWO lags."""
    replica = sqlite_replica(tmp_path, FakeSource(begun(*LATER)), rows=rows)
    assert replica.catch_up().checkpoint_ts == 11
    assert rows_of(tmp_path) == [(1, 2)]
    return replica


def test_a_replay_that_moves_a_row_to_another_partition_takes_nothing_back(tmp_path):
    replica = ahead_of_growth(tmp_path, BY_KEY)
    # The producer has begun again with three partitions. TWO promised 40 before; of what comes again it has the first version so far.
    replayed = begun(*LATER, (TWO, resolved(40)), (TWO, version(20, 1, 1)))
    replica.source = FakeSource(replayed)
    assert replica.catch_up().checkpoint_ts == 40
    assert rows_of(tmp_path) == [(1, 2)]
    replica.source = FakeSource([*replayed, *log_of((TWO, version(30, 1, 2)), *((stream, resolved(50)) for stream in (ONE, TWO, THREE)))])
    assert replica.catch_up().checkpoint_ts == 50
    assert rows_of(tmp_path) == [(1, 2)]


def test_a_row_at_the_checkpoint_is_not_taken_back_by_its_copy_in_another_partition(tmp_path):
    """A replaced row is a delete and an insert of one commit_ts. The group at the checkpoint comes again, and only half of it has moved."""
    deleted, inserted = version(20, 1, 1, deleted=True), version(20, 1, 2)
    first = begun((ONE, version(15, 1, 1)), (ONE, deleted), (ONE, inserted), (ONE, resolved(40)), (TWO, resolved(20)))
    replica = sqlite_replica(tmp_path, FakeSource(first), rows=BY_KEY)
    assert replica.catch_up().checkpoint_ts == 20
    more = [*first, *log_of((TWO, resolved(40)), (TWO, deleted), (THREE, resolved(40)))]
    replica.source = FakeSource(more)
    assert replica.catch_up().checkpoint_ts == 40
    assert rows_of(tmp_path) == [(1, 2)]


CHECKED = replace(BY_KEY, checks_beginning=True)


def test_rows_that_were_written_before_the_beginning_is_proven_come_again_after_a_restart(tmp_path):
    replica = ahead_of_growth(tmp_path, CHECKED)
    assert replica.stored_positions()[ONE].applied_ts == 39
    replica.source = FakeSource(begun(*LATER, (TWO, resolved(25))))
    assert replica.catch_up().checkpoint_ts == 25
    assert rows_of(tmp_path) == [(1, 1)]
    replica.source = FakeSource(begun(*LATER, (TWO, resolved(25)), (TWO, resolved(40))))
    assert replica.catch_up().checkpoint_ts == 40
    assert rows_of(tmp_path) == [(1, 2)]


def grown_at_the_first_promise(*more):
    """The first version is in TWO. Then the producer, still at its first promise, gets more partitions: the row goes to ONE."""
    grown = (TWO, version(20, 1, 1)), (THREE, resolved(11)), (ONE, version(20, 1, 1)), (ONE, version(30, 1, 2)), (ONE, resolved(40))
    return begun(*grown, (THREE, resolved(40)), *more)


def test_a_growth_at_the_very_first_promise_takes_no_row_back(tmp_path):
    """ONE is a partition that was added, too: it has that promise once, and TWO a second time, which is read when rows are ahead."""
    replica = sqlite_replica(tmp_path, FakeSource(grown_at_the_first_promise()), rows=CHECKED)
    assert replica.catch_up().checkpoint_ts == 11
    assert rows_of(tmp_path) == [(1, 2)]
    replica.source = FakeSource(grown_at_the_first_promise((TWO, resolved(11)), (TWO, resolved(25))))
    assert replica.catch_up().checkpoint_ts == 25
    replica.source = FakeSource(grown_at_the_first_promise((TWO, resolved(11)), (TWO, resolved(25)), (TWO, resolved(40))))
    assert replica.catch_up().checkpoint_ts == 40
    assert rows_of(tmp_path) == [(1, 2)]


def test_rows_before_the_first_promise_are_applied_before_any_is_written_ahead(tmp_path):
    """The producer died before it had promised anything, and began again with a partition more: its first promise is the same in all."""
    create = ddl(10, "CREATE TABLE orders (id INT PRIMARY KEY, n INT)")
    begin = [*everywhere(CREATE_SCHEMA), *everywhere(create), (TWO, version(20, 1, 1)), (ONE, version(20, 1, 1)), (ONE, version(30, 1, 2))]
    log = log_of(*begin, *everywhere(resolved(11)), (ONE, resolved(40)))
    replica = sqlite_replica(tmp_path, FakeSource(log), rows=CHECKED)
    assert replica.catch_up().checkpoint_ts == 11
    assert rows_of(tmp_path) == []
    replica.source = FakeSource([*log, *log_of((TWO, resolved(25)))])
    assert replica.catch_up().checkpoint_ts == 25
    replica.source = FakeSource([*log, *log_of((TWO, resolved(25)), (TWO, resolved(40)))])
    assert replica.catch_up().checkpoint_ts == 40
    assert rows_of(tmp_path) == [(1, 2)]


def test_rows_that_must_wait_for_w_do_not_stop_those_behind_them(tmp_path):
    unique = ddl(10, "CREATE TABLE codes (id INT PRIMARY KEY, n INT UNIQUE)", table="codes")
    waiting = [(TWO, row(20 + n, table="codes", id=column(3, KEY, n), n=column(3, PLAIN | 24, n))) for n in range(9)]
    made = log_of(*everywhere(CREATE_SCHEMA), *everywhere(ddl(9, "CREATE TABLE orders (id INT PRIMARY KEY, n INT)")), *everywhere(unique))
    log = [*made, *log_of(*everywhere(resolved(11)), *waiting, (TWO, version(30, 2, 2)), (TWO, resolved(40)))]
    replica = sqlite_replica(tmp_path, FakeSource(log), rows=replace(BY_KEY, most_rows=4))
    assert replica.catch_up().checkpoint_ts == 11
    assert rows_of(tmp_path) == [(2, 2)]
    assert rows_of(tmp_path, "shop.codes") == []
