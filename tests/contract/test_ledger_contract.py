"""The ledger answers what a run asks, the same in SQLite and on servers: identities without texts, by timestamp."""

import pytest
from sqlalchemy import Connection, inspect

from applier.ddl import identity
from applier.ddl.adaptation import Target
from applier.ddl.generated_name import TIDB_NAMING, PastDdl
from applier.model.events import DdlEvent, DdlIdentity, FoldedName
from applier.model.position import Offset, Stream, Ts
from applier.model.rejected_event import EventPosition, KeptRecord, QuarantineState, RejectedEvent
from applier.sinks.bookkeeping import ledger as ledger_module
from applier.sinks.bookkeeping.bookkeeping import Bookkeeping
from applier.sinks.bookkeeping.ledger import Ledger, PastDdls
from applier.sinks.bookkeeping.quarantine import Quarantine
from applier.sinks.ledger_entry import DdlState, LedgerKey
from tests.contract.quarantining import store


@pytest.fixture
def ledger(books: Bookkeeping) -> Ledger:
    return Ledger(books)


def settle(ledger: Ledger, connection: Connection, ts: int, table: str, state: DdlState = DdlState.DONE) -> DdlIdentity:
    ddl = DdlEvent(commit_ts=Ts(ts), schema="Shop", table=table, query=f"ALTER TABLE `{table}` ADD COLUMN c INT", ddl_type=5)
    key = identity(ddl)
    ledger.settled(connection, key, ddl, state)
    return key


def test_identities_are_read_by_timestamp_and_from_one_on(ledger: Ledger, connection: Connection) -> None:
    keys = [settle(ledger, connection, ts, f"T{ts}") for ts in (10, 20, 20 + 2**40, 2**63 - 1)]
    skipped = settle(ledger, connection, 20, "other", DdlState.SKIPPED)
    found = ledger.since(connection, Ts(20))
    assert set(found) == {*(LedgerKey(key, DdlState.DONE) for key in keys[1:]), LedgerKey(skipped, DdlState.SKIPPED)}
    assert set(ledger.at(connection, [Ts(10), Ts(11), Ts(20)])) == {
        *(LedgerKey(key, DdlState.DONE) for key in keys[:2]),
        LedgerKey(skipped, DdlState.SKIPPED),
    }
    assert ledger.at(connection, []) == []


def test_a_statement_that_was_not_understood_is_one_that_touches_everything(ledger: Ledger, connection: Connection) -> None:
    ddl = DdlEvent(commit_ts=Ts(5), schema="shop", table="t", query="what is this", ddl_type=0)
    ledger.settled(connection, DdlIdentity(Ts(5), ddl.name.fold(), None), ddl, DdlState.DONE)
    ((key, _),) = ledger.since(connection, Ts(0))
    assert key.touches is None


def test_a_ddl_comes_back_with_its_time_and_its_session(ledger: Ledger, connection: Connection) -> None:
    ddl = DdlEvent(
        commit_ts=Ts(5),
        schema="shop",
        table="t",
        query="TRUNCATE t",
        ddl_type=11,
        time_ms=1_600_000_000_123,
        session=(("sql_mode", "PIPES_AS_CONCAT"), ("time_zone", "+05:30")),
    )
    ledger.intent(connection, identity(ddl), ddl, "")
    assert ledger.intents(connection)[0].ddl == ddl
    ledger.end(connection, identity(ddl), DdlState.DONE)
    assert ledger.statements(connection) == [ddl]


def test_more_timestamps_than_a_statement_takes_are_asked_in_several(
    ledger: Ledger, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger_module, "MAX_LISTED", 3)
    keys = [settle(ledger, connection, ts, "t") for ts in range(1, 11)]
    assert {key for key, _ in ledger.at(connection, [Ts(ts) for ts in range(1, 11)])} == set(keys)


