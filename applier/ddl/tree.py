"""The tree of a statement: what kind of statement it is, what it names, and where in its text its clauses and elements stand.

The tree is shallow on purpose. It cuts a statement into clauses, columns and indexes and reads how each begins; what stands inside of them
(types, options, expressions) stays text, to which ``Tree.part`` gives a cursor. So every statement that TiDB prints has a tree, whatever
options the next version brings, and who needs the inside reads it as strictly as it must (``column_parser``, ``clause_reader``).

Places are indexes of tokens; a ``Span`` is the first and the last of them, and empty if the last is before the first.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, TypeAlias

from applier.ddl.cursor import Cursor
from applier.ddl.tokens import Token
from applier.model.events import TableName

Span = tuple[int, int]


class NamePlace(NamedTuple):
    """Where a table is named, or with ``table`` None a schema. ``schema`` is None where it is not written."""

    schema: Token | None
    table: Token | None

    def name(self, default_schema: str) -> TableName:
        """Return the name; unqualified ones belong to ``default_schema``."""
        return TableName(default_schema if self.schema is None else self.schema.text, "" if self.table is None else self.table.text)


class ElementKind(StrEnum):
    """What an element of a table is."""

    COLUMN = "column"
    INDEX = "index"
    FOREIGN_KEY = "foreign key"
    CHECK = "check"


@dataclass(frozen=True, slots=True, kw_only=True)
class Element:
    """A column, index or constraint, in CREATE TABLE or after ADD.

    ``index_kind`` is PRIMARY, UNIQUE, FULLTEXT, SPATIAL, VECTOR, COLUMNAR, HYBRID or ''. ``name`` is the column's or index's own,
    ``constraint`` the one after CONSTRAINT. ``condition`` is IF NOT EXISTS. ``body`` is the place after all of that.
    """

    span: Span
    kind: ElementKind
    body: int
    index_kind: str = ""
    name: Token | None = None
    constraint: Token | None = None
    condition: Span | None = None


class ClauseKind(StrEnum):
    """What a clause of ALTER TABLE does."""

    ADD = "add"
    ADD_PARTITION = "add partition"
    DROP_COLUMN = "drop column"
    DROP_INDEX = "drop index"
    DROP_PRIMARY_KEY = "drop primary key"
    DROP_FOREIGN_KEY = "drop foreign key"
    DROP_CONSTRAINT = "drop constraint"
    DROP_PARTITION = "drop partition"
    MODIFY = "modify"
    CHANGE = "change"
    RENAME_TABLE = "rename table"
    RENAME_COLUMN = "rename column"
    RENAME_INDEX = "rename index"
    ALTER_COLUMN = "alter column"
    ALTER_INDEX = "alter index"
    ALTER_CONSTRAINT = "alter constraint"
    EXCHANGE_PARTITION = "exchange partition"
    PARTITIONING = "partitioning"
    """Another change of partitions."""
    CONVERT = "convert"
    OTHER = "other"
    """Options of the table and of ALTER TABLE itself, and whatever is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterClause:
    """One clause of ALTER TABLE.

    ``name`` is the column, index or partition that it is about, ``new_name`` what a RENAME or CHANGE calls it, ``table`` the other table of
    a RENAME or EXCHANGE. ``elements`` are what ADD adds, ``is_list`` with parentheses around them. ``body`` is the place after all names.
    """

    span: Span
    kind: ClauseKind
    body: int
    name: Token | None = None
    new_name: Token | None = None
    table: NamePlace | None = None
    elements: tuple[Element, ...] = ()
    is_list: bool = False
    condition: Span | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateTableStatement:
    """CREATE TABLE. ``body`` is the place after the name; the spans are empty where the statement has no such part."""

    table: NamePlace
    body: int
    like: NamePlace | None = None
    elements: tuple[Element, ...] = ()
    options: Span = (0, -1)
    partitioning: Span = (0, -1)
    if_not_exists: bool = False
    or_replace: bool = False
    is_temporary: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterTableStatement:
    """ALTER TABLE. ``is_understood``: each clause begins with a word that can begin one."""

    table: NamePlace
    clauses: tuple[AlterClause, ...]
    is_understood: bool
    ignore: Span | None = None
    condition: Span | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexStatement:
    """CREATE INDEX or DROP INDEX. ``parts`` are inside the parenthesis; options stand in ``before_table`` and ``options``."""

    is_create: bool
    name: Token
    table: NamePlace
    index_kind: str
    before_table: Span
    parts: Span
    options: Span
    condition: Span | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateViewStatement:
    """CREATE VIEW. ``body`` is the place after the name."""

    view: NamePlace
    body: int
    or_replace: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaStatement:
    """CREATE, ALTER or DROP of a schema. ``schema`` None: the event's own."""

    verb: str
    schema: NamePlace | None
    options: Span
    has_condition: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DropTablesStatement:
    """DROP TABLE or DROP VIEW."""

    tables: tuple[NamePlace, ...]
    is_view: bool
    if_exists: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RenameTablesStatement:
    """RENAME TABLE: pairs of an old and a new name, carried out in this order."""

    pairs: tuple[tuple[NamePlace, NamePlace], ...]
    condition: Span | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TruncateTableStatement:
    """TRUNCATE TABLE."""

    table: NamePlace


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoverTableStatement:
    """RECOVER or FLASHBACK TABLE. ``table`` None: by the number of a job; ``new`` is what follows TO."""

    table: NamePlace | None
    new: NamePlace | None


Node: TypeAlias = (
    CreateTableStatement
    | AlterTableStatement
    | IndexStatement
    | CreateViewStatement
    | SchemaStatement
    | DropTablesStatement
    | RenameTablesStatement
    | TruncateTableStatement
    | RecoverTableStatement
)


@dataclass(frozen=True, slots=True)
class Tree:
    """A statement that was read."""

    text: str
    tokens: Sequence[Token]
    node: Node

    def part(self, first: int, last: int | None = None) -> Cursor:
        """Return a cursor over the tokens from ``first`` to ``last``, or to the end."""
        return Cursor(self.text, self.tokens, first, last)

    @property
    def elements(self) -> Iterator[Element]:
        """Columns, indexes and constraints that CREATE TABLE lists, or that ALTER TABLE adds."""
        match self.node:
            case CreateTableStatement(elements=elements):
                yield from elements
            case AlterTableStatement(clauses=clauses):
                for clause in clauses:
                    yield from clause.elements
            case _:
                return
