"""Reads the records of one group, by the offset at which it begins: for the quarantine, and for commands that name one transaction."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass

from applier.model.errors import SourceError
from applier.model.position import Offset
from applier.sources.binlog.event_stream import EventStream
from applier.sources.binlog.group import Group
from applier.sources.binlog.gtid_set import MysqlGtidSet
from applier.sources.binlog.journal import Beginning
from applier.sources.binlog.part import ROWS_PER_EVENT, PartKind, decode_head
from applier.sources.binlog.position import BinlogPosition
from applier.sources.binlog.settings import BinlogSettings
from applier.sources.binlog.walk import first_group, walk_while
from applier.sources.port import Record


@dataclass(frozen=True, slots=True)
class LogLookup:
    """Finds single groups in the log of a server."""

    settings: BinlogSettings
    base_name: str

    def end_of(self, offset: int) -> Offset:
        """Return where the group ends that begins at ``offset``. SourceError of kind "position": none begins there."""
        place = BinlogPosition.of(offset).text(self.base_name)
        try:
            with closing(self._feed(offset)) as feed:
                group = first_group(feed)
        except SourceError as error:
            if error.facts.get("kind") == "unreachable":
                raise
            raise _no_group(place, str(error.facts.get("cause", error.message))) from error
        if group is None or group.begin != offset:
            raise _no_group(place, "the log ends there" if group is None else "one begins behind it")
        return Offset(group.end)

    def begin_of(self, gtid: str, since: int, upto: int) -> Offset | None:
        """Return where a transaction begins between two places, the first of them a boundary; None: it is not there."""
        found: list[int] = []

        def is_before(group: Group) -> bool:
            if group.gtid == gtid:
                found.append(group.begin)
            return not found

        # The executed set is counted along the way, and nobody asks for it.
        beginning = Beginning(place=since, executed=MysqlGtidSet())
        with closing(self._feed(since)) as feed:
            walk_while(feed, beginning, is_before, upto)
        return Offset(found[0]) if found else None

    def _feed(self, at: int) -> EventStream:
        return EventStream(self.settings, self.base_name, at, bodies=False)


def numbered(batches: Iterator[list[Record]], offset: Offset) -> Iterator[tuple[int, Record]]:
    """Yield the records of one offset, each with the index of its first event: a promise is none of them."""
    for records in batches:
        for record in records:
            head = decode_head(record.key)
            if record.offset == offset and head.kind != PartKind.PROMISE:
                yield head.first_event * ROWS_PER_EVENT, record


def _no_group(place: str, cause: str) -> SourceError:
    return SourceError(
        "no transaction begins at this place of the binlog",
        remedy="`applier inspect` shows where each transaction begins",
        kind="position",
        at=place,
        cause=cause,
    )
