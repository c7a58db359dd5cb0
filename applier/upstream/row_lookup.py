"""Looks rows up in upstream at a timestamp: many keys per statement, as many as keep what a statement returns small.

Such a row takes megabytes, or a few hundred bytes where the changefeed's limit is low: so the number of keys follows the rows. Columns are
selected so that the values of the wire come exactly. Servers print a FLOAT with six digits, an ENUM as its label, a BIT as bytes. The wire
has numbers (open_protocol.md 2.6): they are cast.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, TypeVar

import stamina

from applier.model.errors import ApplierError, InvariantViolation, NeedsOperator, Remedy, SourceError
from applier.model.events import STRING_TYPES, ColumnShape, KnownKeys, Shape, TableName, Value
from applier.model.failure import FailureKind
from applier.mysql.catalogue import labels_of
from applier.mysql.float32 import shortest
from applier.mysql.keyed_statements import MAX_KEYS, Cutter, by_key
from applier.mysql.literals import literal_of
from applier.mysql.names import quote_identifier, quote_table
from applier.planner.port import ColumnDescription, LookedUpRows, TableDescription
from applier.upstream.settings import UpstreamSettings
from applier.upstream.snapshot_session import SnapshotSession, is_passing

Read: TypeAlias = Callable[[bytes], Value]
Shown: TypeAlias = Mapping[str, Any]
"""A row of a SHOW statement, by column name in upper case."""

ENUM, SET, BIT, FLOAT, DOUBLE = 247, 248, 16, 4, 5
_TYPES: Final[Mapping[str, int]] = {
    "tinyint": 1, "smallint": 2, "int": 3, "integer": 3, "bigint": 8, "mediumint": 9, "year": 13,
    "float": FLOAT, "double": DOUBLE, "decimal": 246, "bit": BIT, "enum": ENUM, "set": SET,
    "timestamp": 7, "date": 10, "time": 11, "datetime": 12, "json": 245, "vector": 225,
    "varchar": 15, "varbinary": 15, "char": 254, "binary": 254,
    "tinytext": 249, "tinyblob": 249, "mediumtext": 250, "mediumblob": 250, "longtext": 251, "longblob": 251, "text": 252, "blob": 252,
}  # fmt: skip
_INTEGERS: Final = frozenset({1, 2, 3, 8, 9, 13, BIT, ENUM, SET})
_WORD: Final = re.compile(r"[a-z]+")
_BYTES: Final = frozenset({"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"})


@dataclass(frozen=True, slots=True)
class ExactColumn:
    """One column: as rows of the wire describe it, and as literals for it are written."""

    shape: ColumnShape
    described: ColumnDescription

    @property
    def expression(self) -> str:
        """Return what is selected, so that the value comes exactly."""
        name = quote_identifier(self.shape.name)
        if self.shape.mysql_type in {ENUM, SET, BIT}:
            return f"CAST({name} AS UNSIGNED)"
        return f"CAST({name} AS DOUBLE)" if self.shape.mysql_type == FLOAT else name

    @property
    def read(self) -> Read:
        """Return the function from the bytes that come to the value."""
        if self.shape.mysql_type in _INTEGERS:
            return int
        if self.shape.mysql_type == FLOAT:
            return lambda value: shortest(float(value))
        if self.shape.mysql_type == DOUBLE:
            return float
        return bytes if self.shape.is_bytes else _text


def _text(value: bytes) -> str:
    return value.decode("utf-8", "surrogateescape")


class UpstreamTable:
    """A table of upstream at one snapshot. Virtual columns are skipped, as on the wire."""

    def __init__(self, name: TableName, columns: Sequence[ExactColumn], keys: KnownKeys) -> None:
        self.name, self.columns, self.keys = name, columns, keys
        self.description = TableDescription(
            schema=name.schema, table=name.table, columns=tuple(column.described for column in columns), unique_keys=()
        )

    @classmethod
    def of(cls, name: TableName, columns: Iterable[Shown], indexes: Iterable[Shown], handle: Collection[str]) -> "UpstreamTable":
        """Read SHOW FULL COLUMNS and SHOW INDEX. ``handle``: casefolded names of the handle key. NeedsOperator: an unsupported type."""
        unique = [row for row in indexes if int(row["NON_UNIQUE"]) == 0 and row["COLUMN_NAME"] is not None]
        primary = {row["COLUMN_NAME"].casefold() for row in unique if row["KEY_NAME"] == "PRIMARY"}
        others = {row["COLUMN_NAME"].casefold() for row in unique if row["KEY_NAME"] != "PRIMARY"}
        shown = [row for row in columns if not _is_virtual(row)]

        def named(names: Collection[str], *, nullable: bool = True) -> tuple[str, ...]:
            rows = [row for row in shown if row["FIELD"].casefold() in names and (nullable or row["NULL"] != "YES")]
            return tuple(str(row["FIELD"]) for row in rows)

        keys = KnownKeys(
            handle=tuple(sorted(named(handle), key=str.casefold)),
            primary=named(primary),
            unique=named(others),
            identifying=named({*handle, *primary, *others}, nullable=False),
        )
        return cls(name, [_column(name, row) for row in shown], keys)

    def shape_of(self, placeholder: Shape) -> Shape:
        """Return the shape of the whole rows of placeholders."""
        return placeholder._replace(columns=tuple(column.shape for column in self.columns), keys=self.keys, placeholder=False)

    def places(self, names: Sequence[str]) -> list[int]:
        """Return where the columns ``names`` are. NeedsOperator: one is missing."""
        known = {column.shape.name.casefold(): place for place, column in enumerate(self.columns)}
        if absent := [name for name in names if name.casefold() not in known]:
            raise NeedsOperator(
                "upstream's table lacks columns of the handle key",
                remedy=Remedy("upstream.check-cluster-of-table", "Check that source.upstream is the cluster that the changefeed reads"),
                table=str(self.name),
                columns=",".join(absent),
            )
        return [known[name.casefold()] for name in names]


def _is_virtual(row: Shown) -> bool:
    return "VIRTUAL GENERATED" in str(row["EXTRA"]).upper()


def _column(table: TableName, row: Shown) -> ExactColumn:
    name, sql_type = str(row["FIELD"]), str(row["TYPE"]).casefold()
    word = match[0] if (match := _WORD.match(sql_type)) else ""
    if word not in _TYPES:
        raise NeedsOperator(
            "upstream's table has a column of an unsupported type",
            remedy=Remedy("upstream.exclude-table", "Exclude the table from the changefeed"),
            table=str(table),
            column=name,
            type=sql_type,
        )
    is_binary = word in _BYTES or row["COLLATION"] == "binary"
    described = ColumnDescription(
        name=name,
        sql_type=str(row["TYPE"]),
        nullable=row["NULL"] == "YES",
        binary=is_binary,
        labels=labels_of(str(row["TYPE"])) if word in {"enum", "set"} else (),
        is_set=word == "set",
    )
    mysql_type = _TYPES[word]
    shape = ColumnShape(
        name,
        mysql_type,
        is_bytes=is_binary and mysql_type in STRING_TYPES,
        is_unsigned="unsigned" in sql_type,
        is_generated="STORED GENERATED" in str(row["EXTRA"]).upper(),
    )
    return ExactColumn(shape, described)


T = TypeVar("T")

ATTEMPTS: Final = 5
MAX_WAIT_S: Final = 5.0
FIRST_KEYS: Final = 16
"""Keys of the first statement: the size of the rows is not known yet."""
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
    """The reading of rows of one shape, at one timestamp."""

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
    cutter = Cutter(table.description, max_packet_bytes, MAX_KEYS, _too_large)
    for query, _ in by_key(cutter, head, [column.shape.name for column in columns], texts):
        yield query


def _too_large(table: TableDescription, size: int, max_packet_bytes: int) -> SourceError:
    return SourceError(
        "a key is larger than upstream's max_allowed_packet",
        remedy=Remedy("upstream.raise-max-allowed-packet", "Raise max_allowed_packet of upstream"),
        kind=FailureKind.UPSTREAM,
        table=str(table.folded),
        bytes=size,
        max_packet_bytes=max_packet_bytes,
    )
