"""The port of a sink, on a file: fence states, DDL in one transaction, crashes at every point, ownership."""

import errno
import fcntl
import json
import logging
import os
import pickle
import resource
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from applier.ddl import identity
from applier.model.errors import (
    ConfigError,
    FatalSinkError,
    Fenced,
    InvariantViolation,
    NeedsOperator,
    RetryableSinkError,
    SourceError,
    UnknownOutcome,
)
from applier.model.events import DdlEvent, FoldedName, TableName
from applier.model.position import NO_TS, Offset, Stream, StreamPosition, Ts
from applier.planner.statement import Phase, Statement
from applier.sinks.failpoint import VARIABLE
from applier.sinks.ledger_entry import DdlState
from applier.sinks.progress import Fence, ProgressCommit
from applier.sinks.settings import SinkSettings
from applier.sinks.sqlite import ownership as sqlite_ownership
from applier.sinks.sqlite.sink import SqliteSink
from applier.sinks.write_outcome import WriteState

CREATE = "CREATE TABLE `t` (`id` BIGINT UNSIGNED PRIMARY KEY, `v` VARCHAR(20))"
STREAM = Stream("feed", 0)


def settings(path, **more):
    return SinkSettings(url=f"sqlite:///{path}", lock_timeout_s=0.0, lock_wait_timeout_s=5, **more)


def commit(ts, **more):
    positions = {STREAM: StreamPosition(next_offset=Offset(ts), resolved_ts=Ts(ts))}
    return ProgressCommit(checkpoint_ts=Ts(ts), positions=positions, topic_ids={"feed": "id-1"}, **more)


def rows(*texts):
    return [Statement(Phase.REPLACE, "shop.t", f'REPLACE INTO "shop.t" VALUES {text}', 1, 7, 8) for text in texts]


def run(sink, fence, query, ts, **more):
    ddl = DdlEvent(commit_ts=Ts(ts), schema="shop", table="t", query=query, ddl_type=3)
    return sink.run_ddl(fence, identity(ddl), ddl, before=commit(ts, **more), after=commit(ts))


def contents(path, query='SELECT * FROM "shop.t" ORDER BY 1'):
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(query).fetchall()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "replica.db"


@pytest.fixture
def sink(path):
    with SqliteSink(settings(path)) as opened:
        opened.migrate()
        opened.acquire()
        yield opened


@pytest.fixture
def fence(sink):
    return run(sink, sink.begin(NO_TS).fence, CREATE, 5)


# --- progress and fence ---------------------------------------------------------------------------------------------------


def test_a_new_replica_begins_and_is_loaded_as_it_began(sink):
    assert sink.load() is None
    progress = sink.begin(Ts(2**64 - 2))
    assert progress == sink.load()
    assert (progress.checkpoint_ts, progress.start_ts, progress.fence.window_id) == (2**64 - 2, 2**64 - 2, 0)
    assert sink.migrate() == ()


def test_rows_and_progress_are_written_together(sink, fence, path):
    known = frozenset({FoldedName("shop", "t")})
    outcome = sink.writer.write(fence, rows("(1,'a')", "('18446744073709551615','b')"), commit(9, known_tables=known))
    assert (outcome.state, outcome.rows) == (WriteState.COMMITTED, 2)
    assert contents(path) == [(1, "a"), ("18446744073709551615", "b")]
    progress = sink.load()
    assert progress.fence == Fence(fence.epoch, fence.window_id + 1)
    assert (progress.checkpoint_ts, progress.known_tables, progress.topic_ids) == (9, known, {"feed": "id-1"})
    assert progress.positions == commit(9).positions


def test_the_same_write_again_finds_that_it_had_committed(sink, fence, path):
    assert sink.writer.write(fence, rows("(1,'a')"), commit(9)).state is WriteState.COMMITTED
    assert sink.writer.write(fence, rows("(1,'other')"), commit(9)).state is WriteState.ALREADY
    assert contents(path) == [(1, "a")]


