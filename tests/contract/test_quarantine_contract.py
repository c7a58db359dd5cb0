"""The quarantine does the same in SQLite and in MariaDB: what is quarantined is there once, whole, until the operator settles it."""

import pytest
from sqlalchemy import Connection, text

from applier.model.errors import FatalSinkError
from applier.model.events import FoldedName
from applier.model.position import MAX_TS, Offset, Stream, Ts
from applier.model.rejected_event import WHOLE_RECORD, EventPosition, KeptRecord, QuarantineState, RejectedEvent
from applier.sinks.bookkeeping import migration
from applier.sinks.bookkeeping.bookkeeping import Bookkeeping
from applier.sinks.bookkeeping.quarantine import PIECE_BYTES, Quarantine
from applier.sinks.quarantine import SkipRule
from tests.contract.quarantining import store

PLACE = EventPosition(Stream("feed", 2), Offset(81_200), 3)
EVENT = RejectedEvent(position=PLACE, error="it broke", schema="shop", table="Orders", key='{"id": 7}', commit_ts=Ts(MAX_TS))
RECORD = KeptRecord(b"\x00\x00\x00\x00\x00\x00\x00\x01'\\\xff", b"body")


@pytest.fixture
def quarantine(books: Bookkeeping) -> Quarantine:
    return Quarantine(books)


def at(offset: int, event: int = WHOLE_RECORD) -> EventPosition:
    return EventPosition(Stream("feed", 0), Offset(offset), event)


def test_an_event_is_kept_with_its_record(quarantine: Quarantine, connection: Connection) -> None:
    assert store(quarantine, connection, EVENT, RECORD)
    (entry,) = quarantine.entries(connection)
    assert (entry.event, entry.settled_at, entry.settled_by) == (EVENT, None, "")
    assert quarantine.record(connection, PLACE) == RECORD


def test_an_event_that_is_found_again_is_not_stored_again(quarantine: Quarantine, connection: Connection) -> None:
    store(quarantine, connection, EVENT, RECORD)
    quarantine.settle(connection, PLACE, QuarantineState.DROPPED, "me@here")
    assert not store(quarantine, connection, EVENT, RECORD)
    assert [entry.event.state for entry in quarantine.entries(connection)] == [QuarantineState.DROPPED]


