"""The scan: one connection that walks ahead of the reading, in a thread of the driver, and learns where groups end.

It looks at headers, GTIDs and the ends of groups only; no row is decoded. What it finds is in its journal, which the driver asks under the
scan's lock. A lost connection is opened again at the scan's position, without a limit: the driver decides how long the server may
be away.
"""

import copy
import logging
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Condition, Thread
from typing import Final, Protocol

from applier.model.errors import ApplierError, InvariantViolation, SourceError
from applier.model.failure import FailureKind
from applier.sources.binlog.event_stream import FORMAT_DESCRIPTION, HEARTBEATS, BinlogEvent
from applier.sources.binlog.group import Group, GroupFinder, GroupKind
from applier.sources.binlog.position import FILE_BITS
from applier.sources.binlog.refusal import explained, reset_log
from applier.sources.binlog.state import Beginning, EndedGroup, Journal, ended_group

LOGGER: Final = logging.getLogger("applier.binlog")

LOOKAHEAD_BYTES: Final = 1 << 30
"""How far the scan may be ahead of what is applied: enough for eight tasks with ranges of 64 MiB and the next ones."""
READ_WAIT_S: Final = 0.5
"""How long the scan waits for an event before it looks whether it should end."""
ASK_END_S: Final = 1.0
"""How old the known end of the server's log may be, which gives a replica's lag."""
FIRST_WAIT_S: Final = 0.1
LONGEST_WAIT_S: Final = 5.0
CLOSE_TIMEOUT_S: Final = 3.0
"""How long a close waits for the thread. A connecting thread ends later: it is a daemon."""


class EventFeed(Protocol):
    """Events from a position, over one connection."""

    def read(self, timeout_s: float) -> Sequence[BinlogEvent]:
        """Return events as they come; none after ``timeout_s``. SourceError; its ``kind`` says which."""
        ...

    def close(self) -> None:
        """Close the connection."""
        ...


class LogSession(Protocol):
    """The log of one server."""

    def open_feed(self, at: int) -> EventFeed:
        """Begin to read at a position. SourceError "other_server": another one answers than before."""
        ...

    def end(self) -> int:
        """Return where the server writes now."""
        ...

    def close(self) -> None:
        """Close the connection."""
        ...


