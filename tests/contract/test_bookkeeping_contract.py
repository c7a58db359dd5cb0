"""The bookkeeping does the same in SQLite and in MariaDB: fence, progress, owner, ledger."""

import pytest
from sqlalchemy import Connection, Engine, event

from applier.model.errors import FatalSinkError, Fenced, InvariantViolation, NeedsOperator
from applier.model.events import DdlEvent, DdlIdentity, FoldedName, TableName
from applier.model.position import MAX_TS, Offset, Stream, StreamPosition, Ts
from applier.sinks.bookkeeping.bookkeeping import Bookkeeping
from applier.sinks.bookkeeping.epochs import Epochs
from applier.sinks.bookkeeping.ledger import Ledger
from applier.sinks.bookkeeping.owner_table import OwnerTable, SessionRow, SessionTable
from applier.sinks.bookkeeping.progress_table import FenceState, ProgressTable
from applier.sinks.ledger_entry import DdlState
from applier.sinks.progress import Fence, Progress, ProgressCommit

T0, T1 = Stream("t", 0), Stream("t", 1)


def at(offset: int, ts: int = 5) -> StreamPosition:
    return StreamPosition(next_offset=Offset(offset), resolved_ts=Ts(ts))


def moved(ts: int, **positions: StreamPosition) -> ProgressCommit:
    return ProgressCommit(checkpoint_ts=Ts(ts), positions={Stream("t", int(name[1:])): position for name, position in positions.items()})


def begun(books: Bookkeeping, connection: Connection, start_ts: int = 10) -> Progress:
    Epochs(books).claim(connection, "run", "host", 1)
    return Epochs(books).begin(connection, "run", Ts(start_ts))


def test_a_new_replica_begins_at_its_start_ts_and_has_committed_nothing(books: Bookkeeping, connection: Connection) -> None:
    assert ProgressTable(books).load(connection) is None
    progress = begun(books, connection)
    assert progress == Progress(
        fence=Fence(1, 0), checkpoint_ts=Ts(10), start_ts=Ts(10), positions={}, topic_ids={}, known_tables=frozenset()
    )
    assert ProgressTable(books).load(connection) == progress


def test_timestamps_are_exact_up_to_64_bits(books: Bookkeeping, connection: Connection) -> None:
    begun(books, connection, MAX_TS - 1)
    ProgressTable(books).advance(connection, Fence(1, 0), moved(MAX_TS, t0=at(2**62, MAX_TS)))
    progress = ProgressTable(books).load(connection)
    assert progress is not None
    assert (progress.start_ts, progress.checkpoint_ts, progress.positions[T0]) == (MAX_TS - 1, MAX_TS, at(2**62, MAX_TS))


@pytest.mark.parametrize(
    ("fence", "state"),
    [
        (Fence(1, 2), FenceState.HELD),
        (Fence(1, 1), FenceState.ALREADY),
        (Fence(1, 0), FenceState.RELOAD),
        (Fence(1, 3), FenceState.RELOAD),
        (Fence(0, 2), FenceState.FENCED),
        (Fence(2, 2), FenceState.FENCED),
        (Fence(2, 1), FenceState.FENCED),
    ],
)
def test_the_fence_distinguishes_a_repeated_write_from_a_foreign_one(
    books: Bookkeeping, connection: Connection, fence: Fence, state: FenceState
) -> None:
    begun(books, connection)
    progress = ProgressTable(books)
    assert progress.advance(connection, progress.advance(connection, Fence(1, 0), moved(11)), moved(12)) == Fence(1, 2)
    assert ProgressTable(books).lock(connection, fence) is state


def test_a_missing_progress_row_is_reported_by_the_reload(books: Bookkeeping, connection: Connection) -> None:
    Epochs(books).claim(connection, "run", "host", 1)
    assert ProgressTable(books).lock(connection, Fence(1, 0)) is FenceState.RELOAD
    with pytest.raises(FatalSinkError, match="progress row of the replica is missing"):
        Epochs(books).raise_epoch(connection, "run")


def test_a_commit_moves_everything_at_once_and_keeps_what_it_does_not_name(books: Bookkeeping, connection: Connection) -> None:
    begun(books, connection)
    first = ProgressCommit(
        checkpoint_ts=Ts(20),
        positions={T0: at(3), T1: at(4)},
        known_tables=frozenset({FoldedName("s", "a")}),
        topic_ids={"t": "id-1"},
    )
    fence = ProgressTable(books).advance(connection, Fence(1, 0), first)
    second = ProgressCommit(checkpoint_ts=Ts(20), positions={T1: at(9)}, known_tables=frozenset({FoldedName("s", "b")}))
    ProgressTable(books).advance(connection, fence, second)
    progress = ProgressTable(books).load(connection)
    assert progress == Progress(
        fence=Fence(1, 2),
        checkpoint_ts=Ts(20),
        start_ts=Ts(10),
        positions={T0: at(3), T1: at(9)},
        topic_ids={"t": "id-1"},
        known_tables=frozenset({FoldedName("s", "a"), FoldedName("s", "b")}),
    )


