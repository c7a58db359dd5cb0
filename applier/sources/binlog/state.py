"""What is stored with a replica's progress to find its position again, and the journal of the log that the scan keeps. Pure.

The position is found on this server, or on another one after a failover. The journal covers the log between what is applied and the
scan's position. It is columns of numbers, 34 bytes for each group and as much again while they grow: it may hold a million of them.
"""

from array import array
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import msgspec

from applier.model.errors import NeedsOperator, Remedy
from applier.model.position import Cut, Offset
from applier.sources.binlog.group import Group
from applier.sources.binlog.gtid_set import Gtid, GtidSet, parse_gtid_set
from applier.sources.binlog.position import FILE_BITS

CUT_BYTES: Final = 1 << 20
"""The approximate bytes between two cuts: a range is at least as large, except at the live end."""

LEAST_GROUP_BYTES: Final = 1 << 10
"""The least size that a group counts for the scan's distance: a GiB is not more than a million groups, which take 40 MB here."""


class EndedGroup(NamedTuple):
    """Where a group begins and ends, its transaction ('' without GTIDs), and when that was."""

    begin: int
    end: int
    gtid: str
    time_ms: int


def ended_group(group: Group) -> EndedGroup:
    """Return what is remembered of a group. Its time too tells two logs apart: transactions of one size have the same positions in both."""
    return EndedGroup(group.begin, group.end, group.gtid, group.time_us // 1000)


@dataclass(slots=True, kw_only=True)
class Beginning:
    """What is known of the position at which a journal begins."""

    position: int
    executed: GtidSet
    prepared: dict[str, int] = field(default_factory=dict)
    """Where each prepared XA transaction that is neither committed nor rolled back was prepared."""
    last: EndedGroup | None = None
    """The last group that ends at or before the position."""
    created_s: int = 0
    """When the server began the file of the position, in seconds since the epoch; 0: not known."""


class Journal:
    """Groups, cuts, and prepared XA transactions after a position. Not thread-safe."""

    def __init__(self, beginning: Beginning) -> None:
        self._base = beginning
        self._begin, self._end, self._number, self._time_ms = array("Q"), array("Q"), array("Q"), array("Q")
        self._source = array("H")
        self._sources: list[str] = [""]
        self._source_index: dict[str, int] = {"": 0}
        self._xa: list[tuple[int, str, int | None]] = []
        """(end, xid, where it was prepared): None where it is committed or rolled back."""
        self._created_s = {beginning.position >> FILE_BITS: beginning.created_s} if beginning.created_s else {}
        """By generation and number of the file. Another time is another file, of a log that was reset."""
        self._cuts: list[Cut] = []
        self._closed: tuple[Cut, ...] | None = ()
        """The cuts as a tuple, while it holds all of them."""
        self._open = Cut(Offset(beginning.position), 0)
        self._front = (0, beginning.executed.copy())
        """A number of groups, and the executed set after them: checkpoints ascend, so the next one is found from here."""

    # --- what the scan writes --------------------------------------------------------------------------------------

    def add_group(self, group: EndedGroup) -> None:
        """Add the last group."""
        self._begin.append(group.begin)
        self._end.append(group.end)
        self._time_ms.append(group.time_ms)
        source, number = Gtid.parse(group.gtid) if group.gtid else ("", 0)
        index = self._source_index.get(source)
        if index is None:
            index = self._source_index[source] = len(self._sources)
            self._sources.append(source)
        self._source.append(index)
        self._number.append(number)

    def note_file(self, position: int, created_s: int) -> bool:
        """Remember when the file of a position was begun; return whether that is the file that was known."""
        return self._created_s.setdefault(position >> FILE_BITS, created_s) == created_s

    def add_boundary(self, at: int, size: int) -> None:
        """A range may end here; it ends ``size`` bytes after the boundary before it."""
        self._open = Cut(Offset(at), self._open.size + size)
        if self._open.size >= CUT_BYTES:
            self.cut()

    def cut(self) -> None:
        """Make the last boundary a cut, however few bytes are before it."""
        if self._open.size:
            self._cuts.append(self._open)
            self._closed = None
            self._open = Cut(self._open.offset, 0)

    def prepare(self, xid: str, begin: int, end: int) -> None:
        """An XA transaction was prepared in the group from ``begin`` to ``end``."""
        self._xa.append((end, xid, begin))

    def settle(self, xid: str, end: int) -> None:
        """An XA transaction was committed or rolled back by the group that ends at ``end``."""
        self._xa.append((end, xid, None))

    # --- what the driver asks --------------------------------------------------------------------------------------

    @property
    def beginning(self) -> int:
        """The position after which everything is known."""
        return self._base.position

    @property
    def last(self) -> int:
        """The last boundary."""
        return self._open.offset

    def size_behind(self, position: int) -> int:
        """Return the approximate bytes after a position; small groups count as ``LEAST_GROUP_BYTES``."""
        first = bisect_right(self._cuts, position, key=lambda cut: cut.offset)
        # By count: cuts are about equally far apart, and this is asked for every batch of events.
        return max((len(self._cuts) - first) * CUT_BYTES, (len(self._end) - bisect_right(self._end, position)) * LEAST_GROUP_BYTES)

    def cuts(self) -> tuple[Cut, ...]:
        """Return where ranges may end, the last boundary included."""
        if self._closed is None:
            self._closed = tuple(self._cuts)
        if self._closed and self._closed[-1].offset == self._open.offset:
            return self._closed
        # Also where nothing has come since the beginning: a replica may have to read what lies right before it once more.
        return (*self._closed, self._open._replace(size=max(1, self._open.size)))

    def boundary_at(self, ts: int) -> int:
        """Return the last boundary at or below a checkpoint.

        It is inside of a group at a DDL, whose ts is its end - 1, and after one that has rows: CREATE TABLE ... SELECT.
        """
        index = bisect_right(self._end, ts)
        return min(ts, self._begin[index]) if index < len(self._end) else ts

    def executed_at(self, ts: int) -> GtidSet:
        """Return the executed set after all groups that end at or below ``ts``. The caller must not change it."""
        index = bisect_right(self._end, ts)
        done, executed = self._front
        if index < done:
            done, executed = 0, self._base.executed.copy()
        self._fold(executed, done, index)
        self._front = (index, executed)
        return executed

    def _fold(self, executed: GtidSet, first: int, upto: int) -> None:
        sources, number = self._sources, self._number
        for i, source in enumerate(self._source[first:upto], first):
            if source:
                executed.add(Gtid(sources[source], number[i]))

    def prepared_at(self, ts: int) -> Mapping[str, int]:
        """Return where each XA transaction that is open at ``ts`` was prepared."""
        prepared = dict(self._base.prepared)
        for end, xid, begin in self._xa:
            if end > ts:
                break
            if begin is None:
                prepared.pop(xid, None)
            else:
                prepared[xid] = begin
        return prepared

    def ever_prepared(self) -> dict[str, tuple[int, ...]]:
        """Return where each XA transaction was prepared that is open at the beginning or has been since: an xid may come again."""
        prepared: dict[str, tuple[int, ...]] = {xid: (begin,) for xid, begin in self._base.prepared.items()}
        for _, xid, begin in self._xa:
            if begin is not None:
                prepared[xid] = (*prepared.get(xid, ()), begin)
        return prepared

    def last_at(self, ts: int) -> EndedGroup | None:
        """Return the last group that ends at or below ``ts``."""
        index = bisect_right(self._end, ts) - 1
        if index < 0:
            return self._base.last
        source = self._sources[self._source[index]]
        gtid = str(Gtid(source, self._number[index])) if source else ""
        return EndedGroup(self._begin[index], self._end[index], gtid, self._time_ms[index])

    @property
    def files(self) -> dict[int, int]:
        """When each file was begun, by generation and number."""
        return dict(self._created_s)

    def created_at(self, ts: int) -> int:
        """Return when the file of a position was begun; 0: not known."""
        return self._created_s.get(ts >> FILE_BITS, 0)

    def time_behind(self, ts: int) -> int | None:
        """Return when the first group was written that ends above ``ts``, in milliseconds; None: there is none yet."""
        index = bisect_right(self._end, ts)
        return self._time_ms[index] if index < len(self._time_ms) else None

    def forget(self, before: int) -> None:
        """Remove everything before a position, except its sum."""
        index = bisect_right(self._end, before)
        base = Beginning(position=max(before, self._base.position), executed=self._base.executed, last=self.last_at(before))
        base.prepared, base.created_s = dict(self.prepared_at(before)), self.created_at(before)
        if index == self._front[0]:
            base.executed = self._front[1].copy()
        else:
            self._fold(base.executed, 0, index)
        self._base = base
        self._front = (max(0, self._front[0] - index), self._front[1]) if self._front[0] >= index else (0, base.executed.copy())
        for column in (self._begin, self._end, self._number, self._time_ms, self._source):
            del column[:index]
        self._xa = [change for change in self._xa if change[0] > before]
        self._created_s = {file: created_s for file, created_s in self._created_s.items() if file >= before >> FILE_BITS}
        first = bisect_right(self._cuts, before, key=lambda cut: cut.offset)
        if first:
            del self._cuts[:first]
            self._closed = None


VERSION: Final = 2
"""The version of the state that this program writes. It reads this version and older ones.

Version 1 had MariaDB's greatest number of each domain instead of the last one that was logged, and no ``passed``.
"""


class SourceState(msgspec.Struct, frozen=True, kw_only=True):
    """The position of a replica in a binlog. ``server``: MySQL's server_uuid, or MariaDB's server_id."""

    version: int = VERSION
    is_mariadb: bool
    server: str
    generation: int
    base_name: str
    position: int = msgspec.field(name="place")
    """All groups that end at or before it are applied."""
    gtid_set: str
    has_gaps: bool = False
    """Whether transactions of the set may come after the position."""
    passed: dict[str, int] = {}
    """Of MariaDB, for each domain that is ahead of the position: its last executed GTID and where that ends in this log."""
    last: EndedGroup | None = None
    """Read first when the replica resumes, to see that the log is still the same."""
    created_s: int = 0
    """When the server began the file of the position: a log that was reset has another file under its name. 0: not known."""
    prepared: dict[str, int] = {}
    """Where each XA transaction was prepared that is open at the position."""
    kept: list[str] = []
    """The transactions that the sink keeps: their files are no longer needed."""

    @classmethod
    def parse(cls, text: str) -> "SourceState":
        """Read what ``text`` has given. NeedsOperator if it is not that."""
        try:
            state = _DECODER.decode(text)
        except msgspec.DecodeError as error:
            raise _unreadable(str(error)) from error
        if state.version > VERSION:
            raise _unreadable(f"version {state.version}")
        return state

    def text(self) -> str:
        """Spell it as JSON."""
        return msgspec.json.encode(self).decode()

    @property
    def executed(self) -> GtidSet:
        """The transactions that are applied."""
        executed = parse_gtid_set(self.gtid_set, is_mariadb=self.is_mariadb)
        if self.is_mariadb and self.version < VERSION and not self.has_gaps and self.last is not None and self.last.gtid:
            executed.add(Gtid.parse(self.last.gtid))
        return executed

    @property
    def kept_positions(self) -> dict[str, int]:
        """Where the transactions were prepared that the sink keeps: in the log of an earlier generation too."""
        return {xid: self.prepared[xid] for xid in self.kept if xid in self.prepared}

    def beginning(self) -> Beginning:
        """Return where the scan continues."""
        return Beginning(
            position=self.position, executed=self.executed, prepared=dict(self.prepared), last=self.last, created_s=self.created_s
        )


_DECODER: Final = msgspec.json.Decoder(SourceState)


def _unreadable(cause: str) -> NeedsOperator:
    return NeedsOperator(
        "the stored state of the source cannot be read",
        remedy=Remedy(
            "binlog.use-newer-applier",
            "A newer version of applier may have written it: use that one, or create the replica again (`applier docs start_over`)",
        ),
        cause=cause,
    )
