"""Events that cannot be read, and events that the operator wants skipped: stored once, with their records, and nothing else changes."""

import pytest

from applier.coordinator.policy import RowPolicy
from applier.model.errors import ProtocolError, SourceError
from applier.model.events import FoldedName
from applier.model.position import Offset, Ts
from applier.model.rejected_event import MAX_QUARANTINED, WHOLE_RECORD, EventPosition, KeptRecord, QuarantineState
from applier.sinks.ledger_entry import DdlState
from applier.sinks.quarantine import SkipRule
from tests.builders.handwritten import CREATE_SCHEMA, KEY, ONE, PLAIN, TWO, ddl, everywhere, log_of, resolved, row, rows_of
from tests.builders.wire import column, head, record
from tests.rig.fake_source import FakeSource
from tests.rig.faulty_sink import Faults, FaultySink
from tests.rig.local_replica import sqlite_replica

HELD, SKIPPED = QuarantineState.HELD, QuarantineState.SKIPPED
UNREADABLE = frozenset({"unreadable"})
BEGINNING = (*everywhere(CREATE_SCHEMA), *everywhere(ddl(10, "CREATE TABLE orders (id INT PRIMARY KEY, n INT)")), *everywhere(resolved(11)))
"""Offsets 0 to 2 of both streams."""


def order(ts, number, n, **more):
    return row(ts, id=column(3, KEY, number), n=column(3, PLAIN, n), **more)


def broken_value(ts, number):
    """A row whose key can be read, and whose other column cannot."""
    return row(ts, id=column(3, KEY, number), n=column(3, PLAIN, "not a number"))


def replica_of(tmp_path, *placed, quarantines=UNREADABLE, **more):
    return sqlite_replica(tmp_path, FakeSource(log_of(*BEGINNING, *placed)), quarantines=quarantines, **more)


def broken(record):
    """A record whose body is cut short: not even its events can be separated."""
    return record._replace(value=record.value[:-3])


def states(replica):
    return {place: entry.event.state for place, entry in replica.quarantine().items()}


def at(offset, event=WHOLE_RECORD, stream=ONE):
    return EventPosition(stream, Offset(offset), event)


def test_by_default_a_record_that_cannot_be_read_stops_the_replica_and_nothing_is_quarantined(tmp_path):
    replica = replica_of(tmp_path, (ONE, broken_value(20, 1)), *everywhere(resolved(30)), quarantines=frozenset())
    with pytest.raises(ProtocolError):
        replica.catch_up()
    assert replica.quarantine() == {}


@pytest.mark.parametrize("cut_down", [{"ohk": True}, {"ccl": "s3://large/1"}])
def test_a_row_that_was_too_large_for_kafka_is_like_one_that_cannot_be_read(cut_down, tmp_path):
    key, body = order(20, 1, 1)
    large = (ONE, (key | cut_down, body))
    replica = replica_of(tmp_path, large, (ONE, order(21, 2, 2)), *everywhere(resolved(30)), quarantines=frozenset())
    with pytest.raises(ProtocolError, match="too large for Kafka"):
        replica.catch_up()
    replica = replica_of(tmp_path, large, (ONE, order(21, 2, 2)), *everywhere(resolved(30)))
    replica.catch_up()
    assert rows_of(tmp_path) == [(2, 2)]
    assert states(replica) == {"feed/0@3#0": HELD}


def test_a_record_that_cannot_be_read_is_kept_whole_and_the_rest_is_applied(tmp_path):
    log = log_of(*BEGINNING, (ONE, order(20, 1, 1)), (ONE, order(21, 2, 2)), (ONE, order(22, 3, 3)), *everywhere(resolved(30)))
    log[7] = broken(log[7])
    replica = sqlite_replica(tmp_path, FakeSource(log), quarantines=UNREADABLE)
    for _ in range(3):
        replica.catch_up()
    assert rows_of(tmp_path) == [(1, 1), (3, 3)]
    ((place, entry),) = replica.quarantine().items()
    assert (place, entry.event.state, entry.event.commit_ts) == ("feed/0@4", HELD, 0)
    assert "length" in entry.event.error
    assert "DDL" in entry.event.error, "what it held is not known, and that is said"
    assert replica.kept(entry) == KeptRecord(log[7].key, log[7].value)


