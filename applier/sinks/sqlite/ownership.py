"""Who owns the file: an OS lock on ``<file>.lock`` in the database's directory, which ends with its process, however that ends.

The lock file names its holder, and its time of modification is the heartbeat. To take over from a frozen owner, a run replaces the lock
file by a new one: the old owner still holds a lock, but on a file without a name, and notices it at its next heartbeat.
Until then the epoch in the database keeps it from writing.
"""

import fcntl
import json
import os
import socket
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from applier.model.errors import FatalSinkError, Fenced, Remedy
from applier.sinks.bookkeeping.owner_table import OwnerRow
from applier.sinks.lock_wait_log import log_lock_wait
from applier.sinks.overview import OwnerState, OwnerView

_RETRY_S: Final = 0.1
_NAMING_S: Final = 2.0
"""A run that has just taken the lock gets this long to write its name into the file."""


@dataclass(frozen=True, slots=True)
class Holder:
    """What the lock file says about its holder."""

    host: str
    process: int
    since: str
    silent_s: float


class FileLock:
    """The lock of one run, with its heartbeat thread. Not inherited by child processes."""

    def __init__(self, database: Path, *, lease_s: float, timeout_s: float) -> None:
        self.path = database.with_name(database.name + ".lock")
        self._lease_s, self._timeout_s = lease_s, timeout_s
        self._descriptor: int | None = None
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None
        self._lost: Exception | None = None

    @property
    def lost(self) -> Exception | None:
        """The error of the heartbeat, if another run has taken the lock."""
        return self._lost

    def acquire(self, *, take_over: bool) -> None:
        """Take the lock. Fenced names the holder if its heartbeat is alive and it does not release the lock in time."""
        deadline = time.monotonic() + self._timeout_s
        unnamed_deadline = max(deadline, time.monotonic() + _NAMING_S)
        is_logged = False
        while not self._try():
            holder = self.holder()
            if take_over or (holder is not None and holder.silent_s > self._lease_s):
                # The frozen owner cannot be asked to release its lock, and killing it is not ours to do: it may be on another machine.
                self.path.unlink(missing_ok=True)
            elif time.monotonic() >= (unnamed_deadline if holder is None else deadline):
                raise _fenced(self.path, holder)
            else:
                if not is_logged:
                    log_lock_wait(_fenced(self.path, holder))
                    is_logged = True
                time.sleep(_RETRY_S)
        self._announce()
        self._stopped.clear()
        self._thread = threading.Thread(target=self._beat, name="applier-heartbeat", daemon=True)
        self._thread.start()

    def holder(self) -> Holder | None:
        """Read who holds the lock; None if no run does, or the file names none."""
        try:
            facts = json.loads(self.path.read_text(encoding="utf-8"))
            silent_s = time.time() - self.path.stat().st_mtime
            return Holder(facts["host"], facts["process"], facts["since"], round(silent_s, 1))
        except (OSError, ValueError, KeyError):
            return None

    def judge(self, row: OwnerRow) -> OwnerView:
        """Judge whether the run that owns the replica lives, without touching the lock: a run that starts now may want it."""
        holder = self.holder()
        if holder is None or holder.process != row.owner.process:
            return OwnerView(owner=row.owner, silent_s=row.silent_s, state=OwnerState.DEAD)
        return OwnerView(owner=row.owner, silent_s=holder.silent_s, state=self._state_of(holder))

    def _state_of(self, holder: Holder) -> OwnerState:
        if not _is_alive(holder):
            return OwnerState.DEAD
        return OwnerState.FROZEN if holder.silent_s > self._lease_s else OwnerState.ALIVE

    def release(self) -> None:
        """Stop the heartbeat and release the lock; the file stays, empty, because others may be waiting on it."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        if self._descriptor is not None:
            descriptor, self._descriptor = self._descriptor, None
            # Emptied and not removed: a run that waits has this file open, and would lock one that has no name any more.
            try:
                os.ftruncate(descriptor, 0)
            finally:
                os.close(descriptor)

    def _try(self) -> bool:
        descriptor = self._open()
        try:
            # flock dies with its process, however that ends; a lock row or a pid file would have to be judged.
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return False
        # Between open and lock a take-over may have replaced the file: a lock on a file without a name keeps no run out.
        if not self._is_named(descriptor):
            os.close(descriptor)
            return False
        self._descriptor = descriptor
        return True

    def _open(self) -> int:
        try:
            return os.open(self.path, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise FatalSinkError(
                "the lock file of the database cannot be written",
                remedy=Remedy("sqlite.make-owner-file-writable", "Make the directory and this file writable for this user"),
                path=str(self.path),
                reason=error.strerror,
            ) from error

    def _is_named(self, descriptor: int) -> bool:
        """Return whether the locked file still has the name: a take-over replaces the file."""
        try:
            return os.path.samestat(os.fstat(descriptor), self.path.stat())
        except FileNotFoundError:
            return False

    def _announce(self) -> None:
        descriptor = self._held()
        # Written after the lock is held, so a reader may see an empty file for a short time (_NAMING_S).
        facts = {"host": socket.gethostname(), "process": os.getpid(), "since": datetime.now(UTC).isoformat(timespec="seconds")}
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, json.dumps(facts).encode(), 0)

    def _held(self) -> int:
        if self._descriptor is None:
            raise Fenced(
                "the lock of the database file is not held",
                remedy=Remedy("sqlite.report-defect", "This is a defect of applier: please report it"),
                path=str(self.path),
            )
        return self._descriptor

    def _beat(self) -> None:
        descriptor = self._held()
        while not self._stopped.wait(self._lease_s / 3):
            # A beat that fails is retried: the lock is still held, and the next beat finds out whether another run took over.
            with suppress(OSError):
                if not self._is_named(descriptor):
                    self._lost = _fenced(self.path, self.holder())
                    return
                os.utime(descriptor)


def _is_alive(holder: Holder) -> bool:
    """Return whether the process is there; a process of another machine (or of another container) counts as there."""
    # Process numbers mean something on one host only.
    if holder.host != socket.gethostname():
        return True
    try:
        os.kill(holder.process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _fenced(path: Path, holder: Holder | None) -> Fenced:
    if holder is None:
        return Fenced("another run owns the database file", path=str(path))
    return Fenced(
        "another run owns the database file",
        path=str(path),
        host=holder.host,
        process=holder.process,
        since=holder.since,
        silent_s=holder.silent_s,
    )
