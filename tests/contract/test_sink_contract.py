"""What a sink promises on every database: progress, DDL with its ledger, reads that wait for nobody, one owner at a time."""

import logging
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest
from sqlalchemy import Engine, event

from applier.model.errors import FatalSinkError, Fenced, NeedsOperator, UnknownOutcome
from applier.model.events import FoldedName, TableName
from applier.model.position import Offset, Stream, StreamPosition, Ts
from applier.sinks.ledger_entry import DdlState, LedgerKey
from applier.sinks.progress import Fence, WriteState
from tests.contract.replica_on_database import CREATE, SHOP, TABLE, DatabaseReplica, commit_at


def test_a_new_replica_begins_once_and_is_loaded_as_it_began(owned: DatabaseReplica) -> None:
    assert owned.sink.load() is None
    progress = owned.sink.begin(Ts(2**64 - 2))
    assert progress == owned.sink.load() == owned.sink.begin(Ts(2**64 - 2))
    assert (progress.checkpoint_ts, progress.start_ts, progress.fence.window_id) == (2**64 - 2, 2**64 - 2, 0)
    assert owned.sink.migrate() == ()


def test_a_run_needs_the_bookkeeping_tables(fresh: DatabaseReplica) -> None:
    with pytest.raises(FatalSinkError) as raised:
        fresh.sink.acquire()
    assert "applier migrate" in str(raised.value.remedy)


def test_of_what_a_caller_knows_only_the_progress_row_is_read_again(replica: DatabaseReplica) -> None:
    progress = replica.sink.load()
    assert progress is not None
    known = replace(progress, known_tables=frozenset({FoldedName("shop", "given")}), positions={}, topic_ids={"t": "given"})
    outcome = replica.sink.save(progress.fence, commit_at(9))
    assert outcome.state is WriteState.COMMITTED
    with asked("progress") as rows, asked("known_table") as tables, asked("stream") as streams:
        found = replica.sink.load(known=known)
    assert found == replace(known, checkpoint_ts=Ts(9), fence=replace(progress.fence, window_id=progress.fence.window_id + 1))
    assert (len(rows), tables, streams) == (1, [], [])


def test_a_commit_writes_its_positions_and_reads_none(replica: DatabaseReplica) -> None:
    progress = replica.sink.load()
    assert progress is not None
    positions = {Stream("feed", number): StreamPosition(next_offset=Offset(7), resolved_ts=Ts(9)) for number in range(50)}
    commit = replace(commit_at(9), positions=positions)
    with asked("SELECT topic") as read:
        replica.sink.save(progress.fence, commit)
    assert read == []
    stored = replica.sink.load()
    assert stored is not None
    assert stored == replace(commit.applied_to(progress), checkpoint_ts=Ts(9), fence=stored.fence)
    assert len(stored.positions) == 50
    # Of a topic whose id nobody can ask for, the stored one is kept.
    unnamed = replace(commit_at(10), positions={Stream("feed", 1): StreamPosition(next_offset=Offset(8), resolved_ts=Ts(10))}, topic_ids={})
    replica.sink.save(stored.fence, unnamed)
    progress = replica.sink.load()
    assert progress is not None
    assert (progress.topic_ids, progress.positions[Stream("feed", 1)].next_offset, len(progress.positions)) == ({"feed": "id-1"}, 8, 50)


def test_a_raised_epoch_is_read_with_the_progress(replica: DatabaseReplica) -> None:
    raised = replica.sink.raise_epoch()
    assert raised.fence == Fence(replica.fence.epoch + 1, replica.fence.window_id)
    assert replica.sink.load() == raised


# DDL