@pytest.mark.parametrize("rows", [None, RowPolicy(by_table=False, settle_span=0)], ids=["transaction", "row"])
def test_an_unreadable_version_of_a_row_is_never_replaced_by_an_older_one(rows, tmp_path):
    replica = replica_of(
        tmp_path,
        (ONE, order(20, 1, 1)),
        *everywhere(resolved(25)),
        (ONE, order(30, 1, 2)),
        (ONE, broken_value(31, 1)),
        (ONE, order(31, 2, 2)),
        *everywhere(resolved(40)),
        rows=rows,
    )
    replica.source.advance(0)
    replica.catch_up(until_ts=25)
    replica.catch_up()
    assert rows_of(tmp_path) == [(1, 1), (2, 2)], "not (1, 2), which was upstream's row at 30 only"
    (entry,) = replica.quarantine().values()
    assert (entry.event.commit_ts, entry.event.schema, entry.event.table, entry.event.position.event) == (31, "shop", "orders", 0)


def test_a_newer_version_of_a_row_takes_the_place_of_an_unreadable_one(tmp_path):
    replica = replica_of(tmp_path, (ONE, broken_value(20, 1)), (TWO, order(21, 1, 7)), *everywhere(resolved(30)))
    replica.catch_up()
    assert rows_of(tmp_path) == [(1, 7)]
    assert states(replica) == {"feed/0@3#0": HELD}


def test_the_readable_events_of_a_record_are_applied(tmp_path):
    log = log_of(*BEGINNING, (ONE, order(20, 1, 1)), *everywhere(resolved(30)))
    key, value = record(order(20, 1, 1), broken_value(20, 2), order(20, 3, 3))
    log[6] = log[6]._replace(key=key, value=value)
    replica = sqlite_replica(tmp_path, FakeSource(log), quarantines=UNREADABLE)
    replica.catch_up()
    assert rows_of(tmp_path) == [(1, 1), (3, 3)]
    assert states(replica) == {"feed/0@3#1": HELD}


def test_a_changed_key_that_cannot_be_read_holds_both_rows(tmp_path):
    change = (
        head(30),
        {"u": {"id": column(3, KEY, 2), "n": column(3, PLAIN, "?")}, "p": {"id": column(3, KEY, 1), "n": column(3, PLAIN, 0)}},
    )
    replica = replica_of(
        tmp_path,
        (ONE, order(20, 1, 1)),
        *everywhere(resolved(25)),
        (ONE, order(29, 1, 9)),
        (ONE, change),
        *everywhere(resolved(40)),
    )
    replica.catch_up(until_ts=25)
    replica.catch_up()
    assert rows_of(tmp_path) == [(1, 1)]
    assert states(replica) == {"feed/0@6#0": HELD}


def test_a_ddl_that_cannot_be_read_is_applied_from_another_partition(tmp_path):
    alter = ddl(20, "ALTER TABLE orders ADD COLUMN m INT", t=5)
    replica = replica_of(tmp_path, (ONE, (alter[0], {"q": 5})), (TWO, alter), *everywhere(resolved(30)))
    replica.catch_up()
    (entry,) = replica.quarantine().values()
    assert "it is a DDL" in entry.event.error
    assert [ddl.query for ddl in (entry.ddl for entry in replica.ledger())][-1].startswith("ALTER TABLE orders ADD COLUMN m")


def test_what_the_quarantine_holds_does_not_stop_a_replica_that_stops_again_at_others(tmp_path):
    log = log_of(*BEGINNING, (ONE, broken_value(20, 1)), *everywhere(resolved(30)), (ONE, broken_value(40, 2)), *everywhere(resolved(50)))
    source = FakeSource(log, hidden=True)
    source.advance(9)
    replica = sqlite_replica(tmp_path, source, quarantines=UNREADABLE)
    replica.catch_up()
    replica.quarantines = frozenset()
    replica.catch_up()
    source.advance(99)
    with pytest.raises(ProtocolError) as caught:
        replica.catch_up()
    assert caught.value.facts["offset"] == 5
    assert states(replica) == {"feed/0@3#0": HELD}


def test_more_rejected_events_than_an_accident_makes_stop_the_replica(tmp_path):
    replica = replica_of(tmp_path, *[(ONE, broken_value(20, n)) for n in range(MAX_QUARANTINED + 1)], *everywhere(resolved(30)))
    replica.policy = type(replica.policy)()
    with pytest.raises(SourceError, match="100") as caught:
        replica.catch_up()
    assert caught.value.facts["kind"] == "too_many_bad_events"
    assert replica.quarantine() == {}


def test_the_rejected_events_of_several_ranges_are_not_counted_together(tmp_path):
    events = [(stream, broken_value(20 + n, 2 * n + stream.partition)) for n in range(60) for stream in (ONE, TWO)]
    replica = replica_of(tmp_path, *events, *everywhere(resolved(99)))
    assert replica.policy.range_records < MAX_QUARANTINED < len(events)
    replica.catch_up()
    assert list(states(replica).values()) == [HELD] * len(events)


