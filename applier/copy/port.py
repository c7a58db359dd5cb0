"""The ports of the initial copy: what is asked of upstream (``CopyUpstream``, ``ChunkReader``) and of a sink (``ChunkWriter``).

What crosses to executors (``CopyTable``, ``KeyRange``, ``ChunkReader``, ``ChunkWriter``) is frozen and picklable. A chunk is read in a view
of its own, which its own transaction of upstream opens, so no view lives longer than a chunk. See ``applier.copy`` for why that is right.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, Protocol, TypeAlias

from applier.model.events import TableName
from applier.model.position import Ts

Bound: TypeAlias = tuple[str, ...]
"""A key at which a chunk ends: one SQL literal per column of the key, as upstream reads it. Only upstream compares bounds."""


class ColumnKind(StrEnum):
    """How the values of a column are written in lines."""

    TEXT = "text"
    """As upstream prints them, in UTF-8: numbers, times, JSON, texts of a character set of Unicode."""
    BYTES = "bytes"
    """As hexadecimal digits."""
    CHARSET = "charset"
    """Texts of another character set: its bytes, as hexadecimal digits."""
    NUMBER = "number"
    """BIT, ENUM and SET: unsigned numbers."""


class CopyColumn(NamedTuple):
    """A column that is read and written. ``charset``: by upstream's name, for ``CHARSET``. ``upstream_type``: the word alone."""

    name: str
    kind: ColumnKind
    charset: str = ""
    upstream_type: str = ""


class KeyRange(NamedTuple):
    """The rows of one table with ``lower`` < key <= ``upper``; None: no limit. Numbers begin at 0 and ascend with the keys."""

    number: int
    lower: Bound | None
    upper: Bound | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyTable:
    """A table of upstream as it is copied: ``definition`` was read before the copy's start, and holds for every chunk.

    ``key``: the columns of the chunk key in their order, NOT NULL and unique; () for a table without one, which is one chunk.
    ``columns``: what is read and written, in order: all but generated ones. ``has_secondary_key``: a further unique key, so that chunks of
    different views may conflict and are loaded with REPLACE.
    """

    name: TableName
    """As upstream spells it, before routes."""
    definition: str
    """SHOW CREATE TABLE."""
    digest: str
    """Of the definition without its AUTO_INCREMENT counter; changes with every DDL that matters."""
    key: tuple[str, ...]
    columns: tuple[CopyColumn, ...]
    key_index: str = ""
    """The name of the index of the chunk key."""
    walkable: bool = True
    """Whether upstream compares keys with literals exactly as its index does; else the table is one chunk."""
    has_secondary_key: bool = False
    rows: int = 0
    """An estimate, as is ``size_bytes``."""
    size_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class UpstreamObjects:
    """What the chosen schemas of upstream hold. Views in no particular order. ``left_out``: how many of each kind are not copied."""

    schemas: Mapping[str, str]
    """The SHOW CREATE DATABASE of each schema."""
    tables: Sequence[CopyTable]
    views: Mapping[TableName, str]
    """The SHOW CREATE VIEW of each."""
    left_out: Mapping[str, int]


class CopyStart(NamedTuple):
    """Where replay begins: every transaction at or before it is in all views that are opened later.

    ``told``: the text from which the source finds it again (``LogPosition.start_point(declared=…)``): ``gtid:SET``; "" where ``start_ts``
    says it all. ``is_exact``: the view of ``StartView`` has no later transaction.
    """

    start_ts: Ts
    told: str
    is_exact: bool


class RowBlock(NamedTuple):
    """Whole rows of one chunk in the form of ``applier.copy.lines``, each column as its ``ColumnKind`` says."""

    lines: bytes
    rows: int


