"""The kit of a changefeed's topics: TSOs, offsets of partitions, and the timestamps of dumps.

TiDB shows its TSO where MySQL shows the position in a binlog whose name is ``tidb-binlog``. A position in any other binlog is no TSO.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Final

from applier.model.errors import ConfigError, ProtocolError, Remedy, SourceError
from applier.model.position import MAX_TS, NO_TS, Offset, RecordPosition, Timeline, Ts
from applier.model.range_report import RangeId
from applier.planner.port import RowLookup
from applier.planner.table_check import UpstreamTables
from applier.selection import EVERYTHING, TableSelection
from applier.sources.claim_check.settings import ClaimCheckSettings
from applier.sources.claim_check.store import FsspecStore
from applier.sources.dump_text import open_text
from applier.sources.formats import DEFAULT, FORMATS
from applier.sources.kafka.client import KafkaSource
from applier.sources.kafka.reader import KafkaRangeReader
from applier.sources.kafka.settings import KafkaSettings
from applier.sources.kit import AskedRecords, ChosenRecords, DeclaredStart, OriginOf, SourceAnswer
from applier.sources.peek import read_whole
from applier.sources.port import Decoder, LogDecoder, Source, ZonedDecoder
from applier.sources.ticdc.foreign_record import RecordProtocol, protocol_of, remedy_of
from applier.sources.ticdc.large_row import REFUSED, WholeRowSources
from applier.sources.ticdc.tso import TSO_TIMELINE, later_by

METADATA_FILES: Final = ("metadata", "metadata.partial")
TIDB_LOG: Final = "tidb-binlog"
HEADER_LINES: Final = 60
"""How far into a file of mysqldump its position is searched."""
OLDEST: Final = 1 << 58
"""A TSO of October 2004: a smaller number is a position in a binlog."""
REMEDY: Final = Remedy("dump.give-tso-of-dump", "Give the TSO of the dump with --start-ts, or make the dump with Dumpling")

# Dumpling and old mydumper: "Log: tidb-binlog", "Pos: 42"; new mydumper: "File = tidb-binlog", "Position = 42", with or without quotes.
_LOG: Final = re.compile(r"^\s*#?\s*(?:Log|File|SOURCE_LOG_FILE)\s*[:=]\s*[\"']?([^\"'\s]*)", re.IGNORECASE | re.MULTILINE)
_POSITION: Final = re.compile(r"^\s*#?\s*(?:Pos|Position|SOURCE_LOG_POS)\s*[:=]\s*[\"']?(\d+)", re.IGNORECASE | re.MULTILINE)
_HEADER: Final = re.compile(r"(?:MASTER|SOURCE)_LOG_FILE\s*=\s*'([^']*)'\s*,\s*(?:MASTER|SOURCE)_LOG_POS\s*=\s*(\d+)", re.IGNORECASE)
_FINISHED: Final = re.compile(r"Finished dump at", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class DumpMoment:
    """A dump's timestamp, and the file that it was read from."""

    start_ts: Ts
    source: Path


def moment_of(directory: Path) -> DumpMoment | None:
    """Return the timestamp of the dump in ``directory``; None if no file tells it. ConfigError: it is wrong, or there are several.

    One file is a dump, too.
    """
    if directory.is_file():
        return of_header(directory)
    if not directory.is_dir():
        raise ConfigError(
            "there is no such dump",
            remedy=Remedy(
                "dump.give-dump-directory-or-file", "Give the directory that Dumpling wrote, or the file of mysqldump or mariadb-dump"
            ),
            directory=directory,
        )
    file = directory / METADATA_FILES[0]
    if file.is_file():
        return _of_metadata(file)
    if (directory / METADATA_FILES[1]).exists():
        raise _unfinished(directory / METADATA_FILES[1])
    found = [moment for path in sorted(directory.glob("*.sql*")) if (moment := of_header(path)) is not None]
    if len({moment.start_ts for moment in found}) > 1:
        raise ConfigError(
            "the directory holds dumps of different times",
            remedy=Remedy("dump.separate-dump-files", "Put each dump into a directory of its own"),
            files=", ".join(f"{moment.source.name}: {moment.start_ts}" for moment in found),
        )
    return found[0] if found else None


def of_header(file: Path) -> DumpMoment | None:
    """Return the timestamp in the header of a file of mysqldump or mariadb-dump; None if there is none."""
    with open_text(file) as lines:
        match = _HEADER.search("\n".join(_headers(lines)))
    return None if match is None else DumpMoment(_checked(match[1], match[2], file), file)


def _headers(lines: Iterable[str]) -> list[str]:
    return list(islice(lines, HEADER_LINES))


def _unfinished(file: Path) -> ConfigError:
    return ConfigError(
        "the dump is not finished: its metadata has no end",
        remedy=Remedy("dump.wait-for-dump", "Wait until the dump has ended, or dump again"),
        file=file,
    )