class Scan:
    """Walks the log after ``beginning``."""

    def __init__(self, session: LogSession, beginning: Beginning, lookahead_bytes: int = LOOKAHEAD_BYTES) -> None:
        self._session, self._lookahead_bytes = session, lookahead_bytes
        self._journal = Journal(beginning)
        self._changed = Condition()
        self._thread = Thread(target=self._run, name="applier-binlog-scan", daemon=True)
        self._is_closing = False
        self._failure: ApplierError | None = None
        self._lost: tuple[float, ApplierError] | None = None
        """Since when nothing has come, by the monotonic clock, and why."""
        self._heard_s = time.monotonic()
        self._wait_s = FIRST_WAIT_S
        self._quiet_ms = 0
        """When the server said last that there is nothing more, by the clock of this machine."""
        self._applied = self._server_end = beginning.position
        self._asked_s = 0.0
        """When the server was asked for its end, by the monotonic clock."""
        self._seen = beginning.position
        """The last boundary at that time."""

    # --- the driver's side -----------------------------------------------------------------------------------------

    def start(self) -> "Scan":
        """Begin to walk. SourceError: the server cannot be asked for its end."""
        self._server_end = self._session.end()
        self._thread.start()
        return self

    @property
    def server_end(self) -> int:
        """Where the server wrote when it was asked last."""
        return self._server_end

    @contextmanager
    def journal(self) -> Iterator[Journal]:
        """Give the journal, which does not change meanwhile."""
        with self._changed:
            yield self._journal

    @property
    def is_well(self) -> bool:
        """Whether the scan continues."""
        return self._failure is None

    @property
    def quiet_ms(self) -> int:
        """When the server has said last that nothing follows the last boundary; 0: not since that came."""
        return self._quiet_ms

    def raise_failure(self, unreachable_after_s: float) -> None:
        """Raise why the scan cannot continue, or that the server has been away for so long."""
        if self._failure is not None:
            raise copy.copy(self._failure)
        lost = self._lost
        if lost is not None and time.monotonic() - lost[0] >= unreachable_after_s:
            raise copy.copy(lost[1])

    def applied(self, upto: int) -> None:
        """Let the scan continue: everything up to a position is applied."""
        with self._changed:
            self._applied = max(self._applied, upto)
            self._changed.notify_all()

    def forget(self, before: int) -> None:
        """Remove everything before a position: no listing, reload or checkpoint comes back to it."""
        with self._changed:
            if before > self._journal.beginning:
                self._journal.forget(before)

    def close(self) -> None:
        """End the thread."""
        with self._changed:
            self._is_closing = True
            self._changed.notify_all()
        if self._thread.is_alive():
            self._thread.join(CLOSE_TIMEOUT_S)

    # --- the thread ------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            while not self._is_closing:
                try:
                    self._wait_for_room()
                    self._walk()
                except SourceError as error:
                    if error.kind is not FailureKind.UNREACHABLE:
                        raise explained(error, self._session.end, self._journal.last) from error
                    self._wait_for_server(error)
        except ApplierError as error:
            self._fail(error)
        except Exception as error:  # noqa: BLE001 - a thread that ends silently would stop the replica without a word
            self._fail(InvariantViolation("the scan of the binlog failed", cause=repr(error)), error)
        finally:
            self._session.close()

    def _wait_for_server(self, error: SourceError) -> None:
        if self._lost is None:
            self._lost, self._wait_s = (self._heard_s, error), FIRST_WAIT_S
            LOGGER.warning("binlog_connection_lost", extra={"reason": error.message, "cause": error.facts.get("cause")})
        with self._changed:
            self._changed.wait_for(lambda: self._is_closing, self._wait_s)
        self._wait_s = min(2 * self._wait_s, LONGEST_WAIT_S)

    def _fail(self, failure: ApplierError, cause: Exception | None = None) -> None:
        failure.__cause__ = cause
        self._failure = failure

    def _wait_for_room(self) -> None:
        """Wait while the scan is too far ahead. Without a connection: a server ends one that does not read."""
        with self._changed:
            if self._ahead() > self._lookahead_bytes:
                self._changed.wait_for(lambda: self._is_closing or self._ahead() <= self._lookahead_bytes // 2)

    def _ahead(self) -> int:
        return self._journal.size_behind(self._applied)

    def _walk(self) -> None:
        """Read on from the last boundary, until the scan is too far ahead or closed."""
        walk = _Walk(self._journal)
        feed = self._session.open_feed(walk.begins)
        try:
            while not self._is_closing:
                events = feed.read(READ_WAIT_S)
                self._ask_end()
                if events:
                    self._heard()
                with self._changed:
                    if walk.take(events):
                        self._quiet_ms = time.time_ns() // 1_000_000
                    if self._ahead() > self._lookahead_bytes:
                        return
        finally:
            feed.close()

    def _heard(self) -> None:
        self._heard_s = time.monotonic()
        if self._lost is not None:
            self._lost = None
            LOGGER.info("binlog_connection_restored")

    def _ask_end(self) -> None:
        now_s = time.monotonic()
        if now_s - self._asked_s >= ASK_END_S:
            self._asked_s, self._server_end = now_s, self._session.end()
            # What a dump has sent stays in the log. One that was open at a RESET does not report it, and sends heartbeats without end.
            if self._server_end < self._seen:
                raise reset_log()
            self._seen = self._journal.last


class _Walk:
    """Puts what one connection brings into the journal. It begins with the last group that is known, to see that the log is the same."""

    def __init__(self, journal: Journal) -> None:
        self._journal, self._finder = journal, GroupFinder()
        self._last = journal.last
        known = journal.last_at(self._last)
        # Not a group of an earlier file: that may have been purged since.
        self._known = known if known is not None and known.begin >> FILE_BITS == self._last >> FILE_BITS else None

    @property
    def begins(self) -> int:
        """Where to read from."""
        return self._known.begin if self._known is not None else self._last

    def take(self, events: Sequence[BinlogEvent]) -> bool:
        """Take events; return whether the server has said that nothing follows. SourceError "other_log": it is another log."""
        is_quiet = False
        for event in events:
            is_quiet = event.kind in HEARTBEATS
            if is_quiet:
                continue
            if event.kind == FORMAT_DESCRIPTION and not self._journal.note_file(event.begin, event.time_s):
                raise reset_log()
            group = self._finder.take(event)
            if group is not None and self._known is not None:
                self._confirm(group, self._known)
            if event.end > self._last:
                if group is not None:
                    note_group(self._journal, group)
                if not self._finder.is_open:
                    self._bound(event)
        return is_quiet

    def _confirm(self, group: Group, known: EndedGroup) -> None:
        if ended_group(group) != known:
            raise SourceError("the binlog is not the one that was followed", kind=FailureKind.OTHER_LOG, offset=known.begin)
        self._known = None

    def _bound(self, event: BinlogEvent) -> None:
        last, end = self._last, event.end
        # A file ends where its ROTATE event begins; the event itself is small. After a stop or crash of the server, it is not in the file.
        stop = end if end >> FILE_BITS == last >> FILE_BITS else event.begin
        size = max(stop - last, 0) if stop >> FILE_BITS == last >> FILE_BITS else 0
        self._journal.add_boundary(end, size)
        if end >> FILE_BITS != last >> FILE_BITS:
            self._journal.cut()
        self._last = end


def note_group(journal: Journal, group: Group) -> None:
    """Remember a group that has ended."""
    if group.kind is GroupKind.UNFINISHED:
        return
    journal.add_group(ended_group(group))
    if group.kind is GroupKind.XA_PREPARE:
        journal.prepare(group.xid, group.begin, group.end)
    elif group.kind in {GroupKind.XA_COMMIT, GroupKind.XA_ROLLBACK}:
        journal.settle(group.xid, group.end)