def test_another_window_asks_for_a_rebuild_and_another_epoch_is_fenced(sink, fence, path):
    older = Fence(fence.epoch, fence.window_id - 1)
    sink.save(fence, commit(9))
    assert sink.writer.write(older, rows("(1,'a')"), commit(9)).state is WriteState.REBUILD
    raised = sink.raise_epoch()
    assert raised.fence.epoch > fence.epoch
    assert sink.writer.write(sink.load().fence, rows("(2,'b')"), commit(10)).state is WriteState.COMMITTED
    assert sink.writer.write(Fence(fence.epoch, fence.window_id + 1), rows("(3,'zombie')"), commit(11)).state is WriteState.FENCED
    assert contents(path) == [(2, "b")]


def test_a_refused_row_rolls_everything_back_and_names_table_and_ts(sink, fence, path):
    outcome = sink.writer.write(fence, rows("(1,'a')", "(NULL,'secret')"), commit(9))
    assert outcome.state is WriteState.FAILED
    assert isinstance(outcome.error, FatalSinkError)
    assert (outcome.error.facts["table"], outcome.error.facts["min_ts"], outcome.error.facts["max_ts"]) == ("shop.t", 7, 8)
    assert "secret" not in str(outcome.error)
    assert contents(path) == []
    assert sink.load().fence == fence


def test_an_error_of_the_planner_behind_the_statements_is_reported_and_rolled_back(sink, fence, path):
    def planned():
        yield from rows("(1,'a')")
        raise NeedsOperator("partial image")

    outcome = sink.writer.write(fence, planned(), commit(9))
    assert (outcome.state, type(outcome.error)) == (WriteState.FAILED, NeedsOperator)
    assert contents(path) == []


def test_a_busy_file_is_retryable(path, sink, fence):
    impatient = replace(sink.writer, lock_wait_timeout_s=0)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        outcome = impatient.write(fence, rows("(1,'a')"), commit(9))
        assert (outcome.state, type(outcome.error)) == (WriteState.FAILED, RetryableSinkError)
    assert impatient.write(fence, rows("(1,'a')"), commit(9)).state is WriteState.COMMITTED


def test_reads_do_not_wait_for_a_writer(path, sink, fence):
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert sink.load().fence == fence
        assert len(sink.ledger()) == 1
        assert sink.tables_with_rows([TableName("SHOP", "T"), TableName("shop", "nope")]) == frozenset()
        assert FoldedName("shop", "t") in sink.describe([TableName("Shop", "T"), TableName("shop", "nope")])


def test_the_writer_crosses_to_executors(sink):
    assert pickle.loads(pickle.dumps(sink.writer)) == sink.writer  # noqa: S301 - our own bytes


def test_the_checkpoint_never_steps_back(sink, fence):
    outcome = sink.save(fence, commit(4))
    assert (outcome.state, type(outcome.error)) == (WriteState.FAILED, InvariantViolation)


# --- DDL ------------------------------------------------------------------------------------------------------------------


def test_a_ddl_is_done_with_its_ledger_entry_and_progress(sink, fence):
    (entry,) = sink.ledger()
    assert (entry.state, entry.ddl.query, entry.ddl.commit_ts) == (DdlState.DONE, CREATE, 5)
    assert sink.load().checkpoint_ts == 5
    assert sink.load().fence == fence
    assert sink.settle(fence) == fence


def test_known_tables_of_a_ddl_are_recorded_with_it(sink, fence):
    known = frozenset({FoldedName("shop", "u")})
    run(sink, fence, "RENAME TABLE `t` TO `u`", 6, known_tables=known)
    assert sink.load().known_tables == known


@pytest.mark.parametrize(
    ("query", "error"),
    [("RECOVER TABLE `t`", NeedsOperator), ("TRUNCATE TABLE `nope`", FatalSinkError), ("CREATE TABLE `t` (`x` INT)", FatalSinkError)],
)
def test_a_ddl_that_fails_leaves_no_trace(sink, fence, query, error):
    with pytest.raises(error) as raised:
        run(sink, fence, query, 6)
    assert query in str(raised.value)
    assert len(sink.ledger()) == 1
    assert sink.load().fence == fence
    assert sink.resolve_ddl(Ts(6), "shop", "t", DdlState.DONE) == 0


