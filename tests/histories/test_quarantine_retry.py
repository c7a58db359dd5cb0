"""An event of the quarantine is applied after all only where that is right: it is due, and nothing later happened to its rows."""

import sqlite3
from contextlib import closing

import msgspec
import pytest

from applier.demo.simulator.producer.options import LogRecord
from applier.model.errors import FatalSinkError, NeedsOperator, ProtocolError, RowRefused
from applier.model.position import CLOCK_SKEW_MS, Offset
from applier.model.rejected_event import WHOLE_RECORD, EventPosition, QuarantineState
from applier.planner.table_check import Acceptance
from applier.replica.quarantine_retry import QuarantineRetry
from applier.sinks.registry import open_sink
from applier.sinks.settings import SinkSettings
from tests.builders.handwritten import CREATE_SCHEMA, KEY, ONE, PLAIN, TWO, ddl, everywhere, log_of, resolved, row, rows_of
from tests.builders.wire import column, head, record
from tests.rig.fake_source import FakeSource
from tests.rig.local_replica import STRICT, sqlite_replica

BEGINNING = (*everywhere(CREATE_SCHEMA), *everywhere(ddl(10, "CREATE TABLE orders (id INT PRIMARY KEY, n INT)")), *everywhere(resolved(11)))
"""Offsets 0 to 2 of both streams."""
PLACE = EventPosition(ONE, Offset(3), 0)


def order(ts, number, n, **more):
    return row(ts, id=column(3, KEY, number), n=column(3, PLAIN, n), **more)


def execute(tmp_path, statement):
    with closing(sqlite3.connect(tmp_path / "replica.db", isolation_level=None)) as connection:
        connection.execute(statement)


def mend(tmp_path):
    execute(tmp_path, "DROP TRIGGER strict")


def replica_of(tmp_path, *placed, **more):
    """A replica whose sink has refused every row with n >= 100."""
    log = log_of(*BEGINNING, *placed)
    source = FakeSource(log, hidden=True)
    source.advance(len(BEGINNING))
    replica = sqlite_replica(tmp_path, source, quarantines=frozenset({"rejected", "unreadable"}), accept=STRICT, **more)
    replica.catch_up()
    source.advance(len(placed))
    execute(tmp_path, "CREATE TRIGGER strict BEFORE INSERT ON \"shop.orders\" WHEN NEW.n >= 100 BEGIN SELECT RAISE(ABORT, 'too much'); END")
    replica.catch_up(until_ts=22)
    replica.catch_up()
    return replica


def retry(replica, place=PLACE):
    with open_sink(SinkSettings(url=replica.url, name=replica.name, lock_timeout_s=0.2)) as sink:
        sink.acquire()
        return QuarantineRetry(replica.source, sink, "me@here", Acceptance(replica.accept)).retry(place)


def state(replica, place=PLACE):
    entry = replica.quarantine()[str(place)]
    return entry.event.state, entry.settled_by


def refusal(replica, place=PLACE, kind=NeedsOperator):
    with pytest.raises(kind) as caught:
        retry(replica, place)
    assert state(replica, place) == (QuarantineState.HELD, "")
    return caught.value


def test_a_row_whose_obstacle_is_gone_is_applied_and_marked_in_one_transaction(tmp_path):
    replica = replica_of(tmp_path, (ONE, order(20, 1, 100)), (ONE, order(21, 2, 2)), *everywhere(resolved(30)))
    mend(tmp_path)
    assert retry(replica) == 1
    assert rows_of(tmp_path) == [(1, 100), (2, 2)]
    assert state(replica) == (QuarantineState.RETRIED, "me@here")
    with pytest.raises(FatalSinkError, match="another operator"):
        retry(replica)
    replica.catch_up()
    assert rows_of(tmp_path) == [(1, 100), (2, 2)]


