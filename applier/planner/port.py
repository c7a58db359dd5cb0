"""The planner's ports: a dialect that renders statements, and a decoder of images. Both are pure, and are pickled to executors."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

from applier.model.events import Shape, Value
from applier.planner.catalogue import ColumnDescription, TableDescription

Literal: TypeAlias = Callable[[Value], str]
"""Value -> its text in SQL. TypeError, ValueError or AttributeError if the value is not of the type that was asked for."""
RowsText: TypeAlias = Callable[[Sequence[Sequence[Value]]], bytes | None]
"""Some rows, as columns of values -> their texts in a REPLACE, joined. None: one cannot be written, or all are too large for a statement;
they are left to ``replaces``. Raises nothing."""
JoinedReplaces: TypeAlias = Callable[[Iterable[tuple[bytes, int]]], Iterator[tuple[bytes, int]]]
"""Texts of some rows and their number -> whole REPLACEs and the number of their rows."""
RowsLines: TypeAlias = Callable[[Sequence[Sequence[Value]]], bytes | None]
"""Some rows, as columns of values -> their lines in a bulk load. None: a value needs care: they are left to ``replaces``. Never raises."""
ImageDecoder: TypeAlias = Callable[[bytes], Sequence[Value]]
"""Image bytes -> values in the order of ``shape.columns``; ProtocolError (without a place) if they cannot be read."""
ImageDecoders: TypeAlias = Callable[[Shape], ImageDecoder]
ImagesDecoder: TypeAlias = Callable[[Sequence[bytes]], Sequence[Sequence[Value]]]
"""Images -> for each column of the shape, the values of all of them. ProtocolError (without a place) if one of them cannot be read."""


class LookedUpRows(NamedTuple):
    """Rows of upstream. ``found``: the place of each row's key among those asked for; ``rows``: its values, by the columns of ``shape``."""

    shape: Shape
    found: Sequence[int]
    rows: Sequence[Sequence[Value]]


class RowLookup(Protocol):
    """Reads whole rows from upstream as they were at a timestamp. Frozen and picklable: it crosses to executors with the decoder."""

    def rows(self, shape: Shape, keys: Sequence[Sequence[Value]], ts: int) -> Iterator[LookedUpRows]:
        """Yield the rows that have these handle keys (values in the order of ``shape.handle_key``), some at a time, in any order.

        A key without a row is in no part. Values are those of the wire. Called in preparing tasks, once per table, shape and segment, for
        final rows only; it may be repeated. What may pass is retried here. NeedsOperator: the timestamp is too old for upstream, or the
        table is not there; SourceError: upstream does not answer (kind "unreachable"), or refuses access; ConfigError: wrong address.
        """
        ...


class RowDecoder(Protocol):
    """The source's decoder, as far as the planner needs it."""

    @property
    def keeps_order(self) -> bool:
        """Whether the rows of one commit_ts come in one stream, in the order in which their transaction changed them.

        Then versions of a row are compared by commit_ts, offset and index. Else its transaction may come in any order, and says of a row at
        most that it was deleted and then written: the delete comes first.
        """
        ...

    @property
    def row_lookup(self) -> RowLookup | None:
        """What reads the whole rows of placeholders; None: the source gives no placeholders."""
        ...

    def encode_image(self, shape: Shape, values: Sequence[Value]) -> bytes:
        """Return the image that the decoder of ``shape`` reads as ``values``. For the few rows that no producer has written."""
        ...

    def image_decoder(self, shape: Shape) -> ImageDecoder:
        """Return the decoder of the images of a shape. Called once per shape and bucket; what it returns is called once per row."""
        ...

    def images_decoder(self, shape: Shape) -> ImagesDecoder:
        """Return the function that decodes many images of a shape at once, into what ``image_decoder`` gives for each of them.

        The hot path of preparing. A format that gains nothing from many at a time decodes each.
        """
        ...

    def decode_key(self, key: bytes) -> Sequence[Value]:
        """Return the values of ``PlacedRow.key``, in the order of ``Shape.handle_key``. Called once per deleted row.

        Equal rows have equal keys, whichever range, shape or process has placed them.
        """
        ...


