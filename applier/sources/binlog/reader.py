"""Reads ranges of the log on an executor, each exactly: every group that begins in it, whole, and nothing else.

A process keeps a connection for some seconds, since the next range often follows where the last one ended. A connection that is lost is
opened again at the last boundary: records that were yielded before are not yielded again.
"""

import time
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Lock, Thread
from typing import Final, TypeAlias

from applier.model.errors import Remedy, SourceError
from applier.model.failure import FailureKind
from applier.model.position import Offset, Stream
from applier.model.range_report import RangeId
from applier.sources.binlog.content import GroupContent
from applier.sources.binlog.event_stream import BULKY, FORMAT_DESCRIPTION, HEARTBEATS, BinlogEvent, EventStream
from applier.sources.binlog.group import Group, GroupFinder, GroupKind
from applier.sources.binlog.part import PartHead, PartKind, encode_head
from applier.sources.binlog.position import FILE_BITS, GENERATION_BITS, BinlogPosition
from applier.sources.binlog.refusal import explained, reset_log, wrong
from applier.sources.binlog.server import Server
from applier.sources.binlog.settings import BinlogSettings
from applier.sources.binlog.walk import NONE_SKIPPED, LogLookup, SkippedGroups, numbered
from applier.sources.binlog.xa_rows import NOTHING_KEPT, KeptTransactions, XaPosition, XaRows
from applier.sources.peek import read_whole
from applier.sources.port import Record

IDLE_S: Final = 5.0
"""How long one is kept. A server purges no file that one of its dumps is in."""
LOOK_S: Final = 1.0


class IdleStreams:
    """Used by the threads of a process; one of its own closes what was not taken."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._kept: dict[Hashable, tuple[EventStream, float]] = {}
        self._thread: Thread | None = None

    def take(self, key: Hashable) -> EventStream | None:
        """Return a connection, which no one else gets; None: there is none."""
        with self._lock:
            stream, _ = self._kept.pop(key, (None, 0.0))
            return stream

    def keep(self, key: Hashable, stream: EventStream) -> None:
        """Keep a connection, instead of another one of this key."""
        with self._lock:
            former, _ = self._kept.pop(key, (None, 0.0))
            self._kept[key] = stream, time.monotonic() + IDLE_S
            if self._thread is None:
                self._thread = Thread(target=self._close_old, name="idle binlog connections", daemon=True)
                self._thread.start()
        if former is not None:
            former.close()

    def close(self) -> None:
        """Close all."""
        with self._lock:
            streams = [stream for stream, _ in self._kept.values()]
            self._kept.clear()
        for stream in streams:
            stream.close()

    def _close_old(self) -> None:
        while True:
            time.sleep(LOOK_S)
            now_s = time.monotonic()
            with self._lock:
                old = [key for key, (_, until_s) in self._kept.items() if until_s <= now_s]
                streams = [self._kept.pop(key)[0] for key in old]
                is_over = not self._kept
                if is_over:
                    self._thread = None
            for stream in streams:
                stream.close()
            if is_over:
                return


PREPARED: Final = XaRows()
"""The prepared transactions of this process."""
BATCH_BYTES: Final = 1 << 20
POLL_S: Final = 1.0
GENERATIONS: Final = -1 << GENERATION_BITS
"""The bits of a position that say which server's it is."""
_PAUSES_S: Final = (0.0, 0.1, 0.3, 1.0)
"""Before the first, second, … attempt to connect again."""
ATTEMPTS: Final = 30
"""How often a group may be cut before the range fails."""
WRONG_ATTEMPTS: Final = 3
"""How often it may be invalid: a network may damage it, and TCP does not find everything."""
_BEGIN_LATER: Final = Remedy(
    "binlog.create-again-after-commit",
    "Create the replica again from a dump that was made after this commit. If no row of the transaction is in a replicated table, "
    "continue after it: `applier skip`",
)


