"""The columns of the changelog, and how the events of a record become its rows.

``op`` is insert, update, delete, ddl, resolved, admin, or unreadable. ``key`` is the handle key as a JSON object, NULL without one;
``old_key`` the key before an update that has changed it. The image of a row is a JSON object, or a struct of one table's columns.
"""

import json
from base64 import b64encode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Protocol, TypeAlias, assert_never

import msgspec
from pyspark.sql.types import DataType, StructType

from applier.dataframe.conversion import Conversion, clean_text, conversion_to
from applier.model.errors import ProtocolError, Remedy, SourceError
from applier.model.events import AdminEvent, DdlEvent, Event, FoldedName, Image, ResolvedEvent, RowEvent, TableName, Value
from applier.model.failure import FailureKind
from applier.model.position import RecordPosition, Ts
from applier.selection import EVERYTHING, TableSelection
from applier.sources.kit import PositionColumns
from applier.sources.port import Decoder, Record

_ENCODER: Final = msgspec.json.Encoder()


class ImageForm(Protocol):
    """Makes the value of the columns ``before`` and ``after``."""

    def of(self, image: Image | None) -> Any:
        """Return the value of an image; None for None. SourceError (column_value, unknown_column), without a position."""
        ...


def json_object(values: Mapping[str, Value]) -> str:
    """Return columns as a JSON object: numbers as numbers, bytes in base64, DECIMAL and dates as text; nothing is rounded."""
    try:
        return _ENCODER.encode(values).decode()
    except UnicodeEncodeError:
        # Bytes that are not UTF-8 are lone surrogates; escaped they survive.
        plain = {name: b64encode(value).decode() if isinstance(value, bytes) else value for name, value in values.items()}
        return json.dumps(plain, separators=(",", ":"))


def key_object(image: Image | None) -> str | None:
    """Return the handle key of an image as a JSON object, in the order of the names; None if there is none."""
    values = handle_key(image)
    return json_object({name: values[name] for name in sorted(values, key=str.casefold)}) if values else None


def handle_key(image: Image | None) -> dict[str, Value]:
    """Return the values of the handle key."""
    return {name: column.value for name, column in (image or {}).items() if column.is_key}


class JsonImages:
    """Every column that the event has, as JSON."""

    def of(self, image: Image | None) -> str | None:
        """Return the image as a JSON object."""
        return None if image is None else json_object({name: column.value for name, column in image.items()})


@dataclass(frozen=True)
class TableImages:
    """The columns of one table by their types. ``is_strict``: a column that ``columns`` does not have is an error, and is not skipped."""

    columns: tuple[tuple[str, DataType], ...]
    zone: str
    is_strict: bool

    @classmethod
    def of_struct(cls, struct: StructType, zone: str, *, is_strict: bool) -> "TableImages":
        """Take the columns from the type of ``after``."""
        return cls(tuple((field.name, field.dataType) for field in struct.fields), zone, is_strict)

    @cached_property
    def _conversions(self) -> dict[str, tuple[str, Conversion]]:
        # TiDB compares names of columns without regard to case.
        return {name.casefold(): (name, conversion_to(data_type, self.zone)) for name, data_type in self.columns}

    def check(self) -> None:
        """ConfigError if a column has a type that no value can have."""
        _ = self._conversions

    def of(self, image: Image | None) -> dict[str, Any] | None:
        """Return the image as the members of a struct. Columns that it lacks are NULL."""
        if image is None:
            return None
        members: dict[str, Any] = {}
        for name, column in image.items():
            found = self._conversions.get(name.casefold())
            if found is None:
                if self.is_strict:
                    raise self._unknown(name)
                continue
            member, convert = found
            try:
                members[member] = None if column.value is None else convert(column.value)
            except ValueError as error:
                raise self._misfit(member, "BINARY" if isinstance(column.value, bytes) else "STRING", error) from error
        return members

    def _unknown(self, name: str) -> SourceError:
        remedy = Remedy(
            "dataframe.reload-columns", "Load the DataFrame again, which reads the columns again. Or name them with the option columns"
        )
        return SourceError(
            "a row has a column that the table did not have when its columns were read",
            remedy=remedy,
            kind=FailureKind.UNKNOWN_COLUMN,
            column=name,
        )

    def _misfit(self, name: str, fitting: str, cause: ValueError) -> SourceError:
        wanted = ", ".join(f"`{each}` {fitting if each == name else kind.simpleString().upper()}" for each, kind in self.columns)
        return SourceError(
            f"a value does not fit the type of its column: {cause}",
            remedy=Remedy(
                "dataframe.widen-column-type", f'Give the column a type that holds it, for instance by the option columns="{wanted}"'
            ),
            kind=FailureKind.COLUMN_VALUE,
            column=name,
        )


Row: TypeAlias = tuple[Any, ...]

IMAGE: Final = "{image}"
COLUMNS: Final = (
    ("event", "INT"),
    ("schema", "STRING"),
    ("table", "STRING"),
    ("op", "STRING"),
    ("key", "STRING"),
    ("old_key", "STRING"),
    ("before", IMAGE),
    ("after", IMAGE),
    ("handle_key_only", "BOOLEAN"),
    ("query", "STRING"),
    ("error", "STRING"),
)
MAX_TS: Final = 2**63 - 1
"""Of BIGINT. A TSO of the year 3084 is greater; until then only rubbish is."""


