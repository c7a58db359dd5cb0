"""What happens upstream: row changes and DDLs as structures; other modules write them as text and bytes."""

from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple, TypeAlias

from applier.demo.simulator.schema import Table, UpstreamColumn, UpstreamIndex
from applier.model.events import TableName, Value
from applier.model.position import Ts

Row: TypeAlias = tuple[Value, ...]


class ActionType(IntEnum):
    """TiDB's codes of DDLs, limited to what the simulator makes (open_protocol.md 2.12)."""

    CREATE_SCHEMA = 1
    DROP_SCHEMA = 2
    CREATE_TABLE = 3
    DROP_TABLE = 4
    ADD_COLUMN = 5
    DROP_COLUMN = 6
    ADD_INDEX = 7
    DROP_INDEX = 8
    ADD_FOREIGN_KEY = 9
    DROP_FOREIGN_KEY = 10
    TRUNCATE_TABLE = 11
    MODIFY_COLUMN = 12
    RENAME_TABLE = 14
    SET_DEFAULT = 15
    MODIFY_COMMENT = 17
    RENAME_INDEX = 18
    CREATE_VIEW = 21
    DROP_VIEW = 24
    CREATE_TABLES = 60
    MULTI_SCHEMA_CHANGE = 61


class RowChange(NamedTuple):
    """A row of ``table`` as it was (None: inserted) and as it is (None: deleted), in the order of ``table.columns``."""

    table: Table
    before: Row | None
    after: Row | None


@dataclass(frozen=True, slots=True)
class CreateSchema:
    """CREATE DATABASE."""

    schema: str


@dataclass(frozen=True, slots=True)
class DropSchema:
    """DROP DATABASE with all its tables."""

    schema: str


@dataclass(frozen=True, slots=True)
class CreateTable:
    """CREATE TABLE; ``batch`` if it is one of a CREATE TABLES."""

    table: Table
    batch: bool = False


@dataclass(frozen=True, slots=True)
class CreateTableLike:
    """CREATE TABLE … LIKE."""

    name: TableName
    model: TableName


@dataclass(frozen=True, slots=True)
class DropTable:
    """DROP TABLE."""

    name: TableName


@dataclass(frozen=True, slots=True)
class TruncateTable:
    """TRUNCATE TABLE."""

    name: TableName


@dataclass(frozen=True, slots=True)
class RenameTable:
    """RENAME TABLE; the event carries the new name."""

    old: TableName
    new: TableName


@dataclass(frozen=True, slots=True)
class CreateView:
    """CREATE VIEW ``name`` over some columns of ``source``."""

    name: TableName
    source: TableName
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DropView:
    """DROP VIEW."""

    name: TableName


@dataclass(frozen=True, slots=True)
class AddColumn:
    """ADD COLUMN; ``after`` None: at the end, "": first."""

    column: UpstreamColumn
    after: str | None = None


@dataclass(frozen=True, slots=True)
class DropColumn:
    """DROP COLUMN."""

    name: str


@dataclass(frozen=True, slots=True)
class RenameColumn:
    """RENAME COLUMN, or CHANGE COLUMN with the type as it is if ``change``."""

    old: str
    new: str
    change: bool = False


@dataclass(frozen=True, slots=True)
class ModifyColumn:
    """MODIFY COLUMN to a type that holds every present value; ``after`` as in AddColumn, None: where it is."""

    column: UpstreamColumn
    after: str | None = None


@dataclass(frozen=True, slots=True)
class SetDefault:
    """ALTER COLUMN … SET DEFAULT (or DROP DEFAULT): changes no row."""

    column: UpstreamColumn


@dataclass(frozen=True, slots=True)
class AddIndex:
    """ADD INDEX or ADD UNIQUE INDEX; ``create`` spells it CREATE INDEX."""

    index: UpstreamIndex
    create: bool = False


@dataclass(frozen=True, slots=True)
class DropIndex:
    """DROP INDEX."""

    name: str


@dataclass(frozen=True, slots=True)
class RenameIndex:
    """RENAME INDEX."""

    old: str
    new: str


@dataclass(frozen=True, slots=True)
class AddForeignKey:
    """ADD FOREIGN KEY to a column of the same table, without a name. Upstream chose ``name``; its sessions do not check the key."""

    name: str
    column: str
    target: str


