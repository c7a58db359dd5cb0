"""Looks rows up in upstream as of a timestamp: many keys per statement, as many as keep what a statement returns small.

Such a row takes megabytes, or some hundred bytes where the changefeed's limit is low: so the number of keys follows the rows.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, TypeVar

import stamina

from applier.model.errors import ApplierError, FatalSinkError, InvariantViolation, SourceError
from applier.model.events import Shape, Value
from applier.model.failure import FailureKind
from applier.model.remedy import Remedy
from applier.mysql.literals import literal_of
from applier.mysql.quoting import quote_table
from applier.planner.port import LookedUpRows
from applier.sinks.mysql.dialect import MAX_KEYS, MysqlDialect
from applier.upstream.failure import is_passing
from applier.upstream.settings import UpstreamSettings
from applier.upstream.snapshot_session import SnapshotSession
from applier.upstream.table_columns import UpstreamTable

T = TypeVar("T")

ATTEMPTS: Final = 5
MAX_WAIT_S: Final = 5.0
FIRST_KEYS: Final = 16
"""Keys of the first statement: nothing is known of the rows yet."""
PART_BYTES: Final = 32 << 20
"""What a statement should return at most; a single row may be larger."""


@dataclass(frozen=True, slots=True)
class TidbRowLookup:
    """Implements ``RowLookup``. Picklable: each task opens its own session, for each snapshot."""

    settings: UpstreamSettings

    def rows(self, shape: Shape, keys: Sequence[Sequence[Value]], ts: int) -> Iterator[LookedUpRows]:
        """Yield the rows in parts; what may pass is retried."""
        reading = _Reading(self.settings, shape, ts)
        first, most = 0, FIRST_KEYS
        try:
            while first < len(keys):
                some = keys[first : first + most]
                found, size = reading.rows_of(some)
                yield found._replace(found=[first + place for place in found.found])
                first += len(some)
                most = max(1, min(MAX_KEYS, PART_BYTES * len(some) // max(1, size), 4 * most))
        finally:
            reading.close()


class _Reading:
    """The reading of rows of one shape, as of one timestamp."""

    def __init__(self, settings: UpstreamSettings, shape: Shape, ts: int) -> None:
        self._settings, self._shape, self._ts = settings, shape, ts
        self._names = [column.name for column in shape.handle_key]
        self._session: SnapshotSession | None = None
        self._table: UpstreamTable | None = None

    def rows_of(self, keys: Sequence[Sequence[Value]]) -> tuple[LookedUpRows, int]:
        """Return the rows of some keys, and how many bytes they took."""
        return self._retried(lambda: self._read(keys))

    def _retried(self, read: Callable[[], T]) -> T:
        for attempt in stamina.retry_context(on=is_passing, attempts=ATTEMPTS, timeout=None, wait_max=MAX_WAIT_S):
            with attempt:
                try:
                    return read()
                except (TypeError, ValueError, AttributeError) as error:
                    # Of a literal, or of a value that was read: never of the wire's own cluster.
                    raise self._other_type() from error
                except SourceError:
                    self._abandon()
                    raise
        message = "retries ended without an outcome"
        raise InvariantViolation(message)

    def _read(self, keys: Sequence[Sequence[Value]]) -> tuple[LookedUpRows, int]:
        if self._session is None:
            self._session = SnapshotSession(self._settings, self._ts)
        table = self._table = self._table or _described(self._session, self._shape)
        key_places = table.places(self._names)
        readers = [column.read for column in table.columns]
        places = {tuple(key): place for place, key in enumerate(keys)}
        found, rows, size = [], [], 0
        for query in _queries(table, key_places, keys, self._session.max_packet_bytes):
            for fetched in self._session.rows(query):
                row = tuple(None if data is None else read(data) for read, data in zip(readers, fetched, strict=True))
                size += sum(len(data) for data in fetched if data is not None)
                # Under the collation of a key column, rows of other keys may be found too.
                place = places.pop(tuple(row[place] for place in key_places), None)
                if place is not None:
                    found.append(place)
                    rows.append(row)
        return LookedUpRows(table.shape_of(self._shape), found, rows), size

    def _other_type(self) -> SourceError:
        message = "a value of upstream's table, or a key, does not fit the type of its column"
        remedy = Remedy("upstream.check-cluster-of-row", "Check that source.upstream is the cluster that the changefeed reads")
        return SourceError(message, remedy=remedy, kind=FailureKind.UPSTREAM, table=str(self._shape.upstream_name), snapshot=self._ts)

    def _abandon(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            session.abandon()

    def close(self) -> None:
        """End the session. What it has read counts, whatever happens to the session now."""
        session, self._session = self._session, None
        if session is None:
            return
        with suppress(ApplierError):
            session.end()


def _described(session: SnapshotSession, shape: Shape) -> UpstreamTable:
    name = shape.upstream_name
    table = quote_table(name.schema, name.table)
    columns, indexes = session.shown(f"SHOW FULL COLUMNS FROM {table}"), session.shown(f"SHOW INDEX FROM {table}")
    handle = {column.name.casefold() for column in shape.handle_key}
    return UpstreamTable.of(name, columns, indexes, handle)


def _queries(table: UpstreamTable, key_places: Sequence[int], keys: Sequence[Sequence[Value]], max_packet_bytes: int) -> Iterator[str]:
    columns = [table.columns[place] for place in key_places]
    functions = [literal_of(column.described, column.shape.mysql_type, is_bytes=column.shape.is_bytes) for column in columns]
    texts = [[function(value) for function, value in zip(functions, key, strict=True)] for key in keys]
    selected = ",".join(column.expression for column in table.columns)
    head = f"SELECT {selected} FROM {quote_table(table.name.schema, table.name.table)} WHERE "  # noqa: S608 - quoted names
    dialect = MysqlDialect(max_packet_bytes=max_packet_bytes)
    try:
        for query, _ in dialect.by_key(head, table.description, [column.shape.name for column in columns], texts):
            yield query
    except FatalSinkError as error:  # a key that no statement can hold
        raise SourceError(
            error.message,
            remedy=Remedy("upstream.raise-max-allowed-packet", "Raise max_allowed_packet of upstream"),
            kind=FailureKind.UPSTREAM,
            **error.facts,
        ) from error
