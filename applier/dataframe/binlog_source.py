"""The data source ``binlog``: the events of a MySQL or MariaDB server as rows, a task for each file. A row is as in ``source``."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Self

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from applier.dataframe.changelog import schema_text
from applier.dataframe.extent import RESTART
from applier.dataframe.options import BINLOG, EARLIEST, LATEST, BinlogOptions, read_binlog_options
from applier.dataframe.position_columns import BinlogColumns
from applier.dataframe.reading import RECREATED_REMEDY, RangePartition, RangeRows
from applier.dataframe.source import changelog_rows
from applier.dataframe.table_columns import columns_of
from applier.model.errors import ConfigError, SourceError
from applier.model.failure import FailureKind
from applier.model.position import Offset
from applier.model.range_report import RangeId
from applier.model.remedy import Remedy
from applier.sources.binlog.decoder import BinlogDecoder
from applier.sources.binlog.position import FIRST_POSITION, STREAM, BinlogPosition, split_file_name
from applier.sources.binlog.reader import BinlogRangeReader
from applier.sources.binlog.server import Server
from applier.sources.binlog.settings import BinlogSettings
from applier.sources.factory import open_source

BINLOG_FORMS: Final = Remedy(
    "dataframe.write-position-in-binlog",
    "Write earliest, latest, a time such as 2025-06-01T12:00:00Z, or a position such as mariadb-bin.000042:4",
)
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
                remedy = Remedy("dataframe.set-log-bin", "Set log_bin in the configuration of the server, and start it again")
                raise SourceError("the server writes no binlog", remedy=remedy, kind=FailureKind.REFUSED)
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
    """Return the position that an option names."""
    if text.lower() == EARLIEST:
        return log.earliest
    if text.lower() == LATEST:
        return log.end
    file, colon, position = text.rpartition(":")
    if colon and position.isdecimal() and (found := _number_of(file)) is not None:
        return _held(name, BinlogPosition(0, found, int(position)).number, log)
    time_ms = _time_ms(name, text)
    with open_source(settings) as source:
        return source.times.offsets_at([STREAM], time_ms)[STREAM]


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
        f"the option {name} names a position that the server does not hold",
        remedy=Remedy("dataframe.show-binlog-extent", f"It holds the binlog from {held}"),
        kind=FailureKind.RETENTION,
    )


def _time_ms(name: str, text: str) -> int:
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        raise ConfigError(f"the option {name} cannot be read: {text!r}", remedy=BINLOG_FORMS) from None
    if when.tzinfo is None:
        raise ConfigError(f"the option {name} has no offset from UTC: {text!r}", remedy=BINLOG_FORMS)
    return int(when.timestamp()) * SECOND_MS


DECODER: Final = BinlogDecoder()


class BinlogChangelogSource(DataSource):
    """Gives the changelog's schema and its readers. Its range is fixed by ``schema``, when the DataFrame is made."""

    _fixed: tuple[LogState, RangeId] | None = None

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return BINLOG.name

    def schema(self) -> str:
        """Return the columns; the columns of the images, with the option ``table``, are found in the rows."""
        options = self._read()
        log = LogState.of(options.settings)
        whole = fixed_range(options, log)
        # Kept with this object, which Spark pickles now: each action on the DataFrame reads the same events.
        self._fixed = log, whole
        columns = options.columns
        if options.table is not None and columns is None:
            columns = columns_of(options.table, _reader(options, log), DECODER, list(by_file(whole)))
        return schema_text(BinlogColumns(log.base_name), columns)

    def reader(self, schema: StructType) -> "BinlogBatchReader":
        """Return the reader of a DataFrame."""
        options = self._read()
        if self._fixed is None:
            # The schema was given by the caller.
            log = LogState.of(options.settings)
            self._fixed = log, fixed_range(options, log)
        log, whole = self._fixed
        return BinlogBatchReader(_rows(options, schema, log), options, log, whole)

    def streamReader(self, schema: StructType) -> "BinlogStreamReader":  # noqa: N802 - PySpark's name
        """Return the reader of a streaming query."""
        options = self._read()
        if options.end != LATEST:
            raise ConfigError(
                "a streaming query has no end",
                remedy=Remedy("dataframe.remove-end-of-binlog-stream", "Remove the option end, or use spark.read"),
            )
        log = LogState.of(options.settings)
        return BinlogStreamReader(_rows(options, schema, log), options)

    def _read(self) -> BinlogOptions:
        return read_binlog_options(self.options)


def _reader(options: BinlogOptions, log: LogState) -> BinlogRangeReader:
    return BinlogRangeReader(options.settings, log.base_name, {}, log.identity)


def _rows(options: BinlogOptions, schema: StructType, log: LogState) -> RangeRows:
    rows = changelog_rows(BINLOG, options, schema, DECODER, BinlogColumns(log.base_name))
    return RangeRows(_reader(options, log), rows, schema)


@dataclass
class BinlogBatchReader(DataSourceReader):
    """Reads the events of a DataFrame: each action reads the same ones."""

    rows: RangeRows
    options: BinlogOptions
    log: LogState
    whole: RangeId

    def partitions(self) -> Sequence[InputPartition]:
        """Return the tasks. SourceError if another server answers: it has other events at these positions."""
        _check_identity(self.log.identity, LogState.of(self.options.settings), RECREATED_REMEDY)
        return [RangePartition(one) for one in by_file(self.whole)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Yield the rows of one task."""
        return self.rows.of(partition)


class BinlogStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads what has come since the last batch. A position is ``{"server": …, "file": …, "position": …}``."""

    def __init__(self, rows: RangeRows, options: BinlogOptions) -> None:
        self._rows, self._options = rows, options
        self._target: int | None = None

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - PySpark's name
        """Return the position where a new query begins."""
        log = self._log()
        return _document(place_of("start", self._options.start, self._options.settings, log), log)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - PySpark's name
        """Return how much a batch reads at most; files are counted here."""
        return ReadAllAvailable()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: ARG002, N802 - PySpark's names
        """Return the position where the next batch ends. SourceError if another server answers."""
        log = self._log()
        _check_identity(start["server"], log, RESTART)
        end = log.end if self._target is None else min(log.end, self._target)
        return _document(max(_place(start), limited_to_files(_place(start), end, self._options.files_per_batch)), log)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - PySpark's name
        """Note where the query ends: at what is there now."""
        self._target = self._log().end

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Return the tasks of a batch. SourceError as ``latestOffset``."""
        _check_identity(end["server"], self._log(), RESTART)
        return [RangePartition(one) for one in by_file(RangeId(STREAM, Offset(_place(start)), Offset(_place(end))))]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Yield the rows of one task."""
        return self._rows.of(partition)

    def _log(self) -> LogState:
        return LogState.of(self._options.settings)


def _check_identity(known: str, log: LogState, remedy: Remedy) -> None:
    if known != log.identity:
        raise SourceError("another server answers than the one that was read", remedy=remedy, kind=FailureKind.RECREATED)


def _document(place: int, log: LogState) -> dict[str, Any]:
    file, _, position = BinlogPosition.of(place).text(log.base_name).rpartition(":")
    return {"server": log.identity, "file": file, "position": int(position)}


def _place(document: dict[str, Any]) -> int:
    return BinlogPosition(0, split_file_name(document["file"])[1], document["position"]).number