@dataclass(frozen=True, slots=True)
class Log:
    """Whose log is read (``server``: its identity), which transactions are prepared or executed already, what the sink keeps.

    ``files``: when each was begun, by generation and number, if known.
    """

    settings: BinlogSettings
    base_name: str
    prepared: Mapping[str, tuple[int, ...]]
    server: str
    skipped: SkippedGroups = NONE_SKIPPED
    kept: KeptTransactions = NOTHING_KEPT
    files: Mapping[int, int] = field(default_factory=dict)

    def stream(self, position: int) -> EventStream:
        """Connect."""
        return EventStream(self.settings, self.base_name, position, bodies=True, server=self.server)

    def server_end(self) -> int:
        """Return where the server writes now, without a generation. SourceError, NeedsOperator: it does not say."""
        with Server(self.settings) as server:
            end = server.end()
        return BinlogPosition(0, end.number, end.position).number if end is not None else 0

    def prepared_at(self, begin: int, xid: str) -> XaPosition:
        """Name a transaction that was prepared."""
        return XaPosition(self.settings, self.server, begin, xid)

    def text(self, position: int) -> str:
        """Name a position."""
        return BinlogPosition.of(position).text(self.base_name)


class RangeReading:
    """The reading of [start, end). ``stream``: a connection to continue with, before and after; None: none."""

    def __init__(self, log: Log, start: int, end: int, stream: EventStream | None) -> None:
        self.stream = stream
        self._log, self._end = log, end
        self._finder, self._content = GroupFinder(), GroupContent()
        self._boundary = self._before = start
        self._prepared: dict[str, int] = {}
        self._time_us = 0
        self._failing_since_s: float | None = None
        self._idle_since_s: float | None = None

    def batches(self) -> Iterator[list[Record]]:
        """Yield the records in batches of about a megabyte; SourceError for what no later attempt helped against."""
        if self._boundary >> GENERATION_BITS == self._end >> GENERATION_BITS:
            attempts = 0
            while self._boundary < self._end:
                boundary = self._boundary
                try:
                    yield from self._read_on()
                except SourceError as error:
                    self._drop()
                    attempts = 1 if boundary != self._boundary else attempts + 1
                    self._wait(error, attempts)
        yield [self._promise()]

    def _wait(self, error: SourceError, attempts: int) -> None:
        """Wait before another attempt; raise the error if there is none."""
        now_s = time.monotonic()
        if self._failing_since_s is None:
            self._failing_since_s = now_s - error.facts.get("silent_s", 0)
        if _is_received_wrong(error):
            is_over = attempts >= WRONG_ATTEMPTS
        else:
            is_over = now_s - self._failing_since_s > self._log.settings.unreachable_after_s or attempts > ATTEMPTS
            is_over = is_over or error.kind is not FailureKind.UNREACHABLE
        if is_over:
            raise explained(error, self._log.server_end, self._end & ~GENERATIONS, self._log.text(self._end)) from error
        time.sleep(_PAUSES_S[min(attempts, len(_PAUSES_S)) - 1])

    def _drop(self) -> None:
        stream, self.stream = self.stream, None
        if stream is not None:
            stream.close()

    def _read_on(self) -> Iterator[list[Record]]:
        stream = self._connected()
        self._finder, self._content = GroupFinder(), GroupContent()
        try:
            while self._boundary < self._end:
                events = stream.read(POLL_S)
                self._check_end(events)
                yield from self._take(stream, events)
        finally:
            self._content.close()

    def _take(self, stream: EventStream, events: list[BinlogEvent]) -> Iterator[list[Record]]:
        batch, finder = _RecordBatch(), self._finder
        try:
            for number, event in enumerate(events):
                if event[0] in BULKY and finder.is_open:
                    self._content.add(event)
                    continue
                if event.kind == FORMAT_DESCRIPTION:
                    self._check_file(event)
                group = finder.take(event)
                self._check_inside(event, may_end=not finder.is_open)
                if finder.is_open:
                    self._content.add(event)
                    continue
                if group is not None:
                    self._content.add(event)
                    for record in self._records(group, self._content, is_mariadb=stream.is_mariadb):
                        if batch.add(record):
                            yield batch.taken()
                    self._content.close()
                    self._content = GroupContent()
                if self._pass(event):
                    stream.give_back(events[number + 1 :])
                    break
        except SourceError:
            yield batch.taken()  # another attempt continues behind these
            raise
        yield batch.taken()

    def _records(self, group: Group, content: GroupContent, *, is_mariadb: bool) -> Iterable[Record]:
        if self._log.skipped.contain(group):
            return ()
        match group.kind:
            case GroupKind.TRANSACTION:
                return content.records(group, group.end, is_mariadb=is_mariadb)
            case GroupKind.QUERY | GroupKind.INCIDENT:
                return content.statement(group, is_mariadb=is_mariadb)
            case GroupKind.XA_PREPARE:
                self._prepared[group.xid] = group.begin
                PREPARED.keep(self._log.prepared_at(group.begin, group.xid), content)
            case GroupKind.XA_COMMIT:
                return self._prepared_records(group, is_mariadb=is_mariadb)
            case GroupKind.XA_ROLLBACK | GroupKind.ROLLBACK | GroupKind.IGNORED | GroupKind.UNFINISHED:
                pass
        return ()

    def _prepared_records(self, commit: Group, *, is_mariadb: bool) -> Iterator[Record]:
        """Yield the rows that were prepared in another group, under the position and the timestamp of their commit."""
        earlier = [position for position in self._log.prepared.get(commit.xid, ()) if position < commit.begin]
        begin = self._prepared.pop(commit.xid, None) or max(earlier, default=None)
        if begin is None and commit.end <= self._log.skipped.behind:
            return  # read again from before the position: applied, so the state does not hold it any more
        if begin is None:
            raise self._prepared_before(commit)
        content = PREPARED.of(self._log.prepared_at(begin, commit.xid)) or self._log.kept.read(begin)
        try:
            if content is None and begin >> GENERATION_BITS != commit.begin >> GENERATION_BITS:
                raise self._prepared_before(commit)  # by a server that is not followed any more
            if content is None:
                content = GroupContent()
                with self._log.stream(begin) as stream:
                    gather_prepared(self._log, stream, begin, commit.xid, content)
            yield from content.records(commit, commit.end, is_mariadb=is_mariadb)
        finally:
            if content is not None:
                content.close()

    def _prepared_before(self, commit: Group) -> SourceError:
        return SourceError(
            "the binlog commits a transaction that was prepared before the replica began",
            remedy=_BEGIN_LATER,
            kind=FailureKind.XA,
            at=self._log.text(commit.begin),
            xid=commit.xid,
        )

    def _connected(self) -> EventStream:
        stream = self.stream
        if stream is not None and stream.position != self._boundary:
            self._drop()
            stream = None
        if stream is None:
            stream = self.stream = self._log.stream(self._boundary)
        return stream

    def _check_file(self, event: BinlogEvent) -> None:
        if self._log.files.get(event.begin >> FILE_BITS, event.time_s) != event.time_s:
            raise reset_log(self._log.text(self._boundary))

    def _check_inside(self, event: BinlogEvent, *, may_end: bool) -> None:
        if event.end > self._end or (event.end == self._end and not may_end):
            raise wrong("the range does not end between groups of the binlog", self._log.text(event.begin), end=self._log.text(self._end))

    def _pass(self, event: BinlogEvent) -> bool:
        """Continue to the boundary after an event; return whether the range ends there."""
        if event.end > self._boundary:
            self._before, self._boundary = self._boundary, event.end
            if event.time_s:
                self._time_us = event.time_s * 1_000_000
        return event.end == self._end

    def _check_end(self, events: list[BinlogEvent]) -> None:
        """Refuse a log that ends before the range: then the server sends heartbeats only, while it may still make an end visible."""
        if any(event.end > event.begin for event in events):
            self._failing_since_s = self._idle_since_s = None
        elif any(event.kind in HEARTBEATS for event in events):
            self._idle_since_s = self._idle_since_s or time.monotonic()
            if time.monotonic() - self._idle_since_s > self._log.settings.unreachable_after_s:
                at, end = self._log.text(self._boundary), self._log.text(self._end)
                raise wrong("the server's binlog ends before the end of the range", at, end=end)

    def _promise(self) -> Record:
        head = PartHead(PartKind.PROMISE, self._end, 0, self._time_us, False, "")
        return Record(Offset(self._before), encode_head(head), b"")