@pytest.mark.parametrize("indexes", [["UNIQUE KEY u (n)"], ["UNIQUE KEY u (n)", "UNIQUE KEY v (n, id)"]], ids=["one", "two"])
def test_a_row_whose_flags_are_older_than_a_unique_index_of_upstream_is_applied(indexes, tmp_path):
    added = [ddl(12 + number, f"ALTER TABLE orders ADD {index}") for number, index in enumerate(indexes)]
    ddls = [one for statement in added for one in everywhere(statement)]
    replica = replica_of(tmp_path, *ddls, *everywhere(resolved(15)), (ONE, order(20, 1, 100)), *everywhere(resolved(30)))
    mend(tmp_path)
    (place,) = [entry.event.position for entry in replica.quarantine().values()]
    assert retry(replica, place) == 1
    assert rows_of(tmp_path) == [(1, 100)]


def test_a_row_is_not_applied_where_the_sink_has_a_unique_index_that_upstream_lacks(tmp_path):
    replica = replica_of(tmp_path, (ONE, order(20, 1, 100)), *everywhere(resolved(30)))
    mend(tmp_path)
    execute(tmp_path, 'CREATE UNIQUE INDEX own ON "shop.orders" (n)')
    assert "unique" in refusal(replica).message


def test_a_row_that_the_sink_still_refuses_keeps_waiting(tmp_path):
    replica = replica_of(tmp_path, (ONE, order(20, 1, 100)), *everywhere(resolved(30)))
    refusal(replica, kind=RowRefused)
    assert rows_of(tmp_path) == []


def test_s20_a_change_of_key_is_applied_whole(tmp_path):
    change = head(30), {"u": order(30, 2, 100)[1]["u"], "p": order(30, 1, 5)[1]["u"]}
    replica = replica_of(tmp_path, (TWO, order(20, 1, 5)), (ONE, change), *everywhere(resolved(40)))
    assert rows_of(tmp_path) == []
    mend(tmp_path)
    assert retry(replica) == 2
    assert rows_of(tmp_path) == [(2, 100)]


@pytest.mark.parametrize(
    ("later", "is_applied"),
    [
        ((TWO, order(25, 1, 7)), True),
        ((TWO, order(25, 1, 7, deleted=True)), True),
        ((TWO, order(35, 1, 7)), False),
        ((ONE, order(25, 1, 100)), True),
    ],
    ids=["newer", "deleted", "newer and not yet applied", "newer and refused too"],
)
def test_a_later_event_about_the_row_takes_its_place(later, is_applied, tmp_path):
    replica = replica_of(tmp_path, (ONE, order(20, 1, 100)), later, *everywhere(resolved(30)))
    mend(tmp_path)
    assert "a later event" in refusal(replica).message
    assert (1, 100) not in rows_of(tmp_path)


@pytest.mark.parametrize(
    "other",
    [(TWO, order(20, 1, 100)), (TWO, order(15, 1, 7)), (TWO, order(25, 2, 7)), (TWO, row(25, table="lines", id=column(3, KEY, 1)))],
    ids=["a replay of it", "an older version", "another row", "another table"],
)
def test_other_events_do_not_keep_it_out(other, tmp_path):
    made = everywhere(ddl(12, "CREATE TABLE `lines` (id INT PRIMARY KEY)", table="lines"))
    replica = replica_of(tmp_path, *made, (ONE, order(20, 1, 100)), other, *everywhere(resolved(30)))
    mend(tmp_path)
    (entry,) = replica.quarantine().values()
    assert retry(replica, entry.event.position) == 1
    assert (1, 100) in rows_of(tmp_path)


def test_a_ddl_on_the_table_keeps_it_out_and_one_on_another_table_does_not(tmp_path):
    made = everywhere(ddl(25, "CREATE TABLE `lines` (id INT PRIMARY KEY)", table="lines"))
    rows = (ONE, order(20, 1, 100)), (ONE, order(27, 2, 100))
    replica = replica_of(tmp_path, *rows, *made, *everywhere(resolved(30)))
    mend(tmp_path)
    assert retry(replica) == 1
    truncated = (*everywhere(ddl(40, "TRUNCATE TABLE orders", t=11)), *everywhere(resolved(50)))
    replica.source = FakeSource(log_of(*BEGINNING, *rows, *made, *everywhere(resolved(30)), *truncated))
    replica.catch_up()
    refused = refusal(replica, EventPosition(ONE, Offset(4), 0))
    assert (refused.message, refused.facts["table"], refused.facts["ddl_ts"]) == ("a DDL has touched the table since", "shop.orders", 40)
    assert "applier ddl list --ts 40" in refused.remedy
    assert rows_of(tmp_path) == []


