"""The definition of a table as MySQL means it: columns, indexes, defaults. Values that can be compared, and written in MySQL's words."""

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final

from applier.ddl.column_type import ColumnType
from applier.model.events import TableName

PRIMARY: Final = "PRIMARY"
"""The name of the primary key among a table's indexes."""


class DefaultKind(StrEnum):
    """What a DEFAULT clause holds."""

    LITERAL = "literal"
    NOW = "now"
    EXPRESSION = "expression"


@dataclass(frozen=True, slots=True)
class Default:
    """A DEFAULT clause: ``text`` in MySQL's words; ``DEFAULT NULL`` is no default."""

    kind: DefaultKind
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnDefinition:
    """A column in MySQL's words. ``generated`` is its expression, '' for an ordinary column."""

    name: str
    type: ColumnType
    nullable: bool = True
    default: Default | None = None
    generated: str = ""
    stored: bool = False

    @property
    def mysql(self) -> str:
        """The definition without the name, as MySQL writes it."""
        text = str(self.type) + ("" if self.nullable else " NOT NULL")
        if self.generated:
            text += f" GENERATED ALWAYS AS ({self.generated}) " + ("STORED" if self.stored else "VIRTUAL")
        if self.default is not None:
            text += f" DEFAULT {self.default.text}"
        return text


@dataclass(frozen=True, slots=True)
class IndexPart:
    """A part of an index: a column, perhaps only its first ``prefix`` characters or bytes, or an ``expression`` (then ``column`` is '')."""

    column: str
    prefix: int = 0
    expression: str = ""

    @property
    def mysql(self) -> str:
        """The part as MySQL writes it."""
        if self.expression:
            return f"({self.expression})"
        return "`" + self.column.replace("`", "``") + "`" + (f"({self.prefix})" if self.prefix else "")


@dataclass(frozen=True, slots=True)
class IndexDefinition:
    """An index apart from the primary key."""

    name: str
    parts: tuple[IndexPart, ...]
    unique: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TableDefinition:
    """A table. ``primary_key`` is empty if there is none; parts of it may have prefixes, then it is stored as a unique index."""

    name: TableName
    columns: tuple[ColumnDefinition, ...]
    primary_key: tuple[IndexPart, ...] = ()
    indexes: tuple[IndexDefinition, ...] = field(default=())

    def column(self, name: str) -> ColumnDefinition | None:
        """Find a column by its name without regard to case."""
        folded = name.casefold()
        return next((column for column in self.columns if column.name.casefold() == folded), None)

    def index(self, name: str) -> IndexDefinition | None:
        """Find an index by its name without regard to case."""
        folded = name.casefold()
        return next((index for index in self.indexes if index.name.casefold() == folded), None)

    def renamed(self, name: TableName) -> "TableDefinition":
        """Return the definition under another name."""
        return replace(self, name=name)
