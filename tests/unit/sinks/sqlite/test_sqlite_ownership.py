"""Who owns a file: the lock file, its heartbeat, a killed, frozen or replaced owner."""

import errno
import fcntl
import json
import os
import signal
import sqlite3
import threading
import time
from contextlib import closing

import pytest

from applier.model.errors import (
    Fenced,
    SourceError,
)
from applier.sinks.progress import WriteState
from applier.sinks.settings import SinkSettings
from applier.sinks.sqlite import ownership as sqlite_ownership
from applier.sinks.sqlite.sink import SqliteSink
from tests.unit.sinks.sqlite.sqlite_replica import commit, settings, start


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
