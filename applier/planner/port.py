"""The planner's ports (a dialect that renders, a decoder of images) and its statements. All are pure, and are pickled to executors.

A statement may still know its rows: where refused rows are looked for, a writer halves a statement until it has found the rows that the
database refuses. So it can carry what it was rendered from, and render parts of it again.

Tables of the sink are described as the planner needs them: columns, generated columns, unique keys. They are read again after each DDL.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

from applier.model.errors import ApplierError
from applier.model.events import FoldedName, Shape, Value
from applier.model.rejected_event import RejectedEvent
from applier.planner.table_check import UniqueIndex


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnDescription:
    """A column of a table of the sink. ``sql_type`` is the dialect's full type text (``enum('a','b')``, ``bigint(20) unsigned``)."""

    name: str
    sql_type: str
    nullable: bool
    generated: bool = False
    computes_otherwise: bool = False
    """Of a generated column: whether the sink may compute other values than upstream."""
    has_default: bool = False
    default: str | None = None
    """What a REPLACE writes for the column's default; None: it does not have one, or none that can be written."""
    binary: bool = False
    """Whether it holds bytes and not text (the sink knows it even where the wire's flags are stale)."""
    labels: tuple[str, ...] = ()
    """Element list of ENUM and SET, in order, where the sink stores labels and not ordinals."""
    is_set: bool = False
    auto_increment: bool = False
    """Whether the sink numbers rows in it that come without a value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableDescription:
    """A table of the sink.

    ``unique_keys`` are column names per unique index without prefix lengths, expressions or nullable columns, the primary key first.
    ``unique_indexes`` are all unique indexes that upstream is not known to have: rows are compared with them.
    ``explained_indexes``: the others.
    """

    schema: str
    table: str
    columns: tuple[ColumnDescription, ...]
    # A prefix, an expression or a NULL lets several rows have one key: a DELETE by it could hit rows of others.
    unique_keys: tuple[tuple[str, ...], ...]
    primary_key: tuple[str, ...] = ()
    unique_indexes: tuple[UniqueIndex, ...] = ()
    explained_indexes: tuple[UniqueIndex, ...] = ()
    early_columns: frozenset[str] = frozenset()
    """Casefolded names of columns that a DDL after the rows adds: rows may carry them already, with the value that the DDL gives them."""

    @property
    def folded(self) -> FoldedName:
        """Identity of the table."""
        return FoldedName(self.schema.casefold(), self.table.casefold())

    def has_unique_key(self, names: Iterable[str]) -> bool:
        """Return whether one of the unique keys consists of exactly these columns, in any order and case."""
        wanted = {name.casefold() for name in names}
        return any({name.casefold() for name in unique} == wanted for unique in self.unique_keys)


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
"""Image bytes -> values in the order of ``shape.columns``; ProtocolError (without a position) if they cannot be read."""
ImageDecoders: TypeAlias = Callable[[Shape], ImageDecoder]
ImagesDecoder: TypeAlias = Callable[[Sequence[bytes]], Sequence[Sequence[Value]]]
"""Images -> for each column of the shape, the values of all of them. ProtocolError (without a position) if one of them cannot be read."""


class LookedUpRows(NamedTuple):
    """Rows of upstream. ``found``: the index of each row's key among the asked ones; ``rows``: its values, by the columns of ``shape``."""

    shape: Shape
    found: Sequence[int]
    rows: Sequence[Sequence[Value]]


class RowLookup(Protocol):
    """Reads whole rows from upstream as they were at a timestamp. Frozen and picklable: it crosses to executors with the decoder."""

    def rows(self, shape: Shape, keys: Sequence[Sequence[Value]], ts: int) -> Iterator[LookedUpRows]:
        """Yield the rows that have these handle keys (values in the order of ``shape.handle_key``), some at a time, in any order.

        A key without a row is in no part. Values come as on the wire. Called in preparing tasks, once per table, shape and segment, for
        final rows only; it may be repeated. Transient errors are retried here. NeedsOperator: the timestamp is too old for upstream, or the
        table is not there; SourceError: upstream does not answer (kind "unreachable"), or refuses access; ConfigError: wrong address.
        """
        ...


