"""Where the schema of a row is found: in what was read of its range, in what the process knows, else in the log around the row.

Rows name a version of their table; the schema itself comes in BOOTSTRAP and DDL messages, in each partition of the topic
(canal_json_and_simple.md 4.2, 6). A range may begin after it, and a restart does. The log still has it, so the log is asked: nothing about
schemas is stored or sent between tasks. What a version of a table is, is the same wherever it is found, so a range that is read again by
another process gives the same rows.

Two tables may have had one name and one version: one CREATE gave several tables one version, and RENAME has moved a name from one to
another. The id in the row tells them apart. That of a partitioned table is the id of its partition: such rows are of the table whose schema
was sent last before them.

Backwards: by what TiCDC sends, a schema comes at most ``HORIZON_MS`` before a row that needs it. Forwards: where an event filter holds back
the DDL that made the version, the schema follows its first rows. What was searched once is not read again by the process.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from applier.model.errors import ProtocolError, Remedy, SourceError
from applier.model.events import TableName
from applier.model.failure import FailureKind
from applier.model.position import Offset, PartitionExtent, RecordPosition, Stream
from applier.model.range_report import RangeId
from applier.sources.port import LogReader, Record
from applier.sources.simple.message import AVRO_ROW, SimpleMessage, read_message
from applier.sources.simple.table_version import TableVersion, VersionKey, WireTable, table_version

HORIZON_MS: Final = 35 * 60_000
"""TiCDC forgets a table that has been silent for 30 minutes, and looks for such tables every 30 s: the next row has a schema before it. The
schema of any other table is sent again every 120 s, and TiCDC looks for these every 5 s."""
PATIENCE_MS: Final = 130_000
"""How long a row may wait for a schema after it, by the times at which messages were made: 120 s and 5 s, and some for a slow sender."""
FIRST_PIECE: Final = 1_000
GROWTH: Final = 8
"""Most schemas are near: the log is read in pieces, each larger than the one before."""
MAX_VERSIONS: Final = 20_000
"""Versions that a process keeps of one log: 78 MiB with 20 columns each. Then it forgets all of them, and where it has searched."""

SEND: Final = Remedy(
    "simple.send-schemas",
    "Let the changefeed send schemas: send-bootstrap-interval-in-sec and send-bootstrap-in-msg-count greater than 0, "
    "send-bootstrap-to-all-partition = true. If it does: an event filter holds back the DDL that made this version, or a RENAME moved the "
    "table to another topic. In any case, pause and resume the changefeed: it sends the schema of a table again before its next row",
)


class Searched(NamedTuple):
    """Offsets ``first`` <= offset < ``end`` that were searched, and when their first and last messages were made (0: not known)."""

    first: int
    end: int
    oldest_ms: int
    newest_ms: int

    def joined(self, other: "Searched") -> "Searched":
        """Return both together; ``other``, if there is a gap between them."""
        if self.end < other.first or other.end < self.first:
            return other
        low, high = min(self, other), max(self, other, key=lambda one: one.end)
        return Searched(low.first, high.end, low.oldest_ms, high.newest_ms)

    def without(self, first: int, end: int) -> list[tuple[int, int]]:
        """Return the parts of some offsets that were not searched."""
        if self.end <= first or end <= self.first:
            return [(first, end)]
        parts = ((first, self.first), (self.end, end))
        return [(start, stop) for start, stop in parts if start < stop]


@dataclass(slots=True)
class KnownVersions:
    """What a process knows of one log. ``searched``: the offsets of each stream whose schemas are all among ``versions``.

    ``versions``: by the id of the table, too. ``partitions``: the table of a row, by the id in the row, where that is not the table's.
    ``wanted``: what is searched for now, and is not forgotten.
    """

    versions: dict[VersionKey, dict[int, TableVersion]] = field(default_factory=dict)
    partitions: dict[tuple[VersionKey, int], TableVersion] = field(default_factory=dict)
    searched: dict[Stream, Searched] = field(default_factory=dict)
    wanted: VersionKey | None = None
    times_forgotten: int = 0

    def learn(self, message: SimpleMessage) -> TableVersion | None:
        """Take in the schemas of a message; return the one that holds after it. ProtocolError (column_type)."""
        if message.schema_before is not None:
            self._added(message.schema_before)
        return None if message.schema is None else self._added(message.schema)

    def table(self, key: VersionKey, table_id: int) -> TableVersion | None:
        """Return the schema of rows with this id, if it is known which of the tables of one name and version they are of."""
        return self.versions.get(key, {}).get(table_id) or self.partitions.get((key, table_id))

    def keep_partition(self, key: VersionKey, table_id: int, version: TableVersion) -> None:
        """Remember the table of a partition."""
        if len(self.partitions) >= MAX_VERSIONS:
            self.partitions.clear()
        self.partitions[key, table_id] = version

    def _added(self, wire: WireTable) -> TableVersion:
        key = VersionKey.of(TableName(wire.schema, wire.table), wire.version)
        found = self.versions.get(key, {}).get(wire.tableID)
        if found is not None:
            return found
        if len(self.versions) >= MAX_VERSIONS:
            kept = {wanted: found for wanted, found in self.versions.items() if wanted == self.wanted}
            self.versions.clear()
            self.versions.update(kept)
            self.partitions.clear()
            self.searched.clear()
            self.times_forgotten += 1
        found = self.versions.setdefault(key, {})[wire.tableID] = table_version(wire)
        return found


_known: Final[dict[str, KnownVersions]] = {}
"""By the name of the log."""
MAX_LOGS: Final = 64


def known_versions(log: LogReader | None) -> KnownVersions:
    """Return what the process knows of a log; an empty one without a log."""
    if log is None:
        return KnownVersions()
    found = _known.get(log.log_name)
    if found is None:
        if len(_known) >= MAX_LOGS:
            _known.clear()
        found = _known[log.log_name] = KnownVersions()
    return found


class SchemaSearch:
    """Finds the schemas of the rows of one stream. ``log``: None, only what ``learn`` was given is known.

    ``waits``: a schema that may still come is an error that passes; else it is missing.
    """

    def __init__(self, stream: Stream, log: LogReader | None, *, waits: bool = True) -> None:
        self._stream, self._log, self._waits = stream, log, waits
        self._known = known_versions(log)
        self._first: int | None = None
        self._latest: dict[VersionKey, TableVersion] = {}

    def begin(self, offset: int) -> None:
        """Note the first record that is read: everything between it and a row was given to ``learn``."""
        if self._first is None or offset < self._first:
            self._first = offset

    def learn(self, message: SimpleMessage) -> None:
        """Take in the schemas of a message. ProtocolError (column_type)."""
        latest = self._known.learn(message)
        if latest is not None:
            self._latest[latest.key] = latest

    def known(self, message: SimpleMessage) -> TableVersion | None:
        """Return the schema of a row if nothing has to be read for it."""
        return self._known.table(VersionKey.of(message.name, message.version), message.table_id)

    def version(self, message: SimpleMessage, offset: int) -> TableVersion:
        """Return the schema of a row at ``offset``. ProtocolError (schema), without a position: there is none.

        SourceError of kind "unreachable": it may come, or the log does not answer.
        """
        found = self.known(message)
        if found is not None:
            return found
        key = VersionKey.of(message.name, message.version)
        if key not in self._known.versions and self._log is not None:
            self._known.wanted = key
            self._search(key, offset, message.built_ms, self._log)
        if key not in self._known.versions:
            raise _missing("the schema of the row was not sent", message.version)
        return self.known(message) or self._table_of_partition(key, message, offset)

    def _table_of_partition(self, key: VersionKey, message: SimpleMessage, offset: int) -> TableVersion:
        """Return the table of a row whose id is not a table's: the one whose schema was sent last before it."""
        found = self._latest.get(key)
        if found is None:
            found = self._sent_last(key, offset, message.built_ms) or next(reversed(self._known.versions[key].values()))
            self._latest[key] = found
        # What was read for it may have told the row's own table.
        found = self.known(message) or found
        if message.table_id != found.table_id:
            self._known.keep_partition(key, message.table_id, found)
        return found

    def _sent_last(self, key: VersionKey, offset: int, built_ms: int) -> TableVersion | None:
        """Return the last schema of a name and version before the range; None if there is none in the horizon."""
        if self._log is None:
            return None
        own = self._log.listing().extents.get(self._stream, PartitionExtent(Offset(0), Offset(0)))
        upto = offset if self._first is None else min(offset, self._first)
        for first, end in _backwards(own.earliest, upto):
            found, oldest_ms = None, 0
            for records in _records(self._log, RangeId(self._stream, Offset(first), Offset(end))):
                oldest_ms = oldest_ms or _built_ms(records[0])
                for record in records:
                    learned = _learn(self._known, record)
                    found = learned if learned is not None and learned.key == key else found
            if found is not None or 0 < oldest_ms < built_ms - HORIZON_MS:
                return found
        return None

    def _search(self, key: VersionKey, offset: int, built_ms: int, log: LogReader) -> None:
        extents = log.listing().extents
        own = extents.get(self._stream, PartitionExtent(Offset(0), Offset(0)))
        upto = offset if self._first is None else min(offset, self._first)
        if self._is_behind(key, RangeId(self._stream, own.earliest, Offset(upto)), built_ms, log):
            return
        newest_ms = built_ms
        for first, end in _forwards(offset + 1, own.end):
            found = self._read(RangeId(self._stream, Offset(first), Offset(end)), log)
            if key in self._known.versions:
                return
            newest_ms = max(newest_ms, 0 if found is None else found.newest_ms)
        # Where schemas go to partition 0 only, and where a RENAME has moved the table to another topic: TiCDC continues in the old one.
        for stream, extent in extents.items():
            if stream.partition == 0 and self._is_behind(key, RangeId(stream, extent.earliest, extent.end), built_ms, log):
                return
        if self._waits and newest_ms < built_ms + PATIENCE_MS:
            facts = {"schema": key.schema, "table": key.table, "version": key.version} | RecordPosition(self._stream, Offset(offset)).facts
            raise SourceError("the schema of a row has not come yet", remedy=SEND, kind=FailureKind.UNREACHABLE, **facts)

    def _is_behind(self, key: VersionKey, whole: RangeId, built_ms: int, log: LogReader) -> bool:
        """Search backwards through a range, as far as the horizon; return whether the schema is known now."""
        for first, end in _backwards(whole.start, whole.end):
            found = self._read(RangeId(whole.stream, Offset(first), Offset(end)), log)
            if key in self._known.versions:
                return True
            if found is None or 0 < found.oldest_ms < built_ms - HORIZON_MS:
                return False
        return False

    def _read(self, asked: RangeId, log: LogReader) -> Searched | None:
        """Search a range; return what was searched together with it, None if Kafka has deleted it meanwhile."""
        stream, first, end = asked
        before = self._known.searched.get(stream)
        for start, stop in [(first, end)] if before is None else before.without(first, end):
            forgotten = self._known.times_forgotten
            try:
                now = self._read_part(RangeId(stream, Offset(start), Offset(stop)), log)
            except SourceError as error:
                if error.kind is FailureKind.RETENTION:
                    return None
                raise
            before = now if before is None else before.joined(now)
            if self._known.times_forgotten == forgotten:
                self._known.searched[stream] = before
        return before

    def _read_part(self, range_id: RangeId, log: LogReader) -> Searched:
        first: Record | None = None
        last: Record | None = None
        for records in _records(log, range_id):
            first, last = first or records[0], records[-1]
            for record in records:
                _learn(self._known, record)
        return Searched(range_id.start, range_id.end, _built_ms(first), _built_ms(last))