def _of_metadata(file: Path) -> DumpMoment | None:
    try:
        text = file.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise ConfigError(
            f"the dump's metadata cannot be read: {error.strerror}",
            remedy=Remedy("dump.check-metadata-permissions", "Check its permissions"),
            file=file,
        ) from error
    if _FINISHED.search(text) is None:
        raise ConfigError(
            "the dump is not finished: its metadata has no end",
            remedy=Remedy("dump.wait-for-metadata", "Wait until the dump has ended, or dump again"),
            file=file,
        )
    # Before a part about a replica's own source, which has a position too.
    log, position = _LOG.search(text), _POSITION.search(text)
    if position is None:
        return None
    return DumpMoment(_checked("" if log is None else log[1], position[1], file), file)


def _checked(log: str, position: str, file: Path) -> Ts:
    """Return a position as a TSO; ConfigError if it cannot be one."""
    number = int(position)
    if (log and log != TIDB_LOG) or not OLDEST <= number <= MAX_TS:
        message = f"the dump is not of TiDB: its position {position} is in {log or 'an unknown log'}, and not a TSO"
        raise ConfigError(message, remedy=REMEDY, file=file)
    return Ts(number)


_OF_A_LOG: Final = "--position and --gtid are for a binlog, and the source is Kafka"
_OF_TOPICS: Final = Remedy("cli.use-stream-or-ts", "Use --stream and --offset, or --ts")


@dataclass(frozen=True, slots=True)
class ChangefeedKit:
    """Implements ``SourceKit``."""

    settings: KafkaSettings
    server = "Kafka"
    checks = "applier.check.kafka"
    changelog = "applier.dataframe.source:ChangelogSource"
    has_partitions = True
    may_begin_empty = True

    def with_patience(self, seconds: float) -> "ChangefeedKit":
        """Return the kit of brokers that are given up after so long without an answer."""
        return ChangefeedKit(replace(self.settings, unreachable_after_s=seconds))

    def open(
        self, decoder: Decoder | None = None, zone_of_sessions: Callable[[], str] = str, tables: UpstreamTables | None = None
    ) -> KafkaSource:
        """Make the source."""
        return KafkaSource(self.settings, decoder or self.decoder(), TSO_TIMELINE, zone_of_sessions, tables)

    def decoder(
        self, selection: TableSelection = EVERYTHING, claim_check: ClaimCheckSettings | None = None, lookup: RowLookup | None = None
    ) -> Decoder:
        """Return the decoder; the storage of large rows is examined."""
        store = None if claim_check is None else FsspecStore(claim_check)
        if store is not None:
            store.check()
        made = FORMATS[self.settings.protocol](WholeRowSources(claims=store, lookup=lookup), selection)
        made = made.in_zone(self.settings.time_zone) if isinstance(made, ZonedDecoder) else made
        return made.in_log(KafkaRangeReader(self.settings)) if isinstance(made, LogDecoder) else made

    def upstream_tables(self, selection: TableSelection, state: str | None = None) -> None:
        """Nothing: Kafka is not upstream."""
        del selection, state

    def timeline(self, state: str | None = None) -> Timeline:
        """A TSO holds its time."""
        del state
        return TSO_TIMELINE

    def ts(self, text: str, state: str | None) -> Ts:
        """Read the digits of a TSO."""
        del state
        if not text.isdecimal():
            raise ConfigError(
                f"{text!r} is a position in a binlog, and the source is Kafka",
                remedy=Remedy("cli.give-tso", "Give a TSO, such as 458173202432000001"),
            )
        return Ts(int(text))

    def record_position(self, position: str | None, gtid: str | None, state: str | None) -> tuple[RecordPosition, Timeline]:
        """Refuse: a record is named by its stream and its offset."""
        del position, gtid, state
        raise ConfigError(_OF_A_LOG, remedy=_OF_TOPICS)

    def records(self, asked: AskedRecords) -> ChosenRecords:
        """Return an offset and a range of TSOs."""
        if asked.position or asked.gtid:
            raise ConfigError(_OF_A_LOG, remedy=_OF_TOPICS)
        if asked.start is not None and not (asked.start.isascii() and asked.start.isdecimal()):
            raise ConfigError(
                f"--from is not an offset: {asked.start!r}",
                remedy=Remedy("cli.write-whole-number", "Write a whole number, for instance --from 157"),
            )
        return ChosenRecords(
            None if asked.start is None else Offset(int(asked.start)), since=_ts_of(asked.since_ms), until=_ts_of(asked.until_ms)
        )

    def origin_of(self, source: Source) -> OriginOf:
        """Return nothing for any record: an event says its own transaction."""
        del source
        return lambda _: None

    def refuse_start_ts(self, start_ts: Ts | None) -> None:
        """Accept a TSO."""

    @property
    def names_start(self) -> bool:
        """False: ``start_ts`` says it all."""
        return False

    @property
    def begins_with_copy(self) -> bool:
        """False: topics do not have upstream's rows."""
        return False

    def copy_upstream(self, selection: TableSelection) -> None:
        """Nothing: Kafka is not upstream."""
        del selection

    def start_of_dump(self, directory: Path, given: Ts | None, configured: Ts = NO_TS) -> tuple[Ts, Timeline]:
        """Return the TSO that is given, or that the dump says."""
        moment = moment_of(directory) if given is None else None
        start_ts = given if given is not None else None if moment is None else moment.start_ts
        if start_ts is None:
            raise ConfigError(
                "the dump does not say its timestamp",
                remedy=Remedy(
                    "dump.give-start-ts-of-dump",
                    "Give it with --start-ts TSO: the `Pos` of Dumpling's file metadata, or tidb_snapshot if you dumped with it",
                ),
                directory=directory,
            )
        if configured not in {NO_TS, start_ts}:
            raise ConfigError(
                "source.start_ts is not the timestamp of the dump",
                remedy=Remedy("dump.remove-source-start-ts", "Remove source.start_ts: the dump's is used"),
                configured=configured,
                dump=start_ts,
            )
        return start_ts, TSO_TIMELINE

    def declared_start(self, given: Ts | None, configured: Ts) -> DeclaredStart:
        """Return the TSO that is given or configured."""
        if given is not None and configured not in {NO_TS, given}:
            raise ConfigError(
                "--start-ts and source.start_ts differ",
                remedy=Remedy("dump.remove-start-ts-or-dump", "Remove one of them"),
                configured=configured,
                given=given,
            )
        start_ts = configured if given is None else given
        if not start_ts:
            raise ConfigError(
                "the position at which the sink equals upstream is missing",
                remedy=Remedy("dump.give-start-ts-or-dump", "Give its TSO with --start-ts, or the directory of the dump"),
            )
        return DeclaredStart(start_ts, "", TSO_TIMELINE)

    @property
    def dumped_ddl(self) -> None:
        """None: a dump of TiDB has DDLs as a changefeed has them."""
        return

    @property
    def start_at_dump(self) -> None:
        """None: a start is a TSO."""
        return

    def extent(self) -> None:
        """Return None: there are several streams."""
        return

    @staticmethod
    def is_position(_text: str) -> bool:
        """Return False: a TSO is digits."""
        return False

    @staticmethod
    def executed(_state: str) -> None:
        """Return None: nothing is stored of a changefeed."""
        return

    @staticmethod
    def timeline_of(state: str | None) -> Timeline | None:
        """Return that of TSOs for a replica without a stored state."""
        return TSO_TIMELINE if state is None else None

    def view(self) -> "TopicsView":
        """Return the ends of the partitions."""
        return TopicsView(self.settings)