class RowDecoder(Protocol):
    """The part of the source's decoder that the planner needs."""

    @property
    def keeps_order(self) -> bool:
        """Whether the rows of one commit_ts come in one stream, in the order in which their transaction changed them.

        Then versions of a row are compared by commit_ts, offset and index. Else its transaction may come in any order, and tells about a
        row at most that it was deleted and then written: the delete comes first.
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

    def literal(self, column: ColumnDescription, mysql_type: int, *, is_bytes: bool = False) -> Literal:
        """Return the function that renders values of wire type ``mysql_type`` for ``column``; it escapes any string.

        ``is_bytes``: as in ``ColumnShape``.
        """
        ...

    def reads(
        self, table: TableDescription, key: Sequence[str], rows: Iterable[Sequence[str]], columns: Sequence[str]
    ) -> Iterator[tuple[str, int]]:
        """Render SELECTs of rows by key from literal texts (``NULL`` keys included), which lock them; yield (text, rows), in order.

        A row of the result begins with the number of its key among ``rows``; what follows, ``read_literal`` makes a literal. A key
        without a row does not have one in the result.
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
    is_bytes: bool = False


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
        """Render statements that insert rows, or update rows that have their key; yield (text, rows) as ``replaces``. None is deleted."""
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


class Phase(IntEnum):
    """The order of a segment's statements on one table.

    READ: rows of the sink whose columns a partial image needs. They are read, locked, before anything of the segment is deleted or
    replaced: a REPLACE may delete, through a secondary unique key, the very row that is read. Then all deletes, then the first REPLACE.
    ORDERED: of tables whose rows are written in their order. All of them come from one task, and keep the order in which it made them.
    """

    READ = 0
    DELETE = 1
    REPLACE = 2
    ORDERED = 3


class Statement(NamedTuple):
    """One statement of a segment, whole text without parameters, in UTF-8: encoded once, where it is rendered."""

    phase: Phase
    table: str
    text: bytes
    rows: int
    min_ts: int
    max_ts: int
    source_rows: "StatementRows | None" = None
    """What it was rendered from, where a writer must find the rows that the database refuses; else None."""
    data: bytes = b""
    """Of a statement that loads rows in bulk: the rows that the database asks for. Empty for any other."""
    reading: "RowsToRead | None" = None
    """Of a READ: the rows that are written once the sink's rows are read. None for any other."""
    deletes_exactly: bool = False
    """Whether it must delete exactly ``rows`` rows. A DELETE by key may find fewer: one segment may insert and delete a row."""
    present: int = 0
    """Of a DELETE by key: how many of its rows upstream had when the segment began, because the segment does not change them
    before the delete."""
    checks_keys: bool = False
    """Whether the database checks foreign keys and executes their actions."""

    @property
    def size(self) -> int:
        """Bytes that are sent for it, bulk data included."""
        return len(self.text) + len(self.data) + (0 if self.reading is None else self.reading.size)


class RowsToRead(Protocol):
    """The rows of a READ (``partial_plan.SinkReading``)."""

    @property
    def size(self) -> int:
        """Bytes of the rows' literals."""
        ...

    def replaces(
        self, found: Mapping[int, Sequence[Any]], refuse: Callable[[Sequence[RejectedEvent], Sequence[str], ApplierError], None]
    ) -> Iterator[Statement]:
        """Render REPLACEs of whole rows from the values that the READ has returned, by the number of the key."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementRows:
    """What a statement was rendered from; ``texts`` (row texts, or texts of keys) and ``rows`` run in parallel."""

    phase: Phase
    table: TableDescription
    columns: tuple[str, ...]
    key: tuple[str, ...]
    """The names of the key's columns, in the sink's spelling."""
    dialect: WritingDialect
    texts: tuple[Any, ...]
    rows: tuple[RejectedEvent, ...]
    earlier: tuple[tuple[RejectedEvent, ...], ...] = ()
    """Of each row, the other events that it consists of, where rows are laid over one another; empty where none is."""

    def halves(self) -> Iterator[Statement]:
        """Render the two halves of the rows."""
        middle = len(self.rows) // 2
        for begin, end in ((0, middle), (middle, len(self.rows))):
            yield from self._rendered(self.texts[begin:end], self.rows[begin:end], self.earlier[begin:end])

    def _rendered(
        self, texts: Sequence[Any], rows: Sequence[RejectedEvent], earlier: tuple[tuple[RejectedEvent, ...], ...]
    ) -> Iterator[Statement]:
        render = self.dialect.deletes if self.phase is Phase.DELETE else self.dialect.replaces
        done = 0
        # A half may still be several statements: the dialect cuts by bytes, too.
        for text, number in render(self.table, self.columns, texts):
            half = replace(
                self,
                texts=tuple(texts[done : done + number]),
                rows=tuple(rows[done : done + number]),
                earlier=earlier[done : done + number],
            )
            commits = [row.commit_ts for row in half.rows]
            # Only whole rows are deleted exactly, and those one by one: there are no halves of them.
            yield Statement(self.phase, str(self.table.folded), text.encode(), number, min(commits), max(commits), half)
            done += number