class WritingDialect(Protocol):
    """How one database deletes and writes rows. Frozen and picklable; pure."""

    # Rows before a refused one must come first: the caller counts the rows of the statements to know which one was refused.
    def deletes(self, table: TableDescription, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[tuple[str, int]]:
        """Render DELETEs by key from literal texts (``NULL`` keys included); yield (text, rows), cut by rows and bytes.

        The order of the rows is kept. RowRefused, after all rows before it, for a row that alone is larger than the database takes.
        """
        ...

    def replaces(self, table: TableDescription, columns: Sequence[str], rows: Iterable[str]) -> Iterator[tuple[str, int]]:
        """Render multi-row ``REPLACE INTO`` from row texts ``(literal,literal,…)``; yield (text, rows), cut by rows and bytes.

        The order of the rows is kept. RowRefused, after all rows before it, for a row that alone is larger than the database takes.
        """
        ...


class Dialect(WritingDialect, Protocol):
    """How one database writes things down. Frozen and picklable; pure."""

    def literal(self, column: ColumnDescription, mysql_type: int, flags: int) -> Literal:
        """Return the function that renders values of wire type ``mysql_type`` for ``column``; it escapes any string."""
        ...

    def reads(
        self, table: TableDescription, key: Sequence[str], rows: Iterable[Sequence[str]], columns: Sequence[str]
    ) -> Iterator[tuple[str, int]]:
        """Render SELECTs of rows by key from literal texts (``NULL`` keys included), which lock them; yield (text, rows), in order.

        A row of the result begins with the number of its key among ``rows``; what follows, ``read_literal`` makes a literal. A key
        without a row has none in the result.
        """
        ...

    def read_literal(self, value: Any) -> str | None:
        """Return the literal that stores, in the same column, the bytes that were read; None: too large for the database to show."""
        ...

    def whole_rows(self) -> WritingDialect:
        """Return how rows of tables without a key are written.

        Its ``deletes`` deletes one row per row text of all columns, each by a statement of its own; a row is found only if each column
        stores the same value, byte by byte. Its ``replaces`` inserts, and so replaces nothing.
        """
        ...


class WireColumn(NamedTuple):
    """A column of the sink, and what the wire says about the values that fill it."""

    column: ColumnDescription
    mysql_type: int
    flags: int


@runtime_checkable
class RowsDialect(Protocol):
    """A dialect that renders many rows at once, faster than value by value. Optional: the planner asks."""

    def rows_text(self, table: TableDescription, columns: Sequence[WireColumn]) -> RowsText:
        """Return the function that renders rows; the database must store what ``literal`` would make it store. Raises as ``literal``."""
        ...

    def most_rows(self, table: TableDescription) -> int:
        """Return how many rows a statement may have; the planner gives ``rows_text`` no more at once."""
        ...

    def joined_replaces(self, table: TableDescription, columns: Sequence[str]) -> JoinedReplaces:
        """Return the function that makes statements of such texts, cut by rows and bytes, in order. Called once per table."""
        ...


@runtime_checkable
class OrderedDialect(Protocol):
    """A dialect of a database that executes the actions of foreign keys. Optional: the sink says whether it does."""

    def upserts(self, table: TableDescription, columns: Sequence[str], rows: Iterable[str]) -> Iterator[tuple[str, int]]:
        """Render statements that insert rows, or update those that have their key; yield (text, rows) as ``replaces``. None is deleted."""
        ...

    def updates(
        self, table: TableDescription, new: tuple[Sequence[str], Sequence[str]], key: Sequence[str], old: Sequence[str]
    ) -> Iterator[tuple[str, int]]:
        """Render the UPDATE of one row, found by the literals ``old`` of its ``key``. ``new``: columns and their literals."""
        ...

    def absent_inserts(
        self, table: TableDescription, new: tuple[Sequence[str], Sequence[str]], key: Sequence[str], old: Sequence[str]
    ) -> Iterator[tuple[str, int]]:
        """Render the INSERT of some columns of one row, unless a row has the literals ``old`` of its ``key``."""
        ...


@runtime_checkable
class BulkDialect(Protocol):
    """A dialect that loads many rows without a literal for each value. Optional: the planner asks."""

    def bulk_line(self, columns: Sequence[WireColumn]) -> RowsLines | None:
        """Return the function that renders rows; None if it is not proven that the database stores what ``literal`` would make it store."""
        ...

    def bulk_loads(
        self, table: TableDescription, columns: Sequence[str], lines: Iterable[tuple[bytes, int]]
    ) -> Iterator[tuple[bytes, bytes, int]]:
        """Render loads from lines of some rows and the number of these rows; yield (statement, content, rows), cut by bytes, in order."""
        ...
