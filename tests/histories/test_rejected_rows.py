"""Rows that the sink refuses, and final images that cannot be rendered: stored with the progress, while all others are written."""

import sqlite3

import pytest

from applier.coordinator.policy import RowPolicy
from applier.model.errors import FatalSinkError, ProtocolError, RowRefused
from applier.model.position import Offset, Stream
from applier.model.rejected_event import MAX_QUARANTINED, EventPosition, KeptRecord, QuarantineState
from applier.sinks.quarantine import SkipRule
from tests.builders.handwritten import CREATE_SCHEMA, KEY, ONE, PLAIN, TWO, ddl, everywhere, log_of, resolved, row, rows_of
from tests.builders.wire import column, head, record
from tests.rig.fake_source import FakeSource
from tests.rig.faulty_sink import Faults, FaultySink
from tests.rig.local_replica import STRICT, sqlite_replica
from tests.rig.seeds import seeds

REJECTED = frozenset({"rejected"})
ENUM = 247
BEGINNING = (*everywhere(CREATE_SCHEMA), *everywhere(ddl(10, "CREATE TABLE orders (id INT PRIMARY KEY, n INT)")), *everywhere(resolved(11)))
"""Offsets 0 to 2 of both streams."""


def order(ts, number, n, **more):
    return row(ts, id=column(3, KEY, number), n=column(3, PLAIN, n), **more)


def replica_of(tmp_path, *placed, quarantines=REJECTED, refuses="NEW.n >= 100", **more):
    """A replica that has seen the beginning, and whose table then became stricter than upstream's."""
    source = FakeSource(log_of(*BEGINNING, *placed), hidden=True)
    source.advance(len(BEGINNING))
    replica = sqlite_replica(tmp_path, source, quarantines=quarantines, accept=STRICT, **more)
    replica.catch_up()
    source.advance(len(placed))
    with sqlite3.connect(tmp_path / "replica.db") as connection:
        connection.execute(
            f"CREATE TRIGGER strict BEFORE INSERT ON \"shop.orders\" WHEN {refuses} BEGIN SELECT RAISE(ABORT, 'too much'); END"
        )
    return replica


def held(replica):
    return {place: (entry.event.commit_ts, entry.event.key) for place, entry in replica.quarantine().items()}


def stopped(replica):
    """Run until a row that is refused stops it; return what is said."""
    with pytest.raises(RowRefused) as caught:
        replica.catch_up()
    return caught.value


@pytest.mark.parametrize("bad", [{0}, {36}, {17, 18}, set(range(37))], ids=["first", "last", "two", "all"])
def test_by_default_a_row_that_the_sink_refuses_stops_the_replica_and_is_named_among_all_others(bad, tmp_path):
    rows = [(TWO, order(20 + n, n, 100 if n in bad else n)) for n in range(37)]
    replica = replica_of(tmp_path, *rows, *everywhere(resolved(99)), quarantines=frozenset({"unreadable"}))
    error = stopped(replica)
    number = error.facts["offset"] - 3
    assert number in bad
    assert {name: error.facts[name] for name in ("topic", "partition", "event", "table", "commit_ts", "key_columns")} == {
        "topic": "feed",
        "partition": 1,
        "event": 0,
        "table": "shop.orders",
        "commit_ts": 20 + number,
        "key_columns": "id",
    }
    assert "too much" in error.facts["reason"]
    assert f"applier skip --stream feed/1 --offset {3 + number} --event 0" in error.remedy
    assert "on_rejected_row" in error.remedy
    assert (rows_of(tmp_path), replica.quarantine()) == ([], {})