@pytest.mark.parametrize("seed", range(6))
def test_faults_and_deaths_store_each_rejected_event_once(seed, tmp_path):
    faults = Faults(seed, rate=0.4)
    rows_ahead = RowPolicy(by_table=False, settle_span=0) if seed >= 4 else None
    rows = [
        (stream, (broken_value if n % 7 == 3 else order)(*args)) for n in range(40) for stream in (ONE, TWO) for args in [_args(n, stream)]
    ]
    replica = replica_of(tmp_path, *rows, *everywhere(resolved(99)), rows=rows_ahead, wrap=lambda sink: FaultySink(sink, faults))
    replica.catch_up()
    assert len(rows_of(tmp_path)) == 80 - 12
    assert len(replica.quarantine()) == 12


def _args(n, stream):
    number = 2 * n + stream.partition
    return (20 + n, number) if n % 7 == 3 else (20 + n, number, 0)


# Skipping


def test_an_event_that_is_skipped_counts_as_never_written(tmp_path):
    replica = replica_of(tmp_path, (ONE, order(20, 1, 1)), (ONE, order(21, 1, 2)), *everywhere(resolved(30)), quarantines=frozenset())
    replica.skip(SkipRule(decided_by="me@here", position=at(4)))
    for _ in range(2):
        replica.catch_up()
    assert rows_of(tmp_path) == [(1, 1)]
    ((place, entry),) = replica.quarantine().items()
    assert (place, entry.event.state, entry.event.key) == ("feed/0@4#0", SKIPPED, "id=1")
    assert "me@here" in entry.event.error


@pytest.mark.parametrize(("event", "left"), [(0, [(2, 2), (3, 3)]), (1, [(1, 1), (3, 3)]), (WHOLE_RECORD, [])])
def test_one_event_of_a_record_or_all_of_them_can_be_skipped(event, left, tmp_path):
    log = log_of(*BEGINNING, (ONE, order(20, 1, 1)), *everywhere(resolved(30)))
    key, value = record(order(20, 1, 1), order(20, 2, 2), order(20, 3, 3))
    log[6] = log[6]._replace(key=key, value=value)
    replica = sqlite_replica(tmp_path, FakeSource(log))
    replica.skip(SkipRule(decided_by="me@here", position=at(3, event)))
    replica.catch_up()
    assert rows_of(tmp_path) == left
    assert set(states(replica).values()) == {SKIPPED}


def test_the_one_record_that_stops_a_replica_can_be_skipped(tmp_path):
    log = log_of(*BEGINNING, (ONE, order(20, 1, 1)), (ONE, order(21, 2, 2)), *everywhere(resolved(30)))
    log[6] = broken(log[6])
    replica = sqlite_replica(tmp_path, FakeSource(log))
    with pytest.raises(ProtocolError):
        replica.catch_up()
    replica.skip(SkipRule(decided_by="me@here", position=at(3)))
    replica.catch_up()
    assert rows_of(tmp_path) == [(2, 2)]
    assert states(replica) == {"feed/0@3": SKIPPED}


def test_rows_of_one_transaction_and_table_can_be_skipped(tmp_path):
    replica = replica_of(tmp_path, (ONE, order(20, 1, 1)), (TWO, order(20, 2, 2)), (TWO, order(21, 3, 3)), *everywhere(resolved(30)))
    replica.skip(SkipRule(decided_by="me@here", commit_ts=Ts(20), table=FoldedName("shop", "orders")))
    replica.skip(SkipRule(decided_by="me@here", commit_ts=Ts(21), table=FoldedName("shop", "others")))
    replica.catch_up()
    assert rows_of(tmp_path) == [(3, 3)]
    assert states(replica) == {"feed/0@3#0": SKIPPED, "feed/1@3#0": SKIPPED}


@pytest.mark.parametrize("table", [FoldedName("shop", "orders"), None], ids=["by table", "by timestamp alone"])
def test_a_ddl_that_is_skipped_is_settled_for_its_copies_and_for_replays(table, tmp_path):
    alter = ddl(20, "ALTER TABLE orders ENGINE = nothing_like_it", t=5)
    log = log_of(
        *BEGINNING, *everywhere(alter), *everywhere(resolved(30)), *everywhere(alter), (ONE, order(40, 1, 1)), *everywhere(resolved(50))
    )
    replica = sqlite_replica(tmp_path, FakeSource(log))
    replica.skip(SkipRule(decided_by="me@here", commit_ts=Ts(20), table=table))
    replica.catch_up()
    assert rows_of(tmp_path) == [(1, 1)]
    assert [(entry.state, entry.ddl.query) for entry in replica.ledger() if entry.ddl.commit_ts == 20] == [
        (DdlState.SKIPPED, alter[1]["q"])
    ]
