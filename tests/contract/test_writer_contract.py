"""What a writer promises on every database: all or nothing, under the fence, in the same order of steps."""

import pickle
from collections.abc import Iterator
from dataclasses import replace
from sqlite3 import OperationalError
from threading import get_ident
from typing import Any

import pytest
from sqlalchemy import Engine, event
from sqlalchemy.dialects import mysql, sqlite
from sqlalchemy.engine.default import DefaultDialect

from applier.model.errors import FatalSinkError, InvariantViolation, NeedsOperator, RetryableSinkError, RowRefused, SourceError
from applier.model.events import FoldedName
from applier.model.failure import FailureKind
from applier.model.position import Offset
from applier.model.rejected_event import WHOLE_RECORD, EventPosition, KeptRecord, QuarantineState, RejectedEvent
from applier.planner.port import Statement
from applier.sinks.bookkeeping.bookkeeping import load_queries
from applier.sinks.mysql.bookkeeping import DIALECT as MYSQL
from applier.sinks.progress import Fence, WriteState
from applier.sinks.quarantine import Quarantined
from applier.sinks.sqlite.bookkeeping import DIALECT as SQLITE
from tests.contract.replica_on_database import FEED, TABLE, DatabaseReplica, commit_at

KEPT = KeptRecord(b"key", b"'value\\\x00")


def test_rows_and_progress_are_one_transaction(replica: DatabaseReplica) -> None:
    known = frozenset({FoldedName("shop", "t")})
    statements = [replica.delete(7), *replica.replaces("(1,'a')", "(2,'%s:')")]
    outcome = replica.sink.writer.write(replica.fence, statements, commit_at(9, known_tables=known))
    assert (outcome.state, outcome.rows, outcome.error) == (WriteState.COMMITTED, 3, None)
    assert replica.rows() == [(1, "a"), (2, "%s:")]
    progress = replica.sink.load()
    assert progress is not None
    assert progress.fence == Fence(replica.fence.epoch, replica.fence.window_id + 1)
    assert (progress.checkpoint_ts, progress.known_tables, progress.topic_ids) == (9, known, {"feed": "id-1"})
    assert progress.positions == commit_at(9).positions


def test_rows_that_a_delete_must_find_and_does_not_are_counted(replica: DatabaseReplica) -> None:
    replica.write(replica.replaces("(1,'a')", "(2,'b')"))
    both = replica.delete(1)._replace(text=f"DELETE FROM {replica.table} WHERE id IN (1, 7, 8)".encode(), rows=3, present=3)
    outcome = replica.write([both, replica.delete(2)._replace(present=1), replica.delete(9)])
    assert outcome.absent == ((str(TABLE), 2),)


def test_the_steps_of_a_write_come_in_one_order(replica: DatabaseReplica, sent: list[str]) -> None:
    def planned() -> Iterator[Statement]:
        sent.append("run")
        yield from replica.replaces("(1,'a')")

    def record_of(_: RejectedEvent) -> KeptRecord:
        sent.append("read the record")
        return KEPT

    broken = RejectedEvent(position=EventPosition(FEED, Offset(7), WHOLE_RECORD), error="broken")
    assert replica.write(planned(), quarantined=Quarantined(record_of, (broken,))).state is WriteState.COMMITTED
    # What comes before the lock opens the session.
    assert sent[sent.index("lock") :] == ["lock", "run", "read the record", "store", "advance", "commit"]


@pytest.fixture
def sent() -> Iterator[list[str]]:
    """Record the steps of the bookkeeping that are sent to the database."""
    steps = {"progress_lock": "lock", "quarantine_store": "store", "progress_advance": "advance"}
    texts = {
        str(load_queries(dialect)[name].compile(dialect=compiler, compile_kwargs={"render_postcompile": True})): step
        for name, step in steps.items()
        for dialect, compiler in ((SQLITE, sqlite.dialect(paramstyle="qmark")), (MYSQL, mysql.dialect(paramstyle="pyformat")))
    }
    recorded: list[str] = []
    writing = get_ident()  # the heartbeat commits in its own thread

    def record(step: str | None) -> None:
        # SQLite locks the whole file, so the statement that locks the row is the one that reads it, which comes again.
        if step is not None and get_ident() == writing and not (step == "lock" and "lock" in recorded):
            recorded.append(step)

    def note(_connection: object, _cursor: object, statement: str, *_more: object) -> None:
        record(texts.get(statement))

    def commit(_connection: object) -> None:
        record("commit")

    event.listen(Engine, "before_cursor_execute", note)
    event.listen(Engine, "commit", commit)
    yield recorded
    event.remove(Engine, "before_cursor_execute", note)
    event.remove(Engine, "commit", commit)