@contextmanager
def asked(word: str) -> Iterator[list[str]]:
    """Note the statements that read something with a word."""
    found: list[str] = []

    def note(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        if word in statement and statement.startswith("SELECT"):
            found.append(statement)

    event.listen(Engine, "before_cursor_execute", note)
    yield found
    event.remove(Engine, "before_cursor_execute", note)


@contextmanager
def counted(word: str) -> Iterator[list[str]]:
    """Note the statements with a word."""
    found: list[str] = []

    def note(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        if word in statement and not statement.startswith("SELECT"):
            found.append(statement)

    event.listen(Engine, "before_cursor_execute", note)
    yield found
    event.remove(Engine, "before_cursor_execute", note)


def test_a_ddl_is_done_with_its_ledger_entry_and_progress(replica: DatabaseReplica) -> None:
    entry = replica.sink.bookkeeping.ledger()[-1]
    assert (entry.state, entry.ddl.query, entry.ddl.commit_ts, entry.error) == (DdlState.DONE, CREATE, 5, "")
    assert [ddl.query for ddl in replica.sink.bookkeeping.statements()] == [f"CREATE DATABASE {SHOP}", CREATE]
    assert (
        replica.sink.bookkeeping.ledger_since(Ts(5))
        == replica.sink.bookkeeping.ledger_at([Ts(5), Ts(7)])
        == [LedgerKey(entry.identity, DdlState.DONE)]
    )
    progress = replica.sink.load()
    assert progress is not None
    assert (progress.checkpoint_ts, progress.fence) == (5, replica.fence)
    assert replica.sink.settle(replica.fence) == replica.fence


def test_known_tables_of_a_ddl_are_recorded_with_it(replica: DatabaseReplica) -> None:
    known = frozenset({FoldedName(SHOP, "u")})
    replica.run_ddl("RENAME TABLE `t` TO `u`", 6, table="u", known=known)
    progress = replica.sink.load()
    assert progress is not None
    assert progress.known_tables == known
    assert list(replica.sink.describe([TABLE, TableName(SHOP, "u")])) == [FoldedName(SHOP, "u")]


def test_locations_of_a_ddl_are_recorded_with_it(replica: DatabaseReplica) -> None:
    places = {FoldedName("shop", f"t{at}"): FoldedName("archive", f"t{at}") for at in range(300)} | {
        FoldedName("shop", "log"): FoldedName("", "")
    }
    rename = replica.ddl("RENAME TABLE `t` TO `u`", 6, "u")
    with counted("table_location") as statements:
        replica.fence = replica.sink.run_ddl(replica.fence, *rename, before=commit_at(6, locations=places), after=commit_at(6))
    assert (replica.sink.bookkeeping.locations(), len(statements)) == (places, 1)
    moved = {FoldedName("shop", "t0"): None, FoldedName("shop", "t1"): None, FoldedName("shop", "u"): FoldedName("archive", "u")}
    replica.sink.skip_ddl(replica.fence, *replica.ddl("DROP TABLE `u`", 7), after=commit_at(7, locations=moved))
    assert replica.sink.bookkeeping.locations() == {table: place for table, place in (places | moved).items() if place is not None}


def test_a_skipped_ddl_is_in_the_ledger_and_does_not_run(replica: DatabaseReplica) -> None:
    fence = replica.sink.skip_ddl(replica.fence, *replica.ddl("DROP TABLE `t`", 6), after=commit_at(6))
    assert replica.sink.bookkeeping.ledger()[-1].state is DdlState.SKIPPED
    progress = replica.sink.load()
    assert progress is not None
    assert (progress.fence, progress.checkpoint_ts) == (fence, 6)
    assert replica.rows() == []


def test_a_ddl_under_another_fence_does_nothing(replica: DatabaseReplica) -> None:
    raised = replica.sink.raise_epoch().fence
    with pytest.raises(Fenced):
        replica.run_ddl("DROP TABLE `t`", 6)
    replica.fence = Fence(raised.epoch, 77)
    with pytest.raises(UnknownOutcome, match="fencing token mismatch"):
        replica.run_ddl("DROP TABLE `t`", 6)
    assert replica.rows() == []
    assert len(replica.sink.bookkeeping.ledger()) == 2


def test_a_ddl_that_the_database_refuses_names_its_statement_and_changes_nothing(replica: DatabaseReplica) -> None:
    query = "CREATE TABLE `t` (`x` INT)"
    with pytest.raises((FatalSinkError, NeedsOperator)) as raised:
        replica.run_ddl(query, 6)
    assert query in str(raised.value)
    assert replica.rows() == []


def test_a_decision_about_a_ddl_that_has_no_intent_changes_nothing(replica: DatabaseReplica) -> None:
    assert replica.sink.bookkeeping.resolve_ddl(Ts(5), SHOP, "t", DdlState.SKIPPED) == 0
    assert [entry.state for entry in replica.sink.bookkeeping.ledger()] == [DdlState.DONE, DdlState.DONE]


# Reads


def test_reads_do_not_wait_for_a_writer(replica: DatabaseReplica) -> None:
    with replica.locked_progress():
        progress = replica.sink.load()
        assert progress is not None
        assert progress.fence == replica.fence
        assert len(replica.sink.bookkeeping.ledger()) == 2
        assert replica.sink.bookkeeping.overview().progress == progress
        assert replica.sink.bookkeeping.quarantine.count() == 0


def test_what_the_sink_has_is_described_and_the_rest_left_out(replica: DatabaseReplica) -> None:
    nope = TableName(SHOP, "nope")
    assert list(replica.sink.describe([TABLE, nope])) == list(replica.sink.examine([TABLE, nope])) == [TABLE.fold()]
    assert replica.sink.present([TABLE, nope]) == {TABLE.fold()}
    assert replica.sink.present([]) == frozenset()
    assert replica.sink.tables_with_rows([TABLE, nope]) == frozenset()
    replica.write(replica.replaces("(1,'a')"))
    assert replica.sink.tables_with_rows([TABLE, nope]) == {TABLE.fold()}


# Ownership


def test_a_second_run_waits_says_so_and_then_names_the_owner(replica: DatabaseReplica, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "applier")
    with replica.another() as second, pytest.raises(Fenced) as raised:
        second.acquire()
    facts = raised.value.facts
    assert (facts["process"], bool(facts["host"]), bool(facts["since"])) == (os.getpid(), True, True)
    (logged,) = (vars(record) for record in caplog.records if record.getMessage() == "waiting_for_replica_lock")
    assert logged["owner_process"] == os.getpid()
    assert replica.sink.heartbeat_lost() is None
    assert replica.write(replica.replaces("(1,'a')")).state is WriteState.COMMITTED


def test_after_a_release_the_next_run_has_the_next_epoch_at_once(replica: DatabaseReplica) -> None:
    replica.sink.close()
    with replica.another() as following:
        assert following.bookkeeping.overview().owner is None
        following.acquire()
        progress = following.load()
        assert progress is not None
        assert progress.fence == Fence(replica.fence.epoch + 1, replica.fence.window_id)


def test_a_run_that_was_taken_over_finds_out_and_cannot_write(replica: DatabaseReplica) -> None:
    with replica.another() as successor:
        successor.acquire(take_over=True)
        deadline = time.monotonic() + 30
        while replica.sink.heartbeat_error is None and time.monotonic() < deadline:
            time.sleep(0.01)
        assert isinstance(replica.sink.heartbeat_error, Fenced)
        assert isinstance(replica.sink.heartbeat_lost(), Fenced)
        assert replica.sink.save(replica.fence, commit_at(9)).state is WriteState.FENCED
        for ask in (replica.sink.load, replica.sink.raise_epoch):
            with pytest.raises(Fenced):
                ask()
        assert successor.load() is not None