def test_a_skipped_ddl_is_in_the_ledger_and_does_not_run(sink, fence, path):
    ddl = DdlEvent(commit_ts=Ts(6), schema="shop", table="t", query="DROP TABLE `t`", ddl_type=4)
    moved = sink.skip_ddl(fence, identity(ddl), ddl, after=commit(6))
    assert [entry.state for entry in sink.ledger()] == [DdlState.DONE, DdlState.SKIPPED]
    assert (sink.load().fence, contents(path)) == (moved, [])


def test_a_ddl_of_a_fenced_run_does_nothing(sink, fence, path):
    sink.raise_epoch()
    with pytest.raises(Fenced):
        run(sink, fence, "DROP TABLE `t`", 6)
    with pytest.raises(UnknownOutcome):
        run(sink, Fence(sink.load().fence.epoch, 77), "DROP TABLE `t`", 6)
    assert contents(path) == []


# --- crashes --------------------------------------------------------------------------------------------------------------

CHILD = """
import sys
from tests.contract import test_sqlite_sink as t
t.child(sys.argv[1], sys.argv[2])
"""
ALTER = "ALTER TABLE `t` ADD COLUMN `n` INT NOT NULL DEFAULT 5 FIRST"


def child(path, what):
    """Run in a process of its own: resume the replica, then one DDL or one write."""
    sink = SqliteSink(settings(path))
    sink.acquire()
    fence = sink.load().fence
    if what == "ddl":
        run(sink, fence, ALTER, 6)
    elif what == "write":
        outcome = sink.writer.write(fence, rows("(1,'new')", "(2,'new')"), commit(6))
        assert outcome.state is WriteState.COMMITTED
    elif what == "full":
        outcome = sink.writer.write(fence, full_disk(path), commit(6))
        print(outcome.state.value, type(outcome.error).__name__, outcome.error.message, flush=True)
    else:
        print("owner", flush=True)
        time.sleep(600)


def full_disk(path):
    """One row, and then no file may grow any more: the COMMIT is what fails."""
    yield from rows("(2,'new')")
    resource.setrlimit(resource.RLIMIT_FSIZE, (Path(f"{path}-wal").stat().st_size, resource.RLIM_INFINITY))


def start(path, what, failpoint=""):
    environment = os.environ | ({VARIABLE: failpoint} if failpoint else {})
    script = "import sys; sys.path.insert(0, '.');" + CHILD.replace("\n", ";").strip(";")
    return subprocess.Popen([sys.executable, "-c", script, str(path), what], env=environment, stdout=subprocess.PIPE)


@pytest.fixture
def left(path):
    """A replica with one row, which no run owns."""
    with SqliteSink(settings(path)) as sink:
        sink.migrate()
        sink.acquire()
        fence = run(sink, sink.begin(NO_TS).fence, CREATE, 5)
        sink.writer.write(fence, rows("(1,'old')"), commit(5))
    return path


def killed(path, what, failpoint):
    with start(path, what, failpoint) as process:
        assert process.wait() == -signal.SIGKILL


@pytest.mark.parametrize("failpoint", ["ddl.before_intent", "ddl.after_statement", "ddl.before_done"])
def test_a_ddl_that_is_killed_before_its_commit_did_not_happen_and_runs_at_the_next_start(left, failpoint):
    killed(left, "ddl", failpoint)
    assert contents(left) == [(1, "old")]
    assert contents(left, "SELECT count(*) FROM applier_ddl_ledger") == [(1,)]
    with SqliteSink(settings(left)) as sink:
        sink.acquire()
        run(sink, sink.settle(sink.load().fence), ALTER, 6)
    assert contents(left) == [(5, 1, "old")]


def test_a_ddl_that_is_killed_after_its_commit_is_done(left):
    killed(left, "ddl", "ddl.after_done")
    assert contents(left) == [(5, 1, "old")]
    with SqliteSink(settings(left)) as sink:
        sink.acquire()
        assert [entry.state for entry in sink.ledger()] == [DdlState.DONE, DdlState.DONE]
        assert sink.load().checkpoint_ts == 6