def test_what_the_error_names_can_be_skipped_and_everything_else_is_applied(tmp_path):
    bad = {3, 11}
    rows = [(TWO, order(20 + n, n, 100 if n in bad else n)) for n in range(37)]
    replica = replica_of(tmp_path, *rows, *everywhere(resolved(99)), quarantines=frozenset())
    for _ in bad:
        facts = stopped(replica).facts
        place = EventPosition(Stream(facts["topic"], facts["partition"]), Offset(facts["offset"]), facts["event"])
        replica.skip(SkipRule(decided_by="me@here", position=place))
    replica.catch_up()
    assert rows_of(tmp_path) == [(n, n) for n in range(37) if n not in bad]
    assert {entry.event.state for entry in replica.quarantine().values()} == {QuarantineState.SKIPPED}


def test_a_value_that_cannot_be_written_down_is_named_with_its_event(tmp_path):
    colours = [row(20, table="colours", id=column(3, KEY, n), c=column(ENUM, PLAIN, n)) for n in (1, 2)]
    created = everywhere(ddl(15, "CREATE TABLE colours (id INT PRIMARY KEY, c ENUM('red'))", table="colours"))
    log = log_of(*BEGINNING, *created, (ONE, colours[0]), *everywhere(resolved(30)))
    key, value = record(*colours)
    log[8] = log[8]._replace(key=key, value=value)
    error = stopped(sqlite_replica(tmp_path, FakeSource(log)))
    assert (error.facts["offset"], error.facts["event"]) == (4, 1)
    assert "applier skip --stream feed/0 --offset 4 --event 1" in error.remedy


@pytest.mark.parametrize("rows_ahead", [None, RowPolicy(by_table=False, settle_span=0)], ids=["transaction", "row"])
@pytest.mark.parametrize("bad", [{0}, {36}, {17, 18}, set(range(5, 25)), set(range(37))], ids=["first", "last", "two", "many", "all"])
def test_the_refused_rows_are_found_among_the_others_which_are_written(bad, rows_ahead, tmp_path):
    rows = [(TWO, order(20 + n, n, 100 if n in bad else n)) for n in range(37)]
    replica = replica_of(tmp_path, *rows, *everywhere(resolved(99)), rows=rows_ahead)
    result = replica.catch_up()
    assert rows_of(tmp_path) == [(n, n) for n in range(37) if n not in bad]
    assert held(replica) == {f"feed/1@{3 + n}#0": (20 + n, f"id={n}") for n in bad}
    assert result.rows == 37 - len(bad)
    replica.catch_up()
    assert len(replica.quarantine()) == len(bad)


def test_a_refused_row_is_kept_with_its_record_and_the_error(tmp_path):
    replica = replica_of(tmp_path, (ONE, order(20, 1, 100)), *everywhere(resolved(30)))
    replica.catch_up()
    (entry,) = replica.quarantine().values()
    assert "too much" in entry.event.error
    assert entry.event.state is QuarantineState.HELD
    assert replica.kept(entry) == KeptRecord(*record(order(20, 1, 100)))


def test_the_sink_keeps_the_row_as_it_was_and_a_newer_version_is_written(tmp_path):
    replica = replica_of(
        tmp_path,
        (ONE, order(20, 1, 1)),
        *everywhere(resolved(25)),
        (ONE, order(28, 1, 2)),
        (ONE, order(29, 1, 100)),
        *everywhere(resolved(30)),
        (TWO, order(40, 1, 3)),
        *everywhere(resolved(50)),
    )
    for until_ts, rows in ((25, [(1, 1)]), (30, [(1, 1)]), (None, [(1, 3)])):
        replica.catch_up(until_ts=until_ts)
        assert rows_of(tmp_path) == rows
    assert held(replica) == {"feed/0@6#0": (29, "id=1")}


def test_an_event_behind_a_change_of_key_in_its_record_is_named_by_its_own_index(tmp_path):
    change = head(20), {"u": order(20, 2, 5)[1]["u"], "p": order(20, 1, 5)[1]["u"]}
    log = log_of(*BEGINNING, (ONE, order(20, 1, 1)), *everywhere(resolved(30)))
    key, value = record(change, order(20, 3, 100))
    replica = replica_of(tmp_path, (ONE, order(20, 9, 9)), *everywhere(resolved(30)))
    log[len(BEGINNING)] = log[len(BEGINNING)]._replace(key=key, value=value)
    replica.source = FakeSource(log)
    replica.catch_up()
    assert rows_of(tmp_path) == [(2, 5)]
    assert held(replica) == {"feed/0@3#1": (20, "id=3")}