@dataclass(frozen=True, slots=True)
class DropForeignKey:
    """DROP FOREIGN KEY."""

    name: str


@dataclass(frozen=True, slots=True)
class SetComment:
    """A table comment: changes nothing that is compared."""

    comment: str


Clause: TypeAlias = (
    AddColumn
    | DropColumn
    | RenameColumn
    | ModifyColumn
    | SetDefault
    | AddIndex
    | DropIndex
    | RenameIndex
    | AddForeignKey
    | DropForeignKey
    | SetComment
)


@dataclass(frozen=True, slots=True)
class AlterTable:
    """ALTER TABLE; several clauses make one multi-schema change. ``before`` is the table before it."""

    before: Table
    clauses: tuple[Clause, ...]


Ddl: TypeAlias = (
    CreateSchema | DropSchema | CreateTable | CreateTableLike | DropTable | TruncateTable | RenameTable | CreateView | DropView | AlterTable
)


class UpstreamStep(NamedTuple):
    """All that has one commit_ts: row changes under the schemas from before ``ddls``, then the DDLs in their order."""

    ts: Ts
    rows: tuple[RowChange, ...]
    ddls: tuple[Ddl, ...]


def event_name(ddl: Ddl) -> TableName:
    """Return the name that the event of ``ddl`` carries."""
    match ddl:
        case CreateSchema(schema) | DropSchema(schema):
            return TableName(schema, "")
        case CreateTable(table):
            return table.name
        case RenameTable(_, new):
            return new
        case AlterTable(before, _):
            return before.name
        case _:
            return ddl.name


def touched_names(ddl: Ddl) -> frozenset[TableName]:
    """Return the tables whose rows a producer keeps in order with ``ddl``; a schema DDL is (schema, '')."""
    match ddl:
        case RenameTable(old, new):
            return frozenset((old, new))
        case CreateTableLike(name, model):
            return frozenset((name, model))
        case CreateView(name, source, _):
            return frozenset((name, source))
        case _:
            return frozenset((event_name(ddl),))


def routing_name(ddl: Ddl) -> TableName:
    """Return the name that chooses the topic: RENAME goes by the old one (open_protocol.md 3.2)."""
    return ddl.old if isinstance(ddl, RenameTable) else event_name(ddl)


_CLAUSE_TYPES: dict[type, ActionType] = {
    AddColumn: ActionType.ADD_COLUMN,
    DropColumn: ActionType.DROP_COLUMN,
    RenameColumn: ActionType.MODIFY_COLUMN,
    ModifyColumn: ActionType.MODIFY_COLUMN,
    SetDefault: ActionType.SET_DEFAULT,
    AddIndex: ActionType.ADD_INDEX,
    DropIndex: ActionType.DROP_INDEX,
    RenameIndex: ActionType.RENAME_INDEX,
    AddForeignKey: ActionType.ADD_FOREIGN_KEY,
    DropForeignKey: ActionType.DROP_FOREIGN_KEY,
    SetComment: ActionType.MODIFY_COMMENT,
}
_STATEMENT_TYPES: dict[type, ActionType] = {
    CreateSchema: ActionType.CREATE_SCHEMA,
    DropSchema: ActionType.DROP_SCHEMA,
    CreateTable: ActionType.CREATE_TABLE,
    CreateTableLike: ActionType.CREATE_TABLE,
    DropTable: ActionType.DROP_TABLE,
    TruncateTable: ActionType.TRUNCATE_TABLE,
    RenameTable: ActionType.RENAME_TABLE,
    CreateView: ActionType.CREATE_VIEW,
    DropView: ActionType.DROP_VIEW,
}


def action_type(ddl: Ddl) -> ActionType:
    """Return TiDB's code of ``ddl``."""
    if isinstance(ddl, AlterTable):
        return _CLAUSE_TYPES[type(ddl.clauses[0])] if len(ddl.clauses) == 1 else ActionType.MULTI_SCHEMA_CHANGE
    return ActionType.CREATE_TABLES if isinstance(ddl, CreateTable) and ddl.batch else _STATEMENT_TYPES[type(ddl)]