def test_only_positions_that_changed_are_written(books: Bookkeeping, engine: Engine, connection: Connection) -> None:
    begun(books, connection)
    fence = ProgressTable(books).advance(connection, Fence(1, 0), moved(20, t0=at(3), t1=at(4)))
    written: list[object] = []

    def note(_c: object, _cursor: object, statement: str, parameters: object, _context: object, executemany: object) -> None:
        if "REPLACE INTO" in statement and "stream" in statement:
            written.append((parameters, executemany))

    event.listen(engine, "before_cursor_execute", note)
    fence = ProgressTable(books).advance(connection, fence, moved(21, t0=at(3), t1=at(4)))
    assert written == []
    ProgressTable(books).advance(connection, fence, moved(22, t0=at(3), t1=at(5)))
    assert len(written) == 1


def test_the_checkpoint_never_steps_back(books: Bookkeeping, connection: Connection) -> None:
    begun(books, connection)
    with pytest.raises(InvariantViolation):
        ProgressTable(books).advance(connection, Fence(1, 0), moved(9))


def test_a_write_that_is_not_of_this_window_cannot_move_the_progress(books: Bookkeeping, connection: Connection) -> None:
    begun(books, connection)
    with pytest.raises(InvariantViolation):
        ProgressTable(books).advance(connection, Fence(1, 1), moved(11))


def test_every_run_has_a_higher_epoch_which_fences_the_one_before(books: Bookkeeping, connection: Connection) -> None:
    fence = begun(books, connection).fence
    assert Epochs(books).claim(connection, "other", "elsewhere", 2) == 2
    assert ProgressTable(books).lock(connection, fence) is FenceState.FENCED
    with pytest.raises(Fenced) as caught:
        Epochs(books).raise_epoch(connection, "run")
    assert caught.value.facts["host"] == "elsewhere"
    assert caught.value.facts["process"] == 2


def test_a_run_that_lost_the_replica_cannot_begin_it(books: Bookkeeping, connection: Connection) -> None:
    Epochs(books).claim(connection, "run", "host", 1)
    Epochs(books).claim(connection, "other", "host", 2)
    with pytest.raises(Fenced):
        Epochs(books).begin(connection, "run", Ts(0))


def test_a_raised_epoch_keeps_windows_and_progress(books: Bookkeeping, connection: Connection) -> None:
    begun(books, connection)
    fence = ProgressTable(books).advance(connection, Fence(1, 0), moved(20, t0=at(3)))
    progress = Epochs(books).raise_epoch(connection, "run")
    assert progress.fence == Fence(2, fence.window_id)
    assert progress.positions == {T0: at(3)}
    assert ProgressTable(books).lock(connection, fence) is FenceState.FENCED
    assert Epochs(books).claim(connection, "next", "host", 1) == 3


def test_only_the_owner_beats_and_the_databases_clock_measures_its_age(books: Bookkeeping, connection: Connection) -> None:
    Epochs(books).claim(connection, "run", "host", 7)
    assert OwnerTable(books).beat(connection, "run")
    assert not OwnerTable(books).beat(connection, "other")
    owner = OwnerTable(books).read(connection)
    assert owner is not None
    assert (owner.run_id, owner.owner.host, owner.owner.process, owner.owner.epoch) == ("run", "host", 7, 1)
    assert 0 <= owner.silent_s < 60
    OwnerTable(books).release(connection, "other")
    assert OwnerTable(books).read(connection) is not None
    OwnerTable(books).release(connection, "run")
    assert OwnerTable(books).read(connection) is None


def test_sessions_are_registered_until_they_are_deleted(books: Bookkeeping, connection: Connection) -> None:
    session = SessionRow("applier:1", "host", 3)
    SessionTable(books).register(connection, session)
    assert SessionTable(books).read(connection) == [session]
    SessionTable(books).forget(connection, "applier:1")
    assert SessionTable(books).read(connection) == []


def test_replicas_do_not_see_one_another(books: Bookkeeping, connection: Connection) -> None:
    begun(books, connection)
    other = Bookkeeping("Replica", books.dialect)
    assert ProgressTable(other).load(connection) is None
    assert OwnerTable(other).read(connection) is None
    assert Epochs(other).claim(connection, "run", "host", 1) == 1


# The ledger

CREATE = DdlEvent(commit_ts=Ts(30), schema="Shop", table="Orders", query="CREATE TABLE `Orders` (é INT) -- 100%", ddl_type=3)
ORDERS = FoldedName("shop", "orders")
IDENTITY = DdlIdentity(Ts(30), ORDERS, frozenset({ORDERS}))