def _is_received_wrong(error: SourceError) -> bool:
    """Return whether what came was wrong, and not what the server says (which has a code), or the range."""
    return error.kind in {FailureKind.CHECKSUM, FailureKind.OTHER_LOG} and not error.facts.keys() & {"code", "end"}


class _RecordBatch:
    """Records that are yielded together."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self._size = 0

    def add(self, record: Record) -> bool:
        """Return whether it is time to yield them."""
        self.records.append(record)
        self._size += len(record.value or b"")
        return self._size >= BATCH_BYTES

    def taken(self) -> list[Record]:
        """Empty it."""
        records, self.records, self._size = self.records, [], 0
        return records


def gather_prepared(log: Log, stream: EventStream, begin: int, xid: str, content: GroupContent) -> None:
    """Read what the transaction holds that was prepared at ``begin``, on a stream that is at a boundary at or before it."""
    finder = GroupFinder()
    while True:
        events = stream.read(POLL_S)
        for number, event in enumerate(events):
            group = finder.take(event)
            if event.begin < begin:
                continue
            if finder.is_open or group is not None:
                content.add(event)
            if group is not None:
                stream.give_back(events[number + 1 :])
                if group.kind is GroupKind.XA_PREPARE and group.xid == xid:
                    return
                raise wrong(
                    "the binlog does not prepare a transaction where it did before", log.text(begin), xid=xid, found=group.kind.value
                )


Found: TypeAlias = tuple[RangeId, list[Record] | SourceError]

IDLE: Final = IdleStreams()
"""The idle connections of this process."""


@dataclass(frozen=True, slots=True)
class BinlogRangeReader:
    """Implements ``RangeReader``.

    ``prepared``: for each xid where it was prepared, ascending, if a commit may still be read. ``server``: its identity; a range
    fails with "other_server" where another one answers. ``skipped``: groups that are executed already. ``kept``: prepared transactions that
    the sink keeps. ``files``: when each was begun: one that was begun at another time is of a log that was reset.
    """

    settings: BinlogSettings = field(repr=False)
    base_name: str
    prepared: Mapping[str, tuple[int, ...]]
    server: str = ""
    skipped: SkippedGroups = NONE_SKIPPED
    kept: KeptTransactions = NOTHING_KEPT
    files: Mapping[int, int] = field(default_factory=dict)

    def records_at(self, stream: Stream, offset: Offset) -> Iterator[tuple[int, Record]]:
        """Yield the parts of the group that begins at ``offset``. SourceError of kind "position": none begins there."""
        wanted = RangeId(stream, offset, LogLookup(self.settings, self.base_name).end_of(offset))
        return numbered((records for _, records in read_whole(self, [wanted])), offset)

    def read(self, ranges: Sequence[RangeId]) -> Iterator[Found]:
        """Yield the ranges' records, one range after another."""
        log = Log(self.settings, self.base_name, self.prepared, self.server, self.skipped, self.kept, self.files)
        # Taken out while it is used: a caller that has not finished an earlier call gets another one.
        key = self.settings, self.server
        stream = IDLE.take(key)
        failure: SourceError | None = None
        try:
            for wanted in sorted(ranges, key=lambda each: each.start):
                reading = RangeReading(log, wanted.start, wanted.end, stream)
                try:
                    # A server that did not answer for one range is not waited for again for each of the others.
                    if failure is None:
                        for records in reading.batches():
                            yield wanted, records
                    else:
                        yield wanted, failure
                except SourceError as error:
                    failure = error if error.kind is FailureKind.UNREACHABLE else None
                    yield wanted, error
                finally:
                    stream = reading.stream
        finally:
            if stream is not None:
                IDLE.keep(key, stream)
