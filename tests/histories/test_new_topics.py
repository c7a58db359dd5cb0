"""A topic that is added to a replica with a checkpoint joins whole, or stops the replica. Its history is never dropped in silence."""

import pytest

from applier.model.errors import NeedsOperator
from applier.model.position import Stream
from applier.replica.shutdown import Shutdown
from tests.builders.handwritten import CREATE_SCHEMA, KEY, PLAIN, ddl, everywhere, log_of, resolved, row, rows_of
from tests.builders.wire import column
from tests.rig.fake_source import FakeSource
from tests.rig.local_replica import sqlite_replica
from tests.rig.programs import PROGRAMS, RequestsShutdown, catch_up

FIRST, SECOND, THIRD = (Stream("other", partition) for partition in range(3))
EXTRA = ddl(600, "CREATE TABLE extra (id INT PRIMARY KEY, n INT)", table="extra")
KNOWN = log_of(
    *everywhere(CREATE_SCHEMA),
    *everywhere(ddl(10, "CREATE TABLE orders (id INT PRIMARY KEY, n INT)")),
    *everywhere(resolved(500)),
)


def extra(ts, key):
    return row(ts, "extra", id=column(3, KEY, key), n=column(3, PLAIN, ts))


def orders(ts, key):
    return row(ts, id=column(3, KEY, key), n=column(3, PLAIN, ts))


def replica_at_500(tmp_path):
    replica = sqlite_replica(tmp_path, FakeSource(KNOWN))
    assert replica.catch_up().checkpoint_ts == 500
    return replica


def add(replica, *placed, partitions=2, **options):
    """Let the replica see more of the known topic, and the topic ``other``."""
    replica.source = FakeSource([*KNOWN, *log_of(*everywhere(resolved(800)), *placed)], partitions={"other": partitions}, **options)


def positions_of(replica):
    return {stream for stream in replica.stored_positions() if stream.topic == "other"}


def missed(replica, program):
    with pytest.raises(NeedsOperator) as shutdown:
        program(replica)
    facts = shutdown.value.facts
    assert facts["kind"] == "missed_topic"
    return facts["topic"], facts["partition"], facts["offset"], facts["commit_ts"], facts["checkpoint_ts"]


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_partition_of_a_new_topic_is_compared_with_the_checkpoint(tmp_path, program):
    replica = replica_at_500(tmp_path)
    add(replica, (FIRST, EXTRA), (FIRST, resolved(700)), (SECOND, extra(100, 1)), (SECOND, extra(101, 2)), (SECOND, resolved(700)))
    assert missed(replica, program) == ("other", 1, 0, 100, 500)
    assert missed(replica, program) == ("other", 1, 0, 100, 500)
    assert positions_of(replica) == set()


@pytest.mark.parametrize("program", PROGRAMS)
def test_rows_of_other_tables_before_it_do_not_hide_a_missed_row(tmp_path, program):
    replica = replica_at_500(tmp_path)
    add(replica, (FIRST, EXTRA), (FIRST, extra(610, 1)), (FIRST, extra(100, 2)), (FIRST, resolved(700)))
    assert missed(replica, program) == ("other", 0, 2, 100, 500)


def test_a_missed_ddl_stops_as_a_missed_row_does(tmp_path):
    replica = replica_at_500(tmp_path)
    add(replica, (FIRST, resolved(90)), (FIRST, ddl(100, "CREATE TABLE extra (id INT PRIMARY KEY)", table="extra")), (FIRST, resolved(700)))
    assert missed(replica, catch_up) == ("other", 0, 1, 100, 500)


def test_an_event_that_is_quarantined_is_compared_too(tmp_path):
    replica = replica_at_500(tmp_path)
    replica.quarantines = frozenset({"unreadable"})
    broken = (row(100, "extra")[0], {"u": {"id": {"t": 3, "f": KEY, "v": {}}}})
    add(replica, (FIRST, broken), (FIRST, EXTRA), (FIRST, resolved(700)))
    assert missed(replica, catch_up) == ("other", 0, 0, 100, 500)


