"""The log as ``applier status`` shows it: where the server writes, and how far a replica is behind. Reads no event."""

import time
from dataclasses import replace

from applier.model.errors import SourceError
from applier.model.failure import FailureKind
from applier.model.position import Listing, Offset, PartitionExtent
from applier.model.remedy import Remedy
from applier.sources.binlog.position import FIRST_POSITION, STREAM, BinlogPosition, file_name
from applier.sources.binlog.server import LogFile, Server, address_of
from applier.sources.binlog.settings import BinlogSettings
from applier.sources.binlog.timeline import StoredTimeline, read_state
from applier.sources.kit import LogStatus, SourceAnswer


class LogView:
    """Implements ``SourceView``. Asks the server at each call; connects when it is first asked."""

    def __init__(self, settings: BinlogSettings) -> None:
        self._address = address_of(settings)
        self._server = Server(settings)

    def stored(self, state: str | None) -> SourceAnswer:
        """Return what a stored state alone tells: position and GTID set, of a replica that has them."""
        found = read_state(state)
        if found is None:
            return SourceAnswer(None, StoredTimeline())
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
        return SourceAnswer(None, StoredTimeline.of(found), status)

    def ask(self, state: str | None) -> SourceAnswer:
        """Return the end of the log too, and how many bytes lie before it. SourceError: no answer, or that of a different server."""
        stored, status = read_state(state), self.stored(state).log
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
        timeline = StoredTimeline.of(stored)
        timeline = replace(timeline, base_name=end.base_name, end=place.number, now_ms=int(time.time() * 1000))
        return SourceAnswer(listing, timeline, status)

    def close(self) -> None:
        """Close the session."""
        self._server.close()


def bytes_between(files: list[LogFile], begin: BinlogPosition, end: BinlogPosition) -> int:
    """Return how many bytes of log lie between two places of one generation. What was purged does not count."""
    sizes = {file.number: file.size for file in files} | {end.file: end.position}
    whole = sum(size for number, size in sizes.items() if begin.file <= number <= end.file)
    return max(0, whole - begin.position)