def test_only_places_that_may_be_read_again_are_returned(books: Bookkeeping, connection: Connection) -> None:
    quarantine = Quarantine(books)
    passed, here, behind = (EventPosition(Stream("feed", 0), Offset(offset), 0) for offset in (4, 5, 9))
    elsewhere = EventPosition(Stream("new", 3), Offset(1), -1)
    for place in (passed, here, behind, elsewhere):
        store(quarantine, connection, RejectedEvent(position=place, error="broken"), KeptRecord(b"k", b"v"))
    quarantine.settle(connection, behind, QuarantineState.DROPPED, "me@here")
    position = {"topic": "feed", "partition_number": 0, "topic_id": "", "next_offset": 5, "resolved_ts": 7, "applied_ts": 0}
    connection.execute(books.query("stream_write"), {"name": books.name} | position)
    assert sorted(quarantine.positions(connection)) == sorted([here, behind, elsewhere])


def test_what_waits_and_what_may_come_again_have_indexes(books: Bookkeeping, connection: Connection) -> None:
    schema, prefix = books.address
    found = {
        (table, tuple(index["column_names"]))
        for table in ("ddl_ledger", "quarantine")
        for index in inspect(connection).get_indexes(f"{prefix}{table}", schema=schema)
    }
    assert found == {
        ("ddl_ledger", ("name", "state")),
        ("quarantine", ("name", "state", "piece")),
        ("quarantine", ("name", "piece", "topic", "partition_number", "record_offset")),
    }


RULES = Target(has_expression_indexes=False), TIDB_NAMING


def index(ledger: Ledger, connection: Connection, ts: int, query: str, state: DdlState = DdlState.DONE, *, table: str = "t") -> DdlIdentity:
    ddl = DdlEvent(commit_ts=Ts(ts), schema="shop", table=table, query=query, ddl_type=7)
    key = identity(ddl)
    if state is DdlState.BACKGROUND:
        ledger.intent(connection, key, ddl, "", state)
    else:
        ledger.settled(connection, key, ddl, state)
    return key


def left_out(past: PastDdls, connection: Connection, ts: int) -> set[str]:
    return past.history(connection, FoldedName("shop", "t"), Ts(ts), RULES).left_out


def test_ddls_that_are_settled_are_read_once(ledger: Ledger, connection: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    past, read = PastDdls(ledger), list[int]()
    history = Ledger.history

    def counted(self: Ledger, connection: Connection, since: Ts) -> list[PastDdl]:
        found = history(self, connection, since)
        read.append(len(found))
        return found

    monkeypatch.setattr(Ledger, "history", counted)
    index(ledger, connection, 1, "CREATE TABLE t (a INT)")
    for ts in range(2, 8):
        assert left_out(past, connection, ts) == {f"i{earlier}" for earlier in range(2, ts)}
        index(ledger, connection, ts, f"CREATE INDEX i{ts} ON t ((a))")
    assert read == [1, 1, 1, 1, 1, 1]
    # One of two of the same ts, of which the other one may still come.
    assert left_out(past, connection, 7) == {f"i{ts}" for ts in range(2, 8)}
    index(ledger, connection, 7, "CREATE INDEX j ON t ((a))", table="u")
    assert left_out(past, connection, 8) == {"j", *(f"i{ts}" for ts in range(2, 8))}


def test_a_ddl_that_runs_beside_the_rows_is_read_again_until_it_is_settled(ledger: Ledger, connection: Connection) -> None:
    past = PastDdls(ledger)
    index(ledger, connection, 1, "CREATE TABLE t (a INT)")
    beside = index(ledger, connection, 2, "CREATE INDEX i ON t (a)", DdlState.BACKGROUND)
    index(ledger, connection, 3, "CREATE INDEX j ON t ((a))")
    assert left_out(past, connection, 4) == {"j"}
    ledger.end(connection, beside, DdlState.SKIPPED)  # by the operator
    assert left_out(past, connection, 5) == {"i", "j"}


def test_what_was_read_is_forgotten_with_the_state_of_a_run_or_at_an_earlier_ddl(ledger: Ledger, connection: Connection) -> None:
    past = PastDdls(ledger)
    skipped = index(ledger, connection, 1, "CREATE INDEX i ON t (a)", DdlState.SKIPPED)
    assert left_out(past, connection, 3) == {"i"}
    index(ledger, connection, 2, "CREATE INDEX j ON t (a)", DdlState.SKIPPED)
    assert left_out(past, connection, 2) == {"i", "j"}
    ledger.forget_skipped(connection, skipped)
    past.forget()
    assert left_out(past, connection, 3) == {"j"}
