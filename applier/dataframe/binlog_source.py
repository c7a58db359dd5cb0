"""The data source ``binlog``: the events of a MySQL or MariaDB server as rows, a task for each file. A row is as in ``source``."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from applier.dataframe.changelog import schema_text
from applier.dataframe.options import BINLOG, EARLIEST, LATEST, BinlogOptions, read_binlog_options
from applier.dataframe.reading import RECREATED_REMEDY, RESTART, RangePartition, RangeRows
from applier.dataframe.source import changelog_rows
from applier.dataframe.table_columns import columns_of
from applier.model.errors import ConfigError, InvariantViolation, Remedy, SourceError
from applier.model.failure import FailureKind
from applier.model.position import Offset
from applier.model.range_report import RangeId
from applier.sources.kit import LogExtent, SourceKit

BINLOG_FORMS: Final = Remedy(
    "dataframe.write-position-in-binlog",
    "Write earliest, latest, a time such as 2025-06-01T12:00:00Z, or a position such as mariadb-bin.000042:4",
)
SECOND_MS: Final = 1_000


def extent_of(options: BinlogOptions) -> LogExtent:
    """Ask the server what its log holds. SourceError: it does not answer, or writes none."""
    extent = options.kit.extent()
    if extent is None:
        raise InvariantViolation("the format binlog reads a source that is not a log")
    return extent


def fixed_range(options: BinlogOptions, log: LogExtent) -> RangeId:
    """Return the range from ``start`` to ``end``. ConfigError, SourceError (retention)."""
    start = position_of("start", options.start, options.kit, log)
    end = position_of("end", options.end, options.kit, log)
    return RangeId(log.stream, start, max(start, end))


def position_of(name: str, text: str, kit: SourceKit, log: LogExtent) -> Offset:
    """Return the position that an option names."""
    if text.lower() == EARLIEST:
        return log.earliest
    if text.lower() == LATEST:
        return log.end
    if (given := log.offset(text)) is not None:
        return _held(name, given, log)
    time_ms = _time_ms(name, text)
    with kit.open() as source:
        return Offset(source.times.offsets_at([log.stream], time_ms)[log.stream])


def _held(name: str, place: Offset, log: LogExtent) -> Offset:
    if log.earliest <= place <= log.end:
        return place
    raise SourceError(
        f"the option {name} names a position that the server does not hold",
        remedy=Remedy("dataframe.show-binlog-extent", f"It holds the binlog from {log.text(log.earliest)} to {log.text(log.end)}"),
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


class BinlogChangelogSource(DataSource):
    """Gives the changelog's schema and its readers. Its range is fixed by ``schema``, when the DataFrame is made."""

    _fixed: tuple[LogExtent, RangeId] | None = None

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return BINLOG.name

    def schema(self) -> str:
        """Return the columns; the columns of the images, with the option ``table``, are found in the rows."""
        options = self._read()
        log = extent_of(options)
        whole = fixed_range(options, log)
        # Kept with this object, which Spark pickles now: each action on the DataFrame reads the same events.
        self._fixed = log, whole
        columns = options.columns
        if options.table is not None and columns is None:
            columns = columns_of(options.table, log.reader(), options.kit.decoder(), list(log.parts(whole)))
        return schema_text(log.columns, columns)

    def reader(self, schema: StructType) -> "BinlogBatchReader":
        """Return the reader of a DataFrame."""
        options = self._read()
        if self._fixed is None:
            # The schema was given by the caller.
            log = extent_of(options)
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
        log = extent_of(options)
        return BinlogStreamReader(_rows(options, schema, log), options)

    def _read(self) -> BinlogOptions:
        return read_binlog_options(self.options)


def _rows(options: BinlogOptions, schema: StructType, log: LogExtent) -> RangeRows:
    rows = changelog_rows(BINLOG, options, schema, options.kit.decoder(), log.columns)
    return RangeRows(log.reader(), rows, schema)


@dataclass
class BinlogBatchReader(DataSourceReader):
    """Reads the events of a DataFrame: each action reads the same ones."""

    rows: RangeRows
    options: BinlogOptions
    log: LogExtent
    whole: RangeId

    def partitions(self) -> Sequence[InputPartition]:
        """Return the tasks. SourceError if another server answers: it has other events at these positions."""
        _check_identity(self.log.identity, extent_of(self.options), RECREATED_REMEDY)
        return [RangePartition(one) for one in self.log.parts(self.whole)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Yield the rows of one task."""
        return self.rows.of(partition)


class BinlogStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads what has come since the last batch. A position is ``{"server": …, "file": …, "position": …}``."""

    def __init__(self, rows: RangeRows, options: BinlogOptions) -> None:
        self._rows, self._options = rows, options
        self._target: Offset | None = None

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - PySpark's name
        """Return the position where a new query begins."""
        log = self._log()
        return _document(position_of("start", self._options.start, self._options.kit, log), log)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - PySpark's name
        """Return how much a batch reads at most; files are counted here."""
        return ReadAllAvailable()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: ARG002, N802 - PySpark's names
        """Return the position where the next batch ends. SourceError if another server answers."""
        log = self._log()
        _check_identity(start["server"], log, RESTART)
        begin, end = _place(start, log), log.end if self._target is None else min(log.end, self._target)
        if (files := self._options.files_per_batch) is not None:
            end = min(end, log.end_of_files(begin, files))
        return _document(max(begin, end), log)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - PySpark's name
        """Note where the query ends: at what is there now."""
        self._target = self._log().end

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Return the tasks of a batch. SourceError as ``latestOffset``."""
        log = self._log()
        _check_identity(end["server"], log, RESTART)
        return [RangePartition(one) for one in log.parts(RangeId(log.stream, _place(start, log), _place(end, log)))]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Yield the rows of one task."""
        return self._rows.of(partition)

    def _log(self) -> LogExtent:
        return extent_of(self._options)


def _check_identity(known: str, log: LogExtent, remedy: Remedy) -> None:
    if known != log.identity:
        raise SourceError("another server answers than the one that was read", remedy=remedy, kind=FailureKind.RECREATED)


def _document(place: Offset, log: LogExtent) -> dict[str, Any]:
    file, _, position = log.text(place).rpartition(":")
    return {"server": log.identity, "file": file, "position": int(position)}


def _place(document: dict[str, Any], log: LogExtent) -> Offset:
    place = log.offset(f"{document['file']}:{document['position']}")
    if place is None:
        raise InvariantViolation("the checkpoint of the query holds no position", **document)
    return place