@pytest.mark.parametrize("touches", [frozenset({ORDERS, FoldedName("shop", "b")}), frozenset(), None], ids=["names", "none", "unparsed"])
def test_an_intent_becomes_done(books: Bookkeeping, connection: Connection, touches: frozenset[FoldedName] | None) -> None:
    ledger = Ledger(books)
    identity = DdlIdentity(Ts(30), ORDERS, touches)
    ledger.intent(connection, identity, CREATE, '{"shop.orders": null}')
    (entry,) = ledger.intents(connection)
    assert (entry.identity, entry.ddl, entry.state, entry.before) == (identity, CREATE, DdlState.INTENT, '{"shop.orders": null}')
    assert entry.ended_at is None
    ledger.refused(connection, identity, "it broke")
    (entry,) = ledger.intents(connection)
    assert (entry.state, entry.before, entry.error) == (DdlState.INTENT, "", "it broke")
    ledger.describe(connection, identity, '{"shop.orders": {}}')
    assert ledger.intents(connection)[0].before == '{"shop.orders": {}}'
    ledger.end(connection, identity, DdlState.DONE)
    (entry,) = ledger.read(connection)
    assert (entry.state, entry.error) == (DdlState.DONE, "")
    assert entry.ended_at is not None
    assert entry.began_at <= entry.ended_at
    assert ledger.intents(connection) == []


def test_the_pieces_of_a_rename_chain_are_different_entries(books: Bookkeeping, connection: Connection) -> None:
    ledger = Ledger(books)
    for other in ("a", "b"):
        ledger.settled(connection, DdlIdentity(Ts(30), ORDERS, frozenset({ORDERS, FoldedName("shop", other)})), CREATE, DdlState.SKIPPED)
    assert [entry.state for entry in ledger.read(connection)] == [DdlState.SKIPPED, DdlState.SKIPPED]


def test_the_ledger_is_read_by_ts_even_beyond_63_bits(books: Bookkeeping, connection: Connection) -> None:
    ledger = Ledger(books)
    for ts in (2**63 + 5, 7, 2**64 - 1, 2**63 - 1):
        ddl = DdlEvent(commit_ts=Ts(ts), schema="s", table="t", query="q", ddl_type=1)
        ledger.settled(connection, DdlIdentity(Ts(ts), ddl.name.fold(), None), ddl, DdlState.DONE)
    assert [entry.ddl.commit_ts for entry in ledger.read(connection)] == [7, 2**63 - 1, 2**63 + 5, 2**64 - 1]


def test_a_ddl_without_an_intent_cannot_end(books: Bookkeeping, connection: Connection) -> None:
    with pytest.raises(InvariantViolation):
        Ledger(books).end(connection, IDENTITY, DdlState.DONE)


def test_a_text_that_the_ledger_cannot_keep_asks_the_operator(books: Bookkeeping, connection: Connection) -> None:
    broken = DdlEvent(commit_ts=Ts(30), schema="s", table="t", query="CREATE TABLE \udcff", ddl_type=3)
    with pytest.raises(NeedsOperator):
        Ledger(books).intent(connection, IDENTITY, broken, "")


@pytest.mark.parametrize(
    ("given", "state"), [(DdlState.DONE, DdlState.DONE), (DdlState.SKIPPED, DdlState.SKIPPED), (None, DdlState.INTENT)]
)
def test_a_decision_settles_an_intent(books: Bookkeeping, connection: Connection, given: DdlState | None, state: DdlState) -> None:
    ledger = Ledger(books)
    ledger.intent(connection, IDENTITY, CREATE, "before")
    assert ledger.resolve(connection, Ts(30), TableName("SHOP", "orders"), given) == 1
    (entry,) = ledger.read(connection)
    assert entry.state is state
    assert entry.before == ("" if given is None else "before")


def test_a_decision_about_something_else_changes_nothing(books: Bookkeeping, connection: Connection) -> None:
    ledger = Ledger(books)
    ledger.intent(connection, IDENTITY, CREATE, "before")
    assert ledger.resolve(connection, Ts(31), TableName("shop", "orders"), DdlState.DONE) == 0
    assert ledger.resolve(connection, Ts(30), TableName("shop", "other"), DdlState.DONE) == 0
    assert len(ledger.intents(connection)) == 1


def test_what_a_source_says_of_the_checkpoint_stays_until_it_says_something_else(books: Bookkeeping, connection: Connection) -> None:
    table = ProgressTable(books)
    Epochs(books).claim(connection, "run", "host", 1)
    found = [Epochs(books).begin(connection, "run", Ts(10), '{"at": "ä"}').source_state]
    fence = Fence(1, 0)
    for state in (None, "of 12", None):
        fence = table.advance(connection, fence, ProgressCommit(checkpoint_ts=Ts(12), positions={}, source_state=state))
        found.append(table.present(connection).source_state)
    assert found == ['{"at": "ä"}', '{"at": "ä"}', "of 12", "of 12"]
