"""From ``start`` and ``end`` to ranges of a binlog: one task for each file, whose beginning is a place where a reader may begin."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Self

from applier.dataframe.options import EARLIEST, LATEST, BinlogOptions
from applier.model.errors import ConfigError, SourceError
from applier.model.position import Offset
from applier.model.range_report import RangeId
from applier.sources.binlog.position import FIRST_POSITION, STREAM, BinlogPosition, split_file_name
from applier.sources.binlog.server import Server
from applier.sources.binlog.settings import BinlogSettings
from applier.sources.factory import open_source

BINLOG_FORMS: Final = "Write earliest, latest, a time such as 2025-06-01T12:00:00Z, or a place such as mariadb-bin.000042:4"
SECOND_MS: Final = 1_000


@dataclass(frozen=True, slots=True)
class LogState:
    """What a server holds now. ``end``: where it writes."""

    identity: str
    base_name: str
    first_file: int
    end: int

    @classmethod
    def of(cls, settings: BinlogSettings) -> Self:
        """Ask the server. SourceError: it does not answer, or writes no binlog."""
        with Server(settings) as server:
            end = server.end()
            if end is None:
                remedy = "Set log_bin in the configuration of the server, and start it again"
                raise SourceError("the server writes no binlog", remedy=remedy, kind="refused")
            first = server.files()[0].number
            return cls(server.identity(), end.base_name, first, BinlogPosition(0, end.number, end.position).number)

    @property
    def earliest(self) -> int:
        """The beginning of its first file."""
        return BinlogPosition(0, self.first_file, FIRST_POSITION).number


def fixed_range(options: BinlogOptions, log: LogState) -> RangeId:
    """Return what lies from ``start`` to ``end``. ConfigError, SourceError (retention)."""
    start = place_of("start", options.start, options.settings, log)
    end = place_of("end", options.end, options.settings, log)
    return RangeId(STREAM, Offset(start), Offset(max(start, end)))


def place_of(name: str, text: str, settings: BinlogSettings, log: LogState) -> int:
    """Return the place that an option names."""
    if text.lower() == EARLIEST:
        return log.earliest
    if text.lower() == LATEST:
        return log.end
    file, colon, position = text.rpartition(":")
    if colon and position.isdecimal() and (found := _number_of(file)) is not None:
        return _held(name, BinlogPosition(0, found, int(position)).number, log)
    time_ms = _time_ms(name, text)
    with open_source(settings) as source:
        return source.offsets_at_time([STREAM], time_ms)[STREAM]


def by_file(whole: RangeId) -> Iterator[RangeId]:
    """Yield the parts of a range, one for each file; nothing of an empty one."""
    _, start, end = whole
    while start < end:
        at = BinlogPosition.of(start)
        following = BinlogPosition(at.generation, at.file + 1, FIRST_POSITION).number
        yield RangeId(STREAM, Offset(start), Offset(min(following, end)))
        start = Offset(following)


def limited_to_files(start: int, end: int, at_most: int | None) -> int:
    """Return where a batch ends that reads at most so many files."""
    if at_most is None:
        return end
    at = BinlogPosition.of(start)
    return min(end, BinlogPosition(at.generation, at.file + at_most, FIRST_POSITION).number)


def _number_of(file: str) -> int | None:
    try:
        return split_file_name(file)[1]
    except ValueError:
        return None


def _held(name: str, place: int, log: LogState) -> int:
    if log.earliest <= place <= log.end:
        return place
    held = f"{BinlogPosition.of(log.earliest).text(log.base_name)} to {BinlogPosition.of(log.end).text(log.base_name)}"
    raise SourceError(
        f"the option {name} names a place that the server does not hold", remedy=f"It holds the binlog from {held}", kind="retention"
    )


def _time_ms(name: str, text: str) -> int:
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        raise ConfigError(f"the option {name} cannot be read: {text!r}", remedy=BINLOG_FORMS) from None
    if when.tzinfo is None:
        raise ConfigError(f"the option {name} has no offset from UTC: {text!r}", remedy=BINLOG_FORMS)
    return int(when.timestamp()) * SECOND_MS
