"""The port of a database's loader: it takes the rows of dumps, which programs of the MySQL family have written as INSERTs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol, Self

from applier.model.events import FoldedName, TableName


@dataclass(frozen=True, slots=True, kw_only=True)
class DumpForm:
    """How the files of a dump write values. ``zone``: of TIMESTAMP. ``is_of_log``: upstream writes a binlog, which TiDB does not.

    ``named_bytes``: the columns of MariaDB's types that a dump has as text and a binlog as bytes, by the sink's tables; it grows.
    """

    zone: str
    named_bytes: Mapping[FoldedName, Mapping[str, str]]
    is_of_log: bool


class DumpRows(Protocol):
    """A session that takes the rows of one file of a dump, in its order; it commits at the end of the block."""

    def set_charset(self, name: str) -> None:
        """Take the character set of what follows. ConfigError: it cannot be read."""
        ...

    def set_zone(self, zone: str) -> None:
        """Take the time zone of what follows."""
        ...

    def write(self, statement: bytes, end: int, table: TableName) -> int:
        """Write the rows of an INSERT into a table of the sink; return their number. ``end``: of the name of the table in its text."""
        ...

    def commit(self) -> None:
        """Commit what was written."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None: ...


class DumpLoader(Protocol):
    """Loads dumps into the sink, whose bookkeeping is there. Names are the sink's. Any thread may open rows."""

    def present(self, names: Sequence[TableName]) -> Sequence[TableName]:
        """Return which of these tables and views are there."""
        ...

    def drop(self, tables: Sequence[TableName], views: Sequence[TableName]) -> None:
        """Drop tables and views, if they are there."""
        ...

    def count(self, tables: Sequence[TableName]) -> Mapping[TableName, int]:
        """Return how many rows each of these tables has."""
        ...

    def open_rows(self, form: DumpForm, file: str) -> DumpRows:
        """Return a session for the rows of a file. ``form`` is kept: its names grow while the load runs."""
        ...