@pytest.mark.parametrize(
    ("failpoint", "expected"), [("write.before_commit", [(1, "old")]), ("write.after_commit", [(1, "new"), (2, "new")])]
)
def test_a_write_that_is_killed_is_whole_or_absent_with_its_progress(left, failpoint, expected):
    killed(left, "write", failpoint)
    assert contents(left) == expected
    with SqliteSink(settings(left)) as sink:
        assert sink.load().checkpoint_ts == (6 if len(expected) == 2 else 5)


def test_a_commit_that_fails_is_an_unknown_outcome_and_the_sink_tells_what_holds(left):
    with start(left, "full") as process:
        state, _, told = process.stdout.read().decode().strip().partition(" UnknownOutcome ")
        assert state == "rebuild"
        assert told == "COMMIT failed, and may have reached the disk or not: the database file cannot be read or written"
        assert process.wait() == 0
    assert contents(left) == [(1, "old")]
    with SqliteSink(settings(left)) as sink:
        sink.acquire()
        assert sink.raise_epoch().checkpoint_ts == 5


# --- ownership --------------------------------------------------------------------------------------------------------------


def test_a_second_run_exits_with_fenced_that_names_the_owner(sink, path):
    with SqliteSink(settings(path)) as second, pytest.raises(Fenced) as raised:
        second.acquire()
    assert raised.value.facts["process"] == os.getpid()
    assert raised.value.facts["host"]
    assert raised.value.facts["since"]
    assert sink.heartbeat_lost() is None


def test_a_run_that_waits_for_another_one_says_so_once(sink, path, caplog):
    caplog.set_level(logging.INFO, "applier")
    waiting = SinkSettings(url=f"sqlite:///{path}", lock_timeout_s=0.5)
    with SqliteSink(waiting) as second, pytest.raises(Fenced):
        second.acquire()
    (told,) = (record for record in caplog.records if record.getMessage() == "waiting_for_replica_lock")
    assert told.owner_process == os.getpid()


def test_an_owner_that_has_not_written_its_name_yet_is_given_the_time(path, monkeypatch):
    monkeypatch.setattr(sqlite_ownership, "_NAMING_S", 60.0)
    lock = path.with_name(path.name + ".lock")
    with lock.open("w") as owner, SqliteSink(settings(path)) as second:
        fcntl.flock(owner, fcntl.LOCK_EX)
        holder = {"host": "elsewhere", "process": 7, "since": "2026-01-01T00:00:00+00:00"}
        named = threading.Timer(0.3, lambda: (owner.write(json.dumps(holder)), owner.flush()))
        named.start()
        with pytest.raises(Fenced) as raised:
            second.acquire()
        named.join()
    assert (raised.value.facts["host"], raised.value.facts["process"]) == ("elsewhere", 7)


def test_a_file_that_another_one_is_making_is_waited_for(path):
    # SQLite refuses the change to WAL at once while another connection writes, whatever the patience.
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    for statement in ("CREATE TABLE t (a)", "BEGIN IMMEDIATE"):
        other.execute(statement)
    done = threading.Timer(0.3, other.close)
    done.start()
    with SqliteSink(settings(path)) as sink:
        sink.migrate()
        sink.acquire()
    done.join()


def test_the_lock_is_free_when_the_owner_closes(path):
    for _ in range(2):
        with SqliteSink(settings(path)) as sink:
            sink.migrate()
            sink.acquire()


def test_a_run_that_cannot_say_that_it_ends_lets_the_lock_go_and_does_not_hide_why_it_ends(left):
    quick = SinkSettings(url=f"sqlite:///{left}", lock_timeout_s=0.0, lock_wait_timeout_s=0)
    with closing(sqlite3.connect(left, isolation_level=None)) as other:

        def ends_while_the_file_is_busy():
            with SqliteSink(quick) as sink:
                sink.acquire()
                other.execute("BEGIN IMMEDIATE")
                raise SourceError("why it ends")

        with pytest.raises(SourceError, match="why it ends"):
            ends_while_the_file_is_busy()
        other.execute("ROLLBACK")
    with SqliteSink(quick) as following:
        following.acquire()
        assert following.load().checkpoint_ts == 5