class TopicsView:
    """Implements ``SourceView``: a TSO holds its time, so nothing but the ends has to be asked."""

    def __init__(self, settings: KafkaSettings) -> None:
        self._source = KafkaSource(settings, FORMATS[settings.protocol](REFUSED, EVERYTHING), TSO_TIMELINE, str)

    def stored(self, state: str | None) -> SourceAnswer:
        """Return the timeline alone."""
        del state
        return SourceAnswer(None, TSO_TIMELINE)

    def ask(self, state: str | None) -> SourceAnswer:
        """Return the ends of the partitions."""
        del state
        return SourceAnswer(self._source.listing(), TSO_TIMELINE)

    def close(self) -> None:
        """Close the connection."""
        self._source.close()


def _ts_of(time_ms: int | None) -> Ts | None:
    """Return the least TSO of a millisecond."""
    return None if time_ms is None else later_by(NO_TS, time_ms)


SHOWN_STREAMS: Final = 8
"""How many partitions are looked at for a record."""


def unread_protocol(shown: RecordProtocol, topics: Iterable[str]) -> ProtocolError:
    """Return the error for topics whose records have a protocol that no format reads."""
    return ProtocolError(f"the records are {shown.name}", remedy=remedy_of(shown), topics=", ".join(topics))


def shown_protocol(settings: KafkaSettings) -> RecordProtocol | None:
    """Return what the newest records of the topics seem to be; None: no record, of no known protocol, or Kafka does not answer."""
    try:
        with KafkaSource(settings, FORMATS[DEFAULT](REFUSED, EVERYTHING), TSO_TIMELINE, str) as source:
            held = sorted((stream, extent) for stream, extent in source.listing().extents.items() if extent.end > extent.earliest)
            newest = [RangeId(stream, Offset(extent.end - 1), extent.end) for stream, extent in held[:SHOWN_STREAMS]]
            for _, records in read_whole(source.reader, newest):
                for record in records:
                    found = protocol_of(record.key, record.value)
                    if found is not None:
                        return found
    except SourceError:
        return None
    return None