def schema_text(positions: PositionColumns, columns: str | None = None) -> str:
    """Return the schema in Spark's DDL. ``columns``: of one table, for typed images; None: JSON."""
    image = "STRING" if columns is None else f"STRUCT<{columns}>"
    return ", ".join(f"`{name}` {image if kind == IMAGE else kind}" for name, kind in columns_of(positions))


def columns_of(positions: PositionColumns) -> tuple[tuple[str, str], ...]:
    """Return the names of all columns, each with its type."""
    return (("commit_ts", "BIGINT"), ("commit_time", "TIMESTAMP"), *positions.columns, *COLUMNS)


def table_columns_of(schema: StructType, positions: PositionColumns) -> StructType | None:
    """Return the columns of the table in a schema; None if its images are JSON. ValueError if it is not a schema of the changelog."""
    names = [name for name, _ in columns_of(positions)]
    if schema.fieldNames() != names:
        raise ValueError(f"the columns are not {', '.join(names)}")
    after = schema["after"].dataType
    return after if isinstance(after, StructType) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangelogRows:
    """Makes rows of records. Frozen and picklable: it crosses to executors.

    ``tables``: what the filter chooses; ``table``: one table alone. ``keeps_unreadable``: a record that cannot be read becomes a row.
    """

    decoder: Decoder
    images: ImageForm
    positions: PositionColumns
    tables: TableSelection = EVERYTHING
    table: FoldedName | None = None
    resolved: bool = False
    keeps_unreadable: bool = False

    def of(self, record: Record, position: RecordPosition) -> Iterator[Row]:
        """Yield the rows of a record. SourceError with the record's position if it cannot be read."""
        try:
            events = self.decoder.whole_events(record, position)
            rows = [self._row(event, index, record, position) for index, event in enumerate(events) if self._has(event)]
        except ProtocolError as error:
            if not self.keeps_unreadable:
                raise
            rows = [self._unreadable(error, record, position)]
        yield from rows

    def _has(self, event: Event) -> bool:
        match event:
            case RowEvent():
                return self._has_table(TableName(event.schema, event.table))
            case DdlEvent():
                return self._has_table(event.name)
            case ResolvedEvent() | AdminEvent():
                return self.resolved
            case _:
                assert_never(event)

    def _has_table(self, name: TableName) -> bool:
        return (self.table is None or name.fold() == self.table) and self.tables.has(name)

    def _row(self, event: Event, index: int, record: Record, position: RecordPosition) -> Row:
        match event:
            case RowEvent():
                images = self._images(event, position)
                key, before = key_object(event.after or event.before), key_object(event.before)
                old_key = before if before not in {None, key} and _has_old_key(event) else None
                named = map(_clean, (event.schema, event.table, event.operation.value, key, old_key))
                return (*self._head(event.commit_ts, record, position, index), *named, *images, event.only_handle_key, None, None)
            case DdlEvent():
                name = _clean(event.schema), _clean(event.table or None)
                return (*self._head(event.commit_ts, record, position, index), *name, "ddl", *(None,) * 5, _clean(event.query), None)
            case ResolvedEvent() | AdminEvent():
                op = "resolved" if isinstance(event, ResolvedEvent) else "admin"
                return (*self._head(event.ts, record, position, index), None, None, op, *(None,) * 7)
            case _:
                assert_never(event)

    def _images(self, event: RowEvent, position: RecordPosition) -> tuple[Any, Any]:
        try:
            return self.images.of(event.before), self.images.of(event.after)
        except SourceError as error:
            where = {"schema": event.schema, "table": event.table, "commit_ts": event.commit_ts}
            raise SourceError(error.message, remedy=error.remedy, **(error.facts | where | position.facts)) from error

    def _unreadable(self, error: ProtocolError, record: Record, position: RecordPosition) -> Row:
        ts, schema, table = (error.facts.get(name) for name in ("commit_ts", "schema", "table"))
        known = Ts(ts) if isinstance(ts, int) and ts <= MAX_TS else None
        kind = error.facts.get("kind", "protocol")
        named = (schema, table, "unreadable")
        head = self._head(known, record, position, error.facts.get("event"))
        return (*head, *map(_clean, named), *(None,) * 6, _clean(f"{kind}: {error.message}"))

    def _head(self, ts: Ts | None, record: Record, position: RecordPosition, index: int | None) -> Row:
        if ts is not None and ts > MAX_TS:
            raise ProtocolError.at(position, "timestamp", "a timestamp is too large for a column of the type BIGINT", commit_ts=ts)
        time = None if ts is None else self.positions.time(ts, record)
        return ts, time, *self.positions.of(record, position), index


def _has_old_key(event: RowEvent) -> bool:
    # An old image may hold the changed columns alone: half of a key is none.
    return event.after is None or handle_key(event.before).keys() == handle_key(event.after).keys()


def _clean(text: str | None) -> str | None:
    return None if text is None else clean_text(text)
