"""Tables without a key while partitions are added: what is sent again comes in other partitions, and its order proves nothing."""

import pytest

from applier.demo.simulator.producer.options import LogRecord
from applier.model.position import NO_TS, Stream
from applier.planner.keyless import AmbiguousRows
from applier.sources.ticdc.tso import later_by
from tests.builders.handwritten import CREATE_SCHEMA, ONE, PLAIN, TWO, ddl, everywhere, log_of, resolved, row, rows_of
from tests.builders.wire import column, record
from tests.rig.fake_source import FakeSource
from tests.rig.local_replica import sqlite_replica

THREE = Stream("feed", 2)
BEGIN = [*everywhere(CREATE_SCHEMA), *everywhere(ddl(10, "CREATE TABLE orders (n INT)")), *everywhere(resolved(15))]
AFTER = later_by(NO_TS, 60_000)
"""Long after all records were written."""


def added(ts, number):
    return row(ts, n=column(3, PLAIN, number))


def grown(tmp_path, *records):
    """Return a replica that has read the beginning, and its source, with more records of several events."""
    more = [LogRecord(stream, *record(*events), 2_000) for stream, *events in records]
    source = FakeSource([*log_of(*BEGIN), *more], hidden=True)
    for stream in (ONE, TWO):
        source.advance_stream(stream, 3)
    replica = sqlite_replica(tmp_path, source, writes_keyless=True)
    replica.catch_up()
    return replica, source


def test_rows_that_come_again_after_partitions_were_added_stop_the_applier_in_each_run(tmp_path):
    replica, source = grown(
        tmp_path,
        (ONE, added(18, 9)),
        (ONE, added(20, 2), added(20, 1)),
        (TWO, resolved(30)),
        # The new owner sends the transaction again: its first row goes to TWO, behind the promise, and was not read so far.
        (ONE, added(20, 1)),
        *((stream, resolved(30)) for stream in (ONE, THREE)),
    )
    for stream, records in ((ONE, 4), (TWO, 1), (THREE, 1)):
        source.advance_stream(stream, records)
    assert replica.catch_up(until_ts=18).checkpoint_ts == 18
    with pytest.raises(AmbiguousRows) as stopped:
        replica.catch_up()
    assert stopped.value.facts["commit_ts"] == 20
    assert rows_of(tmp_path) == [(9,)]


def test_rows_count_by_their_order_again_when_the_checkpoint_has_passed_the_change(tmp_path):
    replica, source = grown(
        tmp_path,
        *((stream, resolved(AFTER)) for stream in (ONE, TWO, THREE)),
        (ONE, added(AFTER + 5, 2), added(AFTER + 5, 1)),
        (ONE, added(AFTER + 5, 1)),
        *((stream, resolved(AFTER + 9)) for stream in (ONE, TWO, THREE)),
    )
    for stream in (ONE, TWO, THREE):
        source.advance_stream(stream, 1)
    assert replica.catch_up().checkpoint_ts == AFTER
    for stream in (ONE, TWO, THREE):
        source.advance_stream(stream, 3)
    assert replica.catch_up().checkpoint_ts == AFTER + 9
    assert rows_of(tmp_path) == [(1,), (1,), (2,)]