def _missing(message: str, version: int) -> ProtocolError:
    error = ProtocolError.at(None, "schema", message, version=version)
    error.remedy = SEND
    return error


def _backwards(earliest: int, end: int) -> Iterator[tuple[int, int]]:
    size = FIRST_PIECE
    while end > earliest:
        first = max(earliest, end - size)
        yield first, end
        end, size = first, size * GROWTH


def _forwards(first: int, upto: int) -> Iterator[tuple[int, int]]:
    size = FIRST_PIECE
    while first < upto:
        end = min(upto, first + size)
        yield first, end
        first, size = end, size * GROWTH


def _records(log: LogReader, range_id: RangeId) -> Iterator[Sequence[Record]]:
    for _, found in log.read([range_id]):
        if isinstance(found, SourceError):
            raise found
        if found:
            yield found


def _learn(known: KnownVersions, record: Record) -> TableVersion | None:
    """Take in the schemas of a record, if it is a message that has some. What cannot be read is reported when its range is read."""
    value = record.value
    # Plain rows are nearly all that there is: they are not parsed for this.
    if not value or value[:4] == AVRO_ROW or (value[:1] == b"{" and b"ableSchema" not in value):
        return None
    try:
        return known.learn(read_message(None, value))
    except ProtocolError:
        return None


def _built_ms(record: Record | None) -> int:
    try:
        return 0 if record is None else read_message(record.key, record.value).built_ms
    except ProtocolError:
        return 0
