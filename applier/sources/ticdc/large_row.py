"""Rows that were too large for Kafka, in any format of TiCDC: where the rest of each is found, and what is refused.

``claim-check``: the whole row is an object in a storage, which is read here. ``handle-key-only``: the row stays a placeholder, and is
read from upstream before it is written (``Shape.placeholder``). Without the setting that says where to look, such a row is refused: it is
never applied as if it were whole. What an object holds is the format's: it reads the content, and ``check_claimed`` compares the row with
the one that was announced.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import dropwhile
from typing import Final, Protocol, TypeAlias

from applier.model.errors import SKIP_RECORD, ProtocolError, Remedy, SourceError
from applier.model.events import Event, Image, PlacedRow, RowEvent, RowKind, RowOperation
from applier.model.failure import RecordFault
from applier.model.position import Offset, RecordPosition, Stream
from applier.planner.port import RowLookup
from applier.sources.compiled import intern_shape
from applier.sources.port import Record

RESTORE: Final = Remedy(
    "ticdc.restore-object-or-load-row",
    f"Restore the object in the claim-check storage. Or load the row from upstream, and skip the record: `{SKIP_RECORD}`",
)


class ClaimCheckStore(Protocol):
    """Reads the objects of one changefeed. Frozen and picklable: it crosses to executors with the decoder."""

    def read(self, names: Sequence[str]) -> Iterator[bytes | SourceError]:
        """Yield the content of each object in the order of ``names``, or why there is none; several are read at once, in bounds.

        ProtocolError: the object is missing or too large. Any other SourceError: the storage failed. ConfigError is raised. Called for
        the objects of a few hundred records at most; the caller may close the iterator early.
        """
        ...


def object_name(location: str) -> str:
    """Return the name of the object at ``location``, the storage being configured. ProtocolError (claim_check) if there is none."""
    # The directory is the producer's, and no path from the wire is followed.
    name = location.replace("\\", "/").rpartition("/")[2]
    if name in {"", ".", ".."} or "\0" in name:
        raise ProtocolError.at(None, "claim_check", "the row's claim check names no object", claim_check=location)
    return name


OTHERWISE: Final = (
    "Or raise max-message-bytes of changefeed and topic, set large-message-handle-option to none and let it send the row again. "
    f"Or load the row from upstream, and skip the record: `{SKIP_RECORD}`"
)
STORAGE_REMEDY: Final = Remedy(
    "ticdc.set-claim-check-storage", f"Set source.claim_check.storage to the claim-check-storage-uri of the changefeed. {OTHERWISE}"
)
UPSTREAM_REMEDY: Final = Remedy(
    "ticdc.set-source-upstream", f"Set source.upstream to the address of upstream's TiDB, where such rows are read. {OTHERWISE}"
)


@dataclass(frozen=True, slots=True)
class WholeRowSources:
    """Where large rows are found. ``claims``: the claim-check objects; ``lookup``: upstream's tables. None: nowhere."""

    claims: ClaimCheckStore | None = None
    lookup: RowLookup | None = None


REFUSED: Final = WholeRowSources()
"""Nowhere: each large row is an error that names the setting."""


LocationsOf: TypeAlias = Callable[[Record], Iterable[str]]
"""Gives the locations of the objects of a record, in the order of its events. ProtocolError: it cannot be read."""


class ClaimedObjects:
    """Reads the objects of the records of one range: of some records together, in the order of the records."""

    def __init__(self, stream: Stream, claims: ClaimCheckStore | None, locations_of: LocationsOf) -> None:
        self._stream, self._claims, self._locations_of = stream, claims, locations_of
        self._records: Sequence[Record] = ()
        self._names: Iterator[str] = iter(())
        self._contents: Iterator[bytes | SourceError] = iter(())

    def begin(self, records: Sequence[Record]) -> None:
        """Note the records that are placed now, one after the other: their objects may be read ahead."""
        self._records, self._names = records, iter(())

    def content(self, location: str, offset: int) -> bytes:
        """Return the content of an object of the record at ``offset``.

        ProtocolError, without a position: there is no storage or no such object; SourceError with a position: the storage fails.
        """
        if self._claims is None:
            raise no_storage()
        name = object_name(location)
        if next(self._names, None) != name:
            # The first of these records, or one that is placed alone.
            names = list(dropwhile(name.__ne__, self._names_from(offset))) or [name]
            self._names, self._contents = iter(names[1:]), self._claims.read(names)
        content = next(self._contents)
        if isinstance(content, ProtocolError):
            raise content
        if isinstance(content, SourceError):
            facts = content.facts | RecordPosition(self._stream, Offset(offset)).facts
            raise SourceError(content.message, remedy=content.remedy, **facts) from content
        return content

    def _names_from(self, offset: int) -> Iterator[str]:
        """Yield the names of the objects of a record and the later ones. What cannot be read is reported when it is placed."""
        for record in self._records:
            if record.offset < offset:
                continue
            try:
                names = [object_name(location) for location in self._locations_of(record)]
            except ProtocolError:
                return
            yield from names


