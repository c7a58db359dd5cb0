"""The log as ``applier status`` shows it: where the server writes, and how far a replica is behind. Reads no event."""

import time
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Self

from applier.model.errors import SourceError
from applier.model.failure import FailureKind
from applier.model.position import Listing, Offset, PartitionExtent
from applier.model.remedy import Remedy
from applier.sources.binlog.position import FIRST_POSITION, STREAM, BinlogPosition, file_name
from applier.sources.binlog.server import LogFile, Server, address_of
from applier.sources.binlog.settings import BinlogSettings
from applier.sources.binlog.timeline import StoredTimeline, read_state


@dataclass(frozen=True, slots=True, kw_only=True)
class LogStatus:
    """Where a replica stands in the log of its primary. ``end`` and ``behind_bytes`` are None while the server does not answer.

    ``oldest_file``: the first file that the replica still reads. That is not the one of its position while XA transactions are prepared in
    earlier files and not committed, and the sink does not keep them: ``prepared`` of them.
    """

    primary: str
    position: str
    gtid_set: str
    end: str | None = None
    behind_bytes: int | None = None
    oldest_file: str = ""
    prepared: int = 0


class LogView:
    """Asks the server at each call; connects when it is first asked."""

    def __init__(self, settings: BinlogSettings) -> None:
        self._address = address_of(settings)
        self._server = Server(settings)

    def stored(self, state: str | None) -> tuple[LogStatus | None, StoredTimeline]:
        """Return what a stored state alone tells. None: the replica has no place yet."""
        found = read_state(state)
        if found is None:
            return None, StoredTimeline()
        position = BinlogPosition.of(found.place).text(found.base_name)
        needed = [place for xid, place in found.prepared.items() if xid not in found.kept]
        first = BinlogPosition.of(min([found.place, *needed]))
        status = LogStatus(
            primary=self._address,
            position=position,
            gtid_set=found.gtid_set,
            oldest_file=file_name(found.base_name, first.file),
            prepared=len(needed),
        )
        return status, StoredTimeline.of(found)

    def asked(self, state: str | None) -> tuple[Listing, LogStatus | None, StoredTimeline]:
        """Return what the server adds. SourceError: it does not answer, or a different server does."""
        stored, status, timeline = read_state(state), *self.stored(state)
        if stored is not None and self._server.identity() != stored.server:
            raise SourceError(
                "another server answers than the one that the replica has followed",
                remedy=Remedy(
                    "binlog.accept-found-position",
                    "A run finds its place there by its GTID set. If it is the wrong server, correct source.url",
                ),
                kind=FailureKind.OTHER_SERVER,
                address=self._address,
            )
        end, files = self._server.end(), self._server.files()
        if end is None or not files:
            raise SourceError(
                "the server writes no binlog",
                remedy=Remedy("binlog.start-with-log-bin", "Start it with log_bin"),
                kind=FailureKind.REFUSED,
                address=self._address,
            )
        generation = 0 if stored is None else stored.generation
        place = BinlogPosition(generation, end.number, end.position)
        earliest = BinlogPosition(generation, files[0].number, FIRST_POSITION)
        listing = Listing({STREAM: PartitionExtent(Offset(earliest.number), Offset(place.number))})
        if stored is not None and status is not None:
            behind = bytes_between(files, BinlogPosition.of(stored.place), place)
            status = replace(status, end=place.text(end.base_name), behind_bytes=behind)
        return listing, status, replace(timeline, base_name=end.base_name, end=place.number, now_ms=int(time.time() * 1000))

    def close(self) -> None:
        """Close the session."""
        self._server.close()

    def __enter__(self) -> Self:
        """Use as a context manager."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Close."""
        self.close()


def bytes_between(files: list[LogFile], begin: BinlogPosition, end: BinlogPosition) -> int:
    """Return how many bytes of log lie between two places of one generation. What was purged does not count."""
    sizes = {file.number: file.size for file in files} | {end.file: end.position}
    whole = sum(size for number, size in sizes.items() if begin.file <= number <= end.file)
    return max(0, whole - begin.position)