def test_an_interrupted_commit_leaves_no_rows_and_no_lock(replica: DatabaseReplica) -> None:
    writing = get_ident()  # the heartbeat commits in a thread of its own

    def interrupt(_connection: object) -> None:
        if get_ident() == writing:
            raise KeyboardInterrupt

    event.listen(Engine, "commit", interrupt)
    try:
        with pytest.raises(KeyboardInterrupt) as interrupted:
            replica.write(replica.replaces("(1,'a')"))
    finally:
        event.remove(Engine, "commit", interrupt)
    # While the error is held, the collector frees nothing of the first write.
    assert interrupted.value is not None
    assert replica.write(replica.replaces("(1,'b')")).state is WriteState.COMMITTED
    assert replica.rows() == [(1, "b")]


def test_a_rollback_that_fails_does_not_hide_why_a_write_failed(replica: DatabaseReplica, monkeypatch: pytest.MonkeyPatch) -> None:
    broken, writing = FatalSinkError("broken"), get_ident()

    def fail(*_: object) -> None:
        if get_ident() == writing:
            raise OperationalError("disk I/O error")

    def planned() -> Iterator[Statement]:
        yield from replica.replaces("(1,'a')")
        monkeypatch.setattr(DefaultDialect, "do_rollback", fail)
        raise broken

    outcome = replica.write(planned())
    monkeypatch.undo()
    assert (outcome.state, outcome.error) == (WriteState.FAILED, broken)
    assert replica.write(replica.replaces("(1,'b')")).state is WriteState.COMMITTED
    assert replica.rows() == [(1, "b")]


def test_an_earlier_attempt_of_the_same_write_is_found(replica: DatabaseReplica) -> None:
    before = replica.fence
    assert replica.write(replica.replaces("(1,'a')")).state is WriteState.COMMITTED
    assert replica.write(replica.replaces("(1,'other')"), fence=before).state is WriteState.ALREADY
    assert replica.rows() == [(1, "a")]


@pytest.mark.parametrize(
    ("epoch", "window", "state"),
    [(1, 0, WriteState.FENCED), (-1, 0, WriteState.FENCED), (0, 5, WriteState.RELOAD), (0, -2, WriteState.RELOAD)],
)
def test_a_write_under_another_fence_writes_nothing(replica: DatabaseReplica, epoch: int, window: int, state: WriteState) -> None:
    fence = Fence(replica.fence.epoch + epoch, replica.fence.window_id + window)
    assert replica.write(replica.replaces("(1,'a')"), fence=fence).state is state
    assert replica.rows() == []
    assert replica.write(replica.replaces("(2,'b')")).state is WriteState.COMMITTED


def test_a_zombie_is_fenced_after_the_epoch_was_raised(replica: DatabaseReplica) -> None:
    old = replica.fence
    replica.fence = replica.sink.raise_epoch().fence
    assert replica.write(replica.replaces("(1,'zombie')"), fence=old).state is WriteState.FENCED
    assert replica.write(replica.replaces("(2,'b')")).state is WriteState.COMMITTED
    assert replica.rows() == [(2, "b")]


def test_a_refused_row_rolls_everything_back_and_names_table_and_ts(replica: DatabaseReplica) -> None:
    outcome = replica.write(replica.replaces("(1,'secret')", "(2,NULL)", ts=8))
    assert outcome.state is WriteState.FAILED
    error = outcome.error
    assert isinstance(error, FatalSinkError)
    assert (error.facts["table"], error.facts["min_ts"], error.facts["max_ts"]) == (str(TABLE), 8, 8)
    assert error.remedy
    # Not chained: the driver's words may quote values of the row.
    assert error.__cause__ is None
    assert "secret" not in str(error)
    assert replica.rows() == []
    progress = replica.sink.load()
    assert progress is not None
    assert progress.fence == replica.fence


def test_a_table_that_is_missing_is_fatal_with_a_remedy(replica: DatabaseReplica) -> None:
    (statement,) = replica.replaces("(1,'secret')")
    missing = statement._replace(text=statement.text.replace(replica.table.encode(), replica.table.replace("t", "gone", 1).encode()))
    error = replica.write([missing]).error
    assert isinstance(error, FatalSinkError)
    assert error.remedy
    assert "secret" not in str(error)


def test_an_error_of_the_source_of_statements_is_reported_and_rolled_back(replica: DatabaseReplica) -> None:
    def planned() -> Iterator[Statement]:
        yield from replica.replaces("(1,'a')")
        raise NeedsOperator("partial image")

    outcome = replica.write(planned())
    assert (outcome.state, type(outcome.error)) == (WriteState.FAILED, NeedsOperator)
    assert replica.rows() == []


def test_a_defect_behind_the_statements_is_raised_and_rolled_back(replica: DatabaseReplica) -> None:
    def planned() -> Iterator[Statement]:
        yield from replica.replaces("(1,'a')")
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        replica.write(planned())
    assert replica.rows() == []
    assert replica.write(replica.replaces("(2,'b')")).state is WriteState.COMMITTED