@pytest.mark.parametrize(
    "record",
    [
        KeptRecord(None, None),
        KeptRecord(b"", b""),
        KeptRecord(b"k", bytes(range(256)) * (PIECE_BYTES // 256)),
        KeptRecord(b"k", b"'" * (3 * PIECE_BYTES)),
    ],
    ids=["nulls", "empty", "just over one piece", "several pieces"],
)
def test_a_record_of_any_size_comes_back_byte_by_byte(record: KeptRecord, quarantine: Quarantine, connection: Connection) -> None:
    store(quarantine, connection, EVENT, record)
    assert quarantine.record(connection, PLACE) == record
    assert len(quarantine.entries(connection)) == quarantine.count(connection) == 1


def test_names_and_keys_that_are_no_text_or_too_long_are_kept_readable(quarantine: Quarantine, connection: Connection) -> None:
    store(quarantine, connection, RejectedEvent(position=PLACE, error="\udcff", schema="s" * 500, table="\udce9", key="\ud800"), RECORD)
    (entry,) = quarantine.entries(connection)
    assert (entry.event.error, entry.event.schema, entry.event.table, entry.event.key) == ("\\udcff", "s" * 192, "\\udce9", "\\ud800")


def test_only_what_waits_is_counted_and_only_what_waits_can_be_settled(quarantine: Quarantine, connection: Connection) -> None:
    store(quarantine, connection, RejectedEvent(position=at(1), error="broken"), RECORD)
    store(quarantine, connection, RejectedEvent(position=at(2), error="broken"), KeptRecord(b"k", b"v" * (2 * PIECE_BYTES)))
    store(quarantine, connection, RejectedEvent(position=at(3), error="left out", state=QuarantineState.SKIPPED), RECORD)
    assert quarantine.count(connection) == 2
    assert quarantine.settle(connection, at(2), QuarantineState.DROPPED, "me@here")
    assert not quarantine.settle(connection, at(2), QuarantineState.RETRIED, "me@here")
    assert not quarantine.settle(connection, at(3), QuarantineState.RETRIED, "me@here")
    assert not quarantine.settle(connection, at(9), QuarantineState.DROPPED, "me@here")
    assert quarantine.count(connection) == 1
    entry = next(entry for entry in quarantine.entries(connection) if entry.event.position == at(2))
    assert (entry.event.state, entry.settled_by) == (QuarantineState.DROPPED, "me@here")
    assert entry.settled_at is not None
    assert entry.found_at <= entry.settled_at


def test_a_record_that_was_not_quarantined_is_an_error(quarantine: Quarantine, connection: Connection) -> None:
    with pytest.raises(FatalSinkError):
        quarantine.record(connection, PLACE)


def test_replicas_do_not_see_one_anothers_quarantine(quarantine: Quarantine, connection: Connection) -> None:
    store(quarantine, connection, EVENT, RECORD)
    other = Quarantine(Bookkeeping("other", quarantine.bookkeeping.dialect))
    assert (other.count(connection), other.entries(connection), other.skip_rules(connection)) == (0, [], [])


@pytest.mark.parametrize(
    "rule",
    [
        SkipRule(decided_by="me@here", position=PLACE),
        SkipRule(decided_by="me@here", position=at(0)),
        SkipRule(decided_by="me@here", commit_ts=Ts(MAX_TS)),
        SkipRule(decided_by="me@here", commit_ts=Ts(5), table=FoldedName("shop", "orders")),
    ],
    ids=["one event", "whole record", "timestamp", "timestamp and table"],
)
def test_a_skip_rule_is_stored_once(rule: SkipRule, quarantine: Quarantine, connection: Connection) -> None:
    quarantine.add_skip_rule(connection, rule)
    quarantine.add_skip_rule(connection, rule)
    assert quarantine.skip_rules(connection) == [rule]


def test_a_migration_that_died_after_its_first_column_is_completed(connection: Connection, books: Bookkeeping) -> None:
    prefix = "applier." if books.dialect.has_schemas else "applier_"
    for statement in (
        f"ALTER TABLE {prefix}quarantine DROP COLUMN settled_by",
        f"DROP TABLE {prefix}skip_rule",
        f"UPDATE {prefix}schema_version SET version_num = '0001'",
    ):
        connection.execute(text(statement))
    assert migration.upgrade(connection, books) == ("0002", "0003", "0004", "0006", "0007", "0008", "0009", "0010", "0011")
    assert store(Quarantine(books), connection, EVENT, RECORD)
    assert Quarantine(books).settle(connection, PLACE, QuarantineState.DROPPED, "me@here")


def test_skip_rules_of_the_version_before_are_kept_under_the_tables_new_name(connection: Connection, books: Bookkeeping) -> None:
    prefix = "applier." if books.dialect.has_schemas else "applier_"
    rule = SkipRule(decided_by="me@here", commit_ts=Ts(5), table=FoldedName("shop", "orders"))
    Quarantine(books).add_skip_rule(connection, rule)
    for statement in (
        f"ALTER TABLE {prefix}skip_rule RENAME TO {prefix}skip_word",
        f"UPDATE {prefix}schema_version SET version_num = '0009'",
    ):
        connection.execute(text(statement))
    assert migration.upgrade(connection, books) == ("0010", "0011")
    assert Quarantine(books).skip_rules(connection) == [rule]
    # Some databases commit the RENAME at once: the migration may die before its version is stored.
    connection.execute(text(f"UPDATE {prefix}schema_version SET version_num = '0009'"))
    assert migration.upgrade(connection, books) == ("0010", "0011")
    assert Quarantine(books).skip_rules(connection) == [rule]
