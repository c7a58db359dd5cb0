"""One side of a comparison, as its catalogue describes it: upstream or the sink."""

from dataclasses import dataclass
from enum import StrEnum

from applier.ddl.column_type import ColumnType
from applier.model.events import FoldedName, TableName
from applier.planner.catalogue import ColumnDescription, TableDescription


class ServerKind(StrEnum):
    """Which database it is: they write the same value in different ways."""

    MYSQL = "mysql"
    MARIADB = "mariadb"
    TIDB = "tidb"
    SQLITE = "sqlite"


@dataclass(frozen=True, slots=True, kw_only=True)
class SideColumn:
    """A column. ``type`` is None if it is none of the types that are replicated."""

    description: ColumnDescription
    type: ColumnType | None
    charset: str = ""
    collation: str = ""

    @property
    def name(self) -> str:
        """The name as this side spells it."""
        return self.description.name


@dataclass(frozen=True, slots=True, kw_only=True)
class SideTable:
    """A table. ``rows`` is an estimate of the server."""

    description: TableDescription
    columns: tuple[SideColumn, ...]
    rows: int = 0

    @property
    def name(self) -> TableName:
        """The name as this side spells it."""
        return TableName(self.description.schema, self.description.table)


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """What a side has: its tables and its views. ``known``: the tables that the replica has written, on the sink."""

    tables: tuple[TableName, ...]
    views: tuple[TableName, ...] = ()
    known: frozenset[FoldedName] = frozenset()