def test_a_final_image_that_cannot_be_read_is_quarantined_with_the_progress(tmp_path):
    broken = row(30, id=column(3, KEY, 1), n=column(3, PLAIN, "not a number"))
    replica = replica_of(
        tmp_path,
        (ONE, order(20, 1, 1)),
        (ONE, order(20, 2, 2)),
        (ONE, broken),
        *everywhere(resolved(40)),
        quarantines=frozenset({"unreadable"}),
    )
    replica.catch_up()
    assert rows_of(tmp_path) == [(2, 2)]
    assert held(replica) == {"feed/0@5#0": (30, "id=1")}


def test_each_policy_sees_to_its_own(tmp_path):
    broken = row(30, id=column(3, KEY, 1), n=column(3, PLAIN, "not a number"))
    with pytest.raises(ProtocolError):
        replica_of(tmp_path, (ONE, order(20, 1, 1)), (ONE, broken), *everywhere(resolved(40))).catch_up()


def test_a_value_that_cannot_be_written_down_for_the_sink_is_refused_like_any_other(tmp_path):
    created = everywhere(ddl(15, "CREATE TABLE colours (id INT PRIMARY KEY, c ENUM('red','blue'))", table="colours"))

    def colour(ts, number, ordinal):
        return row(ts, table="colours", id=column(3, KEY, number), c=column(ENUM, PLAIN, ordinal))

    log = [*created, *[(ONE, colour(20, n, n)) for n in range(5)], *everywhere(resolved(30))]
    replica = replica_of(tmp_path, *log)
    replica.catch_up()
    assert rows_of(tmp_path, "shop.colours") == [(0, ""), (1, "red"), (2, "blue")]
    assert held(replica) == {"feed/0@7#0": (20, "id=3"), "feed/0@8#0": (20, "id=4")}


def test_more_rows_that_cannot_be_written_down_than_an_accident_makes_stop_the_replica(tmp_path):
    created = everywhere(ddl(15, "CREATE TABLE colours (id INT PRIMARY KEY, c ENUM('red'))", table="colours"))
    colours = [(ONE, row(20, table="colours", id=column(3, KEY, n), c=column(ENUM, PLAIN, 2))) for n in range(MAX_QUARANTINED + 1)]
    replica = replica_of(tmp_path, *created, *colours, *everywhere(resolved(99)))
    with pytest.raises(FatalSinkError, match="100"):
        replica.catch_up()
    assert (rows_of(tmp_path, "shop.colours"), replica.quarantine()) == ([], {})


def test_more_refused_rows_than_an_accident_makes_stop_the_replica(tmp_path):
    rows = [(ONE, order(20, n, 100)) for n in range(MAX_QUARANTINED + 1)]
    replica = replica_of(tmp_path, *rows, *everywhere(resolved(99)))
    with pytest.raises(FatalSinkError, match="100"):
        replica.catch_up()
    assert (rows_of(tmp_path), replica.quarantine()) == ([], {})


@pytest.mark.parametrize("seed", seeds(range(6), daily=3))
def test_faults_store_each_refused_row_once(seed, tmp_path):
    faults = Faults(seed, rate=0.4)
    rows = [(stream, order(20 + n, 2 * n + stream.partition, 100 if n % 7 == 3 else n)) for n in range(40) for stream in (ONE, TWO)]
    replica = replica_of(tmp_path, *rows, *everywhere(resolved(99)))
    replica.wrap = lambda sink: FaultySink(sink, faults)
    replica.catch_up()
    assert len(rows_of(tmp_path)) == 80 - 12
    assert len(replica.quarantine()) == 12