def test_an_event_whose_transaction_is_still_to_come_must_wait(tmp_path):
    broken = row(60, id=column(3, KEY, 1), n=column(3, PLAIN, "?"))
    replica = replica_of(tmp_path, (ONE, broken), *everywhere(resolved(30)))
    keep(tmp_path, *record(order(60, 1, 1)))
    assert "not been applied yet" in refusal(replica).message


def keep(tmp_path, key, value):
    """Let the quarantine hold another record, as if a newer applier could read what this one could not."""
    with closing(sqlite3.connect(tmp_path / "replica.db", isolation_level=None)) as connection:
        connection.execute("UPDATE applier_quarantine SET record = ?", (msgspec.msgpack.encode([key, value]),))


def test_an_event_that_still_cannot_be_read_keeps_waiting(tmp_path):
    broken = row(20, id=column(3, KEY, 1), n=column(3, PLAIN, "?"))
    refusal(replica_of(tmp_path, (ONE, broken), *everywhere(resolved(30))), kind=ProtocolError)


def test_a_record_that_has_become_readable_is_applied_whole(tmp_path):
    log = log_of(*BEGINNING, (ONE, order(20, 1, 1)), *everywhere(resolved(30)))
    log[6] = log[6]._replace(value=log[6].value[:-1])
    replica = sqlite_replica(tmp_path, FakeSource(log), quarantines=frozenset({"unreadable"}))
    replica.catch_up()
    keep(tmp_path, *record(order(20, 1, 1), order(20, 2, 2), resolved(20)))
    place = EventPosition(ONE, Offset(3), WHOLE_RECORD)
    assert retry(replica, place) == 2
    assert rows_of(tmp_path) == [(1, 1), (2, 2)]


def test_a_ddl_is_left_to_the_operator(tmp_path):
    broken = (head(20, t=2), {"q": 5})
    replica = replica_of(tmp_path, (ONE, broken), *everywhere(resolved(30)))
    keep(tmp_path, *record(ddl(20, "ALTER TABLE orders ADD COLUMN m INT", t=5)))
    assert "ALTER TABLE orders" in refusal(replica).message


def test_an_unreadable_event_that_may_be_about_the_row_keeps_it_out(tmp_path):
    log = log_of(*BEGINNING, (ONE, order(20, 1, 100)), (TWO, order(20, 2, 2)), *everywhere(resolved(30)))
    replica = replica_of(tmp_path, (ONE, order(20, 1, 100)), *everywhere(resolved(30)))
    mend(tmp_path)
    log[7] = log[7]._replace(value=log[7].value[:-1])
    replica.source = FakeSource(log)
    assert "may have changed the same row" in refusal(replica).message


def test_records_that_have_expired_since_keep_it_out(tmp_path):
    """Commit times of a later day, so that the margin for skew between clocks does not reach back to the topic's beginning."""
    ms = 10 * CLOCK_SKEW_MS
    late = ms << 18
    placed = (*BEGINNING, (ONE, order(late, 1, 100)), *everywhere(resolved(late + 1)))
    log = [LogRecord(r.stream, r.key, r.value, n if n < len(BEGINNING) else ms + n) for n, r in enumerate(log_of(*placed))]
    replica = sqlite_replica(tmp_path, FakeSource(log, hidden=True), quarantines=frozenset({"rejected"}), accept=STRICT)
    replica.source.advance(len(BEGINNING))
    replica.catch_up()
    execute(tmp_path, "CREATE TRIGGER strict BEFORE INSERT ON \"shop.orders\" WHEN NEW.n >= 100 BEGIN SELECT RAISE(ABORT, 'too much'); END")
    replica.source.advance(99)
    replica.catch_up()
    mend(tmp_path)
    replica.source.expire(TWO, Offset(3))
    assert "have expired" in refusal(replica).message
    replica.source.expire(TWO, Offset(2))
    assert retry(replica) == 1