@pytest.mark.parametrize("phase", ["listening", "idle"])
def test_a_run_that_ends_while_it_reads_the_beginning_does_not_make_the_topic_known(tmp_path, phase):
    replica = replica_at_500(tmp_path)
    add(replica, (FIRST, extra(100, 1)), (FIRST, resolved(700)), hidden=phase == "idle")
    if phase == "idle":
        replica.source.advance(len(KNOWN) + 2)
    shutdown = Shutdown()
    replica.observer = RequestsShutdown(shutdown, phase)
    replica.follow(shutdown)
    assert positions_of(replica) == set()
    add(replica, (FIRST, extra(100, 1)), (FIRST, resolved(700)))
    assert missed(replica, catch_up) == ("other", 0, 0, 100, 500)


@pytest.mark.parametrize("program", PROGRAMS)
def test_positions_that_are_saved_while_there_are_only_resolved_events_do_not_make_the_topic_known(tmp_path, program):
    replica = replica_at_500(tmp_path)
    begun = [(FIRST, resolved(60)), (SECOND, resolved(60))]
    add(replica, *begun)
    program(replica)
    assert positions_of(replica) == set()
    add(replica, *begun, (SECOND, extra(100, 1)), (SECOND, resolved(700)), (FIRST, resolved(700)))
    assert missed(replica, program) == ("other", 1, 1, 100, 500)


def test_one_partition_that_has_promised_more_does_not_speak_for_the_others(tmp_path):
    replica = replica_at_500(tmp_path)
    begun = [(FIRST, EXTRA), (FIRST, resolved(700)), (SECOND, resolved(60))]
    add(replica, *begun)
    assert replica.catch_up().checkpoint_ts == 500
    assert positions_of(replica) == set()
    add(replica, *begun, (SECOND, extra(100, 1)), (SECOND, resolved(700)))
    assert missed(replica, catch_up) == ("other", 1, 1, 100, 500)


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_topic_that_begins_above_the_checkpoint_joins_whole(tmp_path, program):
    replica = replica_at_500(tmp_path)
    add(
        replica,
        (FIRST, resolved(60)),
        (SECOND, resolved(60)),
        *[(stream, EXTRA) for stream in (FIRST, SECOND)],
        (FIRST, extra(610, 1)),
        (SECOND, extra(620, 2)),
        (FIRST, resolved(700)),
        (SECOND, resolved(700)),
    )
    program(replica)
    assert rows_of(tmp_path, "shop.extra") == [(1, 610), (2, 620)]
    assert positions_of(replica) == {FIRST, SECOND}


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_partition_that_was_empty_until_the_topic_was_known_may_begin_with_replays(tmp_path, program):
    replica = replica_at_500(tmp_path)
    joined = [(FIRST, EXTRA), (FIRST, extra(610, 1)), (FIRST, resolved(700))]
    add(replica, *joined, partitions=3)
    replica.catch_up()
    assert rows_of(tmp_path, "shop.extra") == [(1, 610)]
    add(replica, *joined, (THIRD, extra(400, 1)), (THIRD, extra(750, 3)), *[(stream, resolved(760)) for stream in (FIRST, THIRD)])
    program(replica)
    assert rows_of(tmp_path, "shop.extra") == [(1, 610), (3, 750)]
    assert positions_of(replica) == {FIRST, THIRD}


def test_replays_behind_the_promise_of_their_partition_do_not_stop_it(tmp_path):
    replica = replica_at_500(tmp_path)
    add(replica, (FIRST, EXTRA), (FIRST, resolved(700)), (FIRST, extra(400, 1)), (FIRST, extra(720, 1)), (FIRST, resolved(800)))
    replica.catch_up()
    assert rows_of(tmp_path, "shop.extra") == [(1, 720)]


def test_of_several_new_topics_the_one_whose_history_was_missed_is_named(tmp_path):
    replica = replica_at_500(tmp_path)
    third = Stream("third", 0)
    add(replica, (FIRST, EXTRA), (FIRST, resolved(700)), (third, orders(499, 1)), (third, resolved(700)))
    assert missed(replica, catch_up) == ("third", 0, 0, 499, 500)
    add(replica, (FIRST, EXTRA), (FIRST, resolved(700)), (third, orders(510, 1)), (third, resolved(700)))
    assert replica.catch_up().checkpoint_ts == 700
    assert rows_of(tmp_path) == [(1, 510)]


def test_a_new_topic_that_was_refused_can_be_taken_out_again(tmp_path):
    replica = replica_at_500(tmp_path)
    add(replica, (FIRST, extra(100, 1)), (FIRST, resolved(700)))
    missed(replica, catch_up)
    replica.source = FakeSource([*KNOWN, *log_of(*everywhere(resolved(800)))])
    assert replica.catch_up().checkpoint_ts == 800