def check_claimed(announced: RowEvent, row: RowEvent) -> None:
    """Compare the row of an object with the one that its record announced. ProtocolError (claim_check), without a position."""
    for name in ("commit_ts", "schema", "table", "partition_id"):
        if getattr(announced, name) != getattr(row, name):
            raise differs(f"its {name} differs")
    # Insert or update is not compared: a placeholder's p may be empty where the whole row's is not, and the other way round.
    if (announced.operation is RowOperation.DELETE) != (row.operation is RowOperation.DELETE):
        raise differs("its operation differs")
    if row.operation is RowOperation.DELETE:
        _compare_images(announced.before, row.before)
    else:
        _compare_images(announced.after, row.after)


def _compare_images(announced: Image | None, image: Image | None) -> None:
    """Check that what the placeholder says (handle-key columns) is found in the object."""
    whole = image or {}
    for name, column in (announced or {}).items():
        if whole.get(name) != column:
            raise differs(f"its column {name} differs")


def differs(message: str) -> ProtocolError:
    """Make the error for an object that is not the row that its record announced."""
    return ProtocolError.at(None, "claim_check", message)


def useless(cause: ProtocolError, announced: RowEvent, position: RecordPosition | None) -> ProtocolError:
    """Return the error for an object that cannot be read, or is another row than the one that its record announced."""
    facts = {
        "schema": announced.schema,
        "table": announced.table,
        "commit_ts": announced.commit_ts,
        "claim_check": announced.claim_check,
    }
    message = f"the claim-check object cannot be used: {cause.message}"
    error = ProtocolError.at(position, "claim_check", message, **facts, reason=cause.fault)
    error.remedy = RESTORE
    return error


def as_placeholder(row: PlacedRow) -> PlacedRow:
    """Return a row whose handle key alone was sent, so that the planner has it read from upstream."""
    # The delete of an update that changes the key is complete.
    if row.kind != RowKind.UPSERT:
        return row
    return row._replace(shape=intern_shape(row.shape._replace(placeholder=True)))


def no_storage() -> ProtocolError:
    """Make the error for a claim check without a storage to look in."""
    return _refuse("claim_check", "the row was too large for Kafka: its columns are in claim-check storage", STORAGE_REMEDY)


def no_columns(message: str = "the row was too large for Kafka: only its handle key was sent") -> ProtocolError:
    """Make the error for a row whose key alone was sent, and that is not read from upstream."""
    return _refuse("handle_key_only", message, UPSTREAM_REMEDY)


def _refuse(kind: RecordFault, message: str, remedy: Remedy) -> ProtocolError:
    error = ProtocolError.at(None, kind, message)
    error.remedy = remedy
    return error


def with_claimed_rows(
    events: Sequence[Event], position: RecordPosition, claims: ClaimCheckStore | None, read: Callable[[bytes, RowEvent], RowEvent]
) -> Sequence[Event]:
    """Return the events of one record; a claim-check row is the row that its object holds. ``read``: the format's reader of a content.

    ProtocolError: an object is missing or is another row; no storage is known. SourceError: the storage failed.
    """
    announced = [event for event in events if isinstance(event, RowEvent) and event.claim_check]
    if not announced:
        return events
    if claims is None:
        facts = {"schema": announced[0].schema, "table": announced[0].table, "commit_ts": announced[0].commit_ts}
        error = no_storage()
        located = ProtocolError.at(position, "claim_check", error.message, **facts)
        located.remedy = error.remedy
        raise located
    contents = claims.read([_name(row, position) for row in announced])
    found = iter([_claimed(row, content, position, read) for row, content in zip(announced, contents, strict=True)])
    return [next(found) if isinstance(event, RowEvent) and event.claim_check else event for event in events]


def _claimed(
    row: RowEvent, content: bytes | SourceError, position: RecordPosition, read: Callable[[bytes, RowEvent], RowEvent]
) -> RowEvent:
    if isinstance(content, SourceError):
        raise type(content)(content.message, remedy=content.remedy, **(content.facts | position.facts)) from content
    return read(content, row)


def _name(row: RowEvent, position: RecordPosition) -> str:
    try:
        return object_name(row.claim_check or "")
    except ProtocolError as error:
        raise ProtocolError(error.message, remedy=error.remedy, **(error.facts | position.facts)) from error
