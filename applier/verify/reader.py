"""The port of one side: a session that reads and changes nothing. One thread uses it at a time; it connects when it is first used."""

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from applier.model.errors import FatalSinkError
from applier.model.events import TableName
from applier.model.position import Ts
from applier.verify.scope import Checksum, Key, Scope, Value
from applier.verify.side import Names, ServerKind, SideTable
from applier.verify.table_pair import TablePair


class TableChanged(FatalSinkError):
    """A DDL has changed or removed the table since the catalogue was read."""


class Reader(Protocol):
    """Reads one side. Between ``begin`` and ``end`` it sees one state of the database. Errors of the database come out as ours."""

    @property
    def kind(self) -> ServerKind:
        """Which database it is."""
        ...

    def names(self, *, without: Collection[str]) -> Names:
        """Return the names of all tables and views, except those in the schemas ``without`` (casefolded) and in those of the system."""
        ...

    def describe(self, tables: Collection[TableName]) -> Sequence[SideTable]:
        """Describe tables that exist."""
        ...

    def begin(self, snapshot_ts: Ts | None = None) -> None:
        """Begin to see one state: upstream's TiDB as it was at ``snapshot_ts``, every other database as it is now."""
        ...

    def end(self) -> None:
        """Release the snapshot, and the locks on the definitions of tables."""
        ...

    def checkpoint_ts(self) -> Ts | None:
        """Return the checkpoint of the replica in the state that is seen; None if this side has no bookkeeping, or no replica."""
        ...

    def checksum(self, pair: TablePair, scope: Scope) -> Checksum:
        """Return the checksum of some rows."""
        ...

    def checksums(self, pair: TablePair, scope: Scope, bits: int) -> Mapping[int, Checksum]:
        """Return the checksum of each part that has rows, divided by the first ``bits`` of the digest of the key."""
        ...

    def digests(self, pair: TablePair, scope: Scope) -> Sequence[tuple[Key, str]]:
        """Return key and digest of each row."""
        ...

    def rows(self, pair: TablePair, keys: Sequence[Key]) -> Sequence[tuple[Value, ...]]:
        """Return the values of all columns of the rows with these keys; more rows may come, where the collation takes keys for equal."""
        ...

    def bound(self, pair: TablePair, low: Key | None, rows: int) -> Key | None:
        """Return the greatest of the next so many keys after ``low``; None if fewer are left."""
        ...

    def is_above(self, pair: TablePair, key: Key, low: Key) -> bool:
        """Return whether this side orders ``key`` after ``low``."""
        ...

    def clock_ms(self) -> int:
        """Return this side's clock: milliseconds since 1970."""
        ...

    def close(self) -> None:
        """Close the session."""
        ...