class ChunkRows(Protocol):
    """The rows of one chunk in one view."""

    def blocks(self) -> Iterator[RowBlock]:
        """Yield the rows in blocks of some MiB. SourceError; DefinitionChanged."""
        ...

    def finish(self) -> Ts:
        """Return a position behind all that the view has seen, and behind the DDLs before its rows were read. Called once, at the end.

        DefinitionChanged if the table's definition is not the planned one: nothing of the chunk may be committed.
        """
        ...


class ChunkSession(AbstractContextManager["ChunkSession"], Protocol):
    """A session of a task on upstream. Not thread-safe."""

    def read(self, table: CopyTable, chunk: KeyRange) -> AbstractContextManager[ChunkRows]:
        """Open a view, and give the rows of a chunk; the view ends with the block."""
        ...


class ChunkReader(Protocol):
    """Executor side of upstream. Frozen and picklable."""

    def open(self) -> ChunkSession:
        """Open a session. SourceError."""
        ...


class StartView(AbstractContextManager["StartView"], Protocol):
    """The view at the start of a copy, on the driver. It is closed at the end of the block."""

    @property
    def start(self) -> CopyStart:
        """Where replay begins."""
        ...

    def read(self, table: CopyTable) -> AbstractContextManager[ChunkRows]:
        """Give all rows of a table without a key, in this view. Called only if the start is exact."""
        ...


class CopyUpstream(AbstractContextManager["CopyUpstream"], Protocol):
    """Driver side of upstream. Not thread-safe; connects when it is first asked. All methods: SourceError, NeedsOperator."""

    def require(self) -> None:
        """Refuse a server whose log cannot heal what the chunks' views differ by: full row images are needed."""
        ...

    def objects(self) -> UpstreamObjects:
        """Read the chosen schemas as they are now. NeedsOperator: a chosen table cannot be copied (no SELECT, no InnoDB)."""
        ...

    def open_view(self, keyless: Sequence[TableName] = ()) -> StartView:
        """Open the view of a start. ``keyless``: tables without a key, which need an exact one; NeedsOperator if it cannot be had."""
        ...

    def moved(self, tables: Collection[TableName], start_ts: Ts, upto_ts: Ts) -> Sequence[TableName]:
        """Return the tables that a DDL of the log between two positions may have renamed, or exchanged with a partition.

        Rows move so without an event of their own, and the definition may be the same: a chunk behind the DDL has another table's rows.
        """
        ...

    def next_bound(self, table: CopyTable, lower: Bound | None, rows: int) -> Bound | None:
        """Return the key of the row that is ``rows`` rows behind ``lower``; None: there are no more than that."""
        ...

    @property
    def reader(self) -> ChunkReader:
        """The reading part, for executors."""
        ...


class CopyFence(NamedTuple):
    """Which run may write chunks: its epoch, and the attempt of the copy."""

    epoch: int
    attempt: int


class ChunkDone(NamedTuple):
    """What one chunk has put into the sink, and how far its view has seen."""

    rows: int
    size_bytes: int
    high_ts: Ts


class PlannedChunk(NamedTuple):
    """A chunk, and what it has put into the sink; None: it is not done."""

    chunk: KeyRange
    done: ChunkDone | None


class ChunkWriter(Protocol):
    """Executor side of a sink. Frozen and picklable; opens its own connection, and keeps it per process."""

    def require(self) -> None:
        """Raise ConfigError if the database does not stop a late writer of a chunk. Called on the driver, before anything is made."""
        ...

    def write(
        self, fence: CopyFence, table: CopyTable, target: TableName, chunk: KeyRange, rows: Iterator[RowBlock], finish: Callable[[], Ts]
    ) -> ChunkDone:
        """Write a chunk into ``target``, and its row of ``copy_chunk``, in one transaction.

        ``CopyBook.share`` locks the copy and checks the fence first; ``finish`` is called before COMMIT, which its error prevents. A chunk
        that is done already is not written again. Raises Fenced; FatalSinkError if the sink has not taken all rows, or has
        altered one (a warning); RetryableSinkError, UnknownOutcome: the caller repeats the chunk, which is then found done or is written.
        """
        ...