def test_a_heartbeat_that_fails_is_tried_again(left, monkeypatch):
    lock, touch, failed = left.with_name("replica.db.lock"), os.utime, []

    def failing(descriptor):
        if len(failed) < 3:
            failed.append(descriptor)
            raise OSError(errno.EIO, "input/output error")
        touch(descriptor)

    with SqliteSink(settings(left, lease_s=0.05)) as owner:
        owner.acquire()
        monkeypatch.setattr(os, "utime", failing)
        deadline = time.monotonic() + 30
        while len(failed) < 3 and time.monotonic() < deadline:
            time.sleep(0.01)
        touch(lock, (0, 0))
        while lock.stat().st_mtime == 0 and time.monotonic() < deadline:
            time.sleep(0.01)
        assert lock.stat().st_mtime > 0
        assert owner.heartbeat_lost() is None


def test_a_killed_owner_is_replaced_at_once_and_a_living_one_only_by_take_over(left):
    with start(left, "hold") as process:
        assert process.stdout.readline() == b"owner\n"
        with SqliteSink(settings(left)) as second:
            with pytest.raises(Fenced) as raised:
                second.acquire()
            assert raised.value.facts["process"] == process.pid
            process.kill()
            process.wait()
            second.acquire()


def test_a_frozen_owner_is_taken_over_and_can_write_no_more(left):
    with start(left, "hold") as process:
        assert process.stdout.readline() == b"owner\n"
        with SqliteSink(settings(left)) as second:
            process.send_signal(signal.SIGSTOP)
            long_ago = time.time() - 3600
            os.utime(left.with_name("replica.db.lock"), (long_ago, long_ago))
            second.acquire()
            assert second.load().checkpoint_ts == 5
        process.kill()


def test_a_run_that_was_taken_over_finds_out_and_cannot_write(left):
    with SqliteSink(settings(left, lease_s=0.05)) as first, SqliteSink(settings(left)) as second:
        first.acquire()
        fence = first.load().fence
        second.acquire(take_over=True)
        deadline = time.monotonic() + 30
        while first.heartbeat_lost() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        assert isinstance(first.heartbeat_lost(), Fenced)
        assert first.save(fence, commit(9)).state is WriteState.FENCED
        with pytest.raises(Fenced):
            first.load()
        with pytest.raises(Fenced):
            first.raise_epoch()
        first.close()
        third = SqliteSink(settings(left))
        with pytest.raises(Fenced) as raised:
            third.acquire()
        assert json.loads(left.with_name("replica.db.lock").read_text())["process"] == raised.value.facts["process"]


# --- what can be wrong with a file ------------------------------------------------------------------------------------------


def test_a_file_that_is_no_database_is_named_with_a_remedy(path):
    path.write_bytes(b"not a database, but long enough to be looked at as one" * 100)
    with SqliteSink(settings(path)) as sink, pytest.raises(FatalSinkError, match="not an SQLite database") as raised:
        sink.migrate()
    assert raised.value.facts["path"] == str(path)
    assert raised.value.remedy


def test_a_directory_that_does_not_exist_is_named_with_a_remedy(tmp_path):
    path = tmp_path / "nowhere" / "replica.db"
    with SqliteSink(settings(path)) as sink:
        for failing in (sink.migrate, sink.acquire):
            with pytest.raises(FatalSinkError, match="cannot be") as raised:
                failing()
            assert raised.value.remedy


def test_reading_a_file_that_does_not_exist_makes_none(path):
    with SqliteSink(settings(path)) as sink, pytest.raises(FatalSinkError, match="no database file"):
        sink.load()
    assert not path.exists()


def test_a_run_needs_the_bookkeeping_tables(path):
    with SqliteSink(settings(path)) as sink, pytest.raises(FatalSinkError, match="bookkeeping"):
        sink.acquire()


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///:memory:"])
def test_a_database_in_memory_is_refused(url):
    with pytest.raises(ConfigError):
        SqliteSink(SinkSettings(url=url))


def test_an_unknown_time_zone_is_refused(path):
    with pytest.raises(ConfigError):
        SqliteSink(settings(path, time_zone="Mars/Olympus"))


def test_a_relative_path_means_the_directory_of_the_start(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    sink = SqliteSink(SinkSettings(url="sqlite:///replica.db"))
    monkeypatch.chdir("/")
    assert sink.writer.path == tmp_path / "replica.db"