def test_a_delete_behind_a_replace_of_its_table_is_a_defect(replica: DatabaseReplica) -> None:
    outcome = replica.write([*replica.replaces("(1,'a')"), replica.delete(1)])
    assert isinstance(outcome.error, InvariantViolation)
    assert replica.rows() == []


def test_the_checkpoint_never_steps_back(replica: DatabaseReplica) -> None:
    outcome = replica.write([], ts=4)
    assert (outcome.state, type(outcome.error)) == (WriteState.FAILED, InvariantViolation)
    assert outcome.error is not None
    assert "checkpoint update rejected" in str(outcome.error)


def test_a_progress_row_that_another_program_holds_is_retryable(replica: DatabaseReplica) -> None:
    with replica.locked_progress():
        outcome = replica.write(replica.replaces("(1,'a')"))
        assert (outcome.state, type(outcome.error)) == (WriteState.FAILED, RetryableSinkError)
    assert replica.write(replica.replaces("(1,'a')")).state is WriteState.COMMITTED


def test_the_writer_crosses_to_executors(replica: DatabaseReplica) -> None:
    assert pickle.loads(pickle.dumps(replica.sink.writer)) == replica.sink.writer  # noqa: S301 - our own bytes


# The quarantine


def test_refused_rows_are_quarantined_with_the_progress_and_all_others_are_written(replica: DatabaseReplica) -> None:
    statement = replica.traced("(1,'a')", "(2,NULL)", "(3,'c')", "(4,NULL)", "(5,'e')")
    outcome = replica.write([statement], quarantined=Quarantined(lambda _: KEPT))
    assert (outcome.state, outcome.rows, outcome.error) == (WriteState.COMMITTED, 3, None)
    assert [event.position.offset for event in outcome.quarantined] == [1, 3]
    assert replica.rows() == [(1, "a"), (3, "c"), (5, "e")]
    entries = replica.sink.bookkeeping.quarantine.entries()
    assert [(entry.event.position.offset, entry.event.state) for entry in entries] == [(1, QuarantineState.HELD), (3, QuarantineState.HELD)]
    assert replica.sink.bookkeeping.quarantine.record(entries[0].event.position) == KEPT


def test_without_a_quarantine_the_refused_row_is_named_and_nothing_is_written(replica: DatabaseReplica) -> None:
    statement = replica.traced("(1,'a')", "(2,NULL)", "(3,'secret')")
    outcome = replica.write([statement], quarantined=Quarantined(lambda _: KEPT, takes_refused=False))
    assert (outcome.state, type(outcome.error)) == (WriteState.FAILED, RowRefused)
    assert isinstance(outcome.error, RowRefused)
    facts: dict[str, Any] = outcome.error.facts
    assert (facts["offset"], facts["event"], facts["commit_ts"], facts["key_columns"]) == (1, 0, 9, "id")
    assert "secret" not in str(outcome.error)
    assert (replica.rows(), replica.sink.bookkeeping.quarantine.count()) == ([], 0)


def test_a_transaction_that_does_not_commit_quarantines_nothing(replica: DatabaseReplica) -> None:
    def gone(_: RejectedEvent) -> KeptRecord:
        raise SourceError("the record is gone", kind=FailureKind.RETENTION)

    statement = replica.traced("(1,'a')", "(2,NULL)")
    outcome = replica.write([statement], quarantined=Quarantined(gone))
    assert (outcome.state, type(outcome.error)) == (WriteState.FAILED, SourceError)
    assert (replica.rows(), replica.sink.bookkeeping.quarantine.count()) == ([], 0)
    outcome = replica.write([statement], quarantined=Quarantined(lambda _: KEPT))
    assert (outcome.state, replica.rows(), replica.sink.bookkeeping.quarantine.count()) == (WriteState.COMMITTED, [(1, "a")], 1)


def test_more_refused_rows_than_an_accident_makes_stop_the_transaction(replica: DatabaseReplica) -> None:
    statement = replica.traced("(1,NULL)", "(2,NULL)", "(3,NULL)")
    outcome = replica.write([statement], quarantined=replace(Quarantined(lambda _: KEPT), at_most=2))
    assert (outcome.state, type(outcome.error)) == (WriteState.FAILED, FatalSinkError)
    assert replica.sink.bookkeeping.quarantine.count() == 0


def test_a_save_without_rows_stores_what_it_quarantines_however_large_the_record_is(replica: DatabaseReplica) -> None:
    large = KeptRecord(b"k", b"\x00'" * 1_500_000)
    broken = RejectedEvent(position=EventPosition(FEED, Offset(7), WHOLE_RECORD), error="broken")
    assert replica.sink.save(replica.fence, commit_at(9), Quarantined(lambda _: large, (broken,))).state is WriteState.COMMITTED
    assert replica.sink.bookkeeping.quarantine.record(broken.position) == large
