"""MySQL text of the simulated upstream: DDL as TiDB prints it for the wire, and DML for an oracle of the MySQL family.

Schema names can be mapped, so that an oracle and the sink share a server.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from applier.demo.simulator.column_type import CHARACTER_CLASSES, NUMBER_CLASSES, TypeClass
from applier.demo.simulator.json_text import Flavour
from applier.demo.simulator.operation import (
    AddColumn,
    AddForeignKey,
    AddIndex,
    AlterTable,
    Clause,
    CreateSchema,
    CreateTable,
    CreateTableLike,
    CreateView,
    Ddl,
    DropColumn,
    DropForeignKey,
    DropIndex,
    DropSchema,
    DropTable,
    DropView,
    ModifyColumn,
    RenameColumn,
    RenameIndex,
    RenameTable,
    RowChange,
    SetComment,
    SetDefault,
    TruncateTable,
)
from applier.demo.simulator.schema import Table, UpstreamColumn, UpstreamIndex
from applier.demo.simulator.session_zone import in_session
from applier.model.events import TableName, Value

SchemaMap = Callable[[str], str]


def same_schema(schema: str) -> str:
    """Leave schema names as they are."""
    return schema


def quote_name(name: str) -> str:
    """Quote an identifier."""
    return "`" + name.replace("`", "``") + "`"


def quote_text(text: str) -> str:
    r"""Quote a string literal as TiDB prints it: quotes doubled, backslashes doubled."""
    return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"


def literal(column: UpstreamColumn, value: Value) -> str:
    """Write ``value`` as a literal for an oracle. Numbers stay numbers: ENUM and SET are chosen by ordinal and mask."""
    if value is None:
        return "NULL"
    kind = column.type.kind
    if isinstance(value, bytes):
        return f"X'{value.hex()}'"
    if kind in NUMBER_CLASSES:
        return repr(value)
    if kind is TypeClass.DECIMAL:
        return str(value)
    raw = str(value).encode()
    return f"_utf8mb4 X'{raw.hex()}'" if raw else "''"


def default_text(column: UpstreamColumn) -> str:
    """Write a DEFAULT as TiDB prints it: strings with a charset introducer."""
    value = column.default
    kind = column.type.kind
    if value is None:
        return "NULL"
    if kind in (TypeClass.ENUM, TypeClass.SET):
        return "_UTF8MB4" + quote_text(label_text(column, int(value)))
    if kind in NUMBER_CLASSES or kind is TypeClass.DECIMAL:
        return str(value)
    if isinstance(value, bytes):
        return f"X'{value.hex()}'"
    if kind is TypeClass.TIMESTAMP:
        return quote_text(in_session(str(value)))
    return ("_UTF8MB4" if kind in CHARACTER_CLASSES else "") + quote_text(str(value))


def label_text(column: UpstreamColumn, value: int) -> str:
    """Spell an ENUM ordinal or a SET mask by its labels."""
    labels = column.type.labels
    if column.type.kind is TypeClass.ENUM:
        return labels[value - 1] if value else ""
    return ",".join(label for place, label in enumerate(labels) if value >> place & 1)


def column_text(column: UpstreamColumn, auto_increment: str = "") -> str:
    """Write a column definition."""
    words = [quote_name(column.name), column.type.sql]
    if column.generation is not None:
        words.append(f"GENERATED ALWAYS AS ({column.generation.expression(quote_name(column.generation.source))})")
        words.append("STORED" if column.generation.stored else "VIRTUAL")
    if not column.nullable:
        words.append("NOT NULL")
    elif column.type.kind is TypeClass.TIMESTAMP:
        words.append("NULL")  # older servers make a bare TIMESTAMP NOT NULL
    if column.name == auto_increment:
        words.append("AUTO_INCREMENT")
    if column.has_default:
        words.append("DEFAULT " + default_text(column))
    return " ".join(words)


def names_text(names: Sequence[str]) -> str:
    """Write a list of identifiers."""
    return ",".join(map(quote_name, names))


def index_text(index: UpstreamIndex) -> str:
    """Write an index inside CREATE TABLE."""
    columns = f"({_parts(index)})"
    if index.primary:
        return f"PRIMARY KEY{columns} /*T![clustered_index] NONCLUSTERED */"
    return f"{'UNIQUE' if index.unique else 'INDEX'} {_index_name(index)}{columns}"


def _parts(index: UpstreamIndex) -> str:
    return f"({index.expression})" if index.expression else names_text(index.columns)


def _index_name(index: UpstreamIndex) -> str:
    return quote_name(index.name) if index.named else ""


def create_table_text(table: Table, spelled: str) -> str:
    """Write CREATE TABLE for the name as ``spelled``."""
    parts = [column_text(column, table.auto_increment) for column in table.columns] + [index_text(index) for index in table.indexes]
    options = " ENGINE = InnoDB DEFAULT CHARACTER SET = UTF8MB4 DEFAULT COLLATE = UTF8MB4_BIN"
    hashed = f" PARTITION BY HASH ({quote_name(table.partition_by)}) PARTITIONS {table.partitions}" if table.partitions else ""
    return f"CREATE TABLE {spelled} ({','.join(parts)}){options}{hashed}"


class DdlWriter:
    """Writes DDL text. ``flavour`` decides qualification and wording; both mean the same."""

    def __init__(self, flavour: Flavour = Flavour.TIFLOW, schema_map: SchemaMap = same_schema) -> None:
        self._qualify = flavour is Flavour.TICDC
        self._map = schema_map

    def write(self, ddl: Ddl) -> str:  # noqa: C901, PLR0911 - one case per kind of DDL
        """Write one statement; the session's database is the schema of the event."""
        match ddl:
            case CreateSchema(schema):
                return f"CREATE DATABASE {self._schema(schema)} CHARACTER SET = utf8mb4 COLLATE = utf8mb4_bin"
            case DropSchema(schema):
                return f"DROP DATABASE {self._schema(schema)}"
            case CreateTable(table):
                return create_table_text(table, quote_name(table.name.table))
            case CreateTableLike(name, model):
                return f"CREATE TABLE {quote_name(name.table)} LIKE {self._full(model)}"
            case DropTable(name):
                return f"DROP TABLE {self._full(name)}"
            case TruncateTable(name):
                return f"TRUNCATE TABLE {quote_name(name.table)}"
            case RenameTable(old, new):
                return self._rename(old, new)
            case CreateView():
                return self._view(ddl)
            case DropView(name):
                return f"DROP VIEW {self._full(name)}"
            case AlterTable(before, clauses):
                return self._alter(before, clauses)

    def _schema(self, schema: str) -> str:
        return quote_name(self._map(schema))

    def _full(self, name: TableName) -> str:
        return f"{self._schema(name.schema)}.{quote_name(name.table)}"

    def _rename(self, old: TableName, new: TableName) -> str:
        if self._qualify or old.schema != new.schema:
            return f"RENAME TABLE {self._full(old)} TO {self._full(new)}"
        return f"ALTER TABLE {quote_name(old.table)} RENAME AS {quote_name(new.table)}"

    def _view(self, view: CreateView) -> str:
        columns = names_text(view.columns)
        head = "CREATE ALGORITHM = UNDEFINED DEFINER = CURRENT_USER SQL SECURITY DEFINER VIEW"
        return f"{head} {quote_name(view.name.table)} ({columns}) AS SELECT {columns} FROM {self._full(view.source)}"

    def _alter(self, before: Table, clauses: Sequence[Clause]) -> str:
        name = quote_name(before.name.table)
        if len(clauses) == 1 and isinstance(clauses[0], AddIndex) and clauses[0].create:
            index = clauses[0].index
            return f"CREATE {'UNIQUE ' if index.unique else ''}INDEX {quote_name(index.name)} ON {name} ({names_text(index.columns)})"
        return f"ALTER TABLE {name} " + ", ".join(_clause(before, clause) for clause in clauses)


def _clause(before: Table, clause: Clause) -> str:  # noqa: C901, PLR0911 - one case per kind of clause
    match clause:
        case AddColumn(column, after):
            return f"ADD COLUMN {column_text(column)}{_place(after)}"
        case DropColumn(name):
            return f"DROP COLUMN {quote_name(name)}"
        case RenameColumn(old, new, change):
            if not change:
                return f"RENAME COLUMN {quote_name(old)} TO {quote_name(new)}"
            return f"CHANGE COLUMN {quote_name(old)} {column_text(replace(before.column(old), name=new))}"
        case ModifyColumn(column, after):
            return f"MODIFY COLUMN {column_text(column)}{_place(after)}"
        case SetDefault(column):
            verb = f"SET DEFAULT {default_text(column)}" if column.has_default else "DROP DEFAULT"
            return f"ALTER COLUMN {quote_name(column.name)} {verb}"
        case AddIndex(index, _):
            return f"ADD {'UNIQUE ' if index.unique else ''}INDEX {_index_name(index)}({_parts(index)})"
        case DropIndex(name):
            return f"DROP INDEX {quote_name(name)}"
        case RenameIndex(old, new):
            return f"RENAME INDEX {quote_name(old)} TO {quote_name(new)}"
        case AddForeignKey(_, column_name, target):
            return f"ADD FOREIGN KEY ({quote_name(column_name)}) REFERENCES {quote_name(before.name.table)} ({quote_name(target)})"
        case DropForeignKey(name):
            return f"DROP FOREIGN KEY {quote_name(name)}"
        case SetComment(comment):
            return f"COMMENT = {quote_text(comment)}"


def _place(after: str | None) -> str:
    if after is None:
        return ""
    return f" AFTER {quote_name(after)}" if after else " FIRST"


class DmlWriter:
    """Writes the row changes of one commit for an oracle: what leaves, then what stays and changes, then what comes."""

    def __init__(self, schema_map: SchemaMap = same_schema) -> None:
        self._map = schema_map

    def write(self, changes: Sequence[RowChange]) -> list[str]:
        """Return statements in an order that never violates a unique index on the way."""
        deletes, updates, inserts = [], [], []
        for change in changes:
            if change.before is not None and change.after is not None and not changes_unique_value(change):
                updates.append(self._update(change))
                continue
            if change.before is not None:
                deletes.append(f"DELETE FROM {self._name(change.table)} WHERE {self._where(change)}")
            if change.after is not None:
                values = ",".join(literal(*pair) for pair in zip(change.table.columns, change.after, strict=True))
                names = names_text([column.name for column in change.table.columns])
                inserts.append(f"INSERT INTO {self._name(change.table)} ({names}) VALUES ({values})")
        return deletes + updates + inserts

    def _name(self, table: Table) -> str:
        return f"{quote_name(self._map(table.name.schema))}.{quote_name(table.name.table)}"

    def _where(self, change: RowChange) -> str:
        columns, row = change.table.columns, change.before or ()
        places = change.table.handle_places or range(len(columns))
        where = " AND ".join(f"{quote_name(columns[place].name)} <=> {literal(columns[place], row[place])}" for place in places)
        return where if change.table.handle_places else f"{where} LIMIT 1"

    def _update(self, change: RowChange) -> str:
        columns, after = change.table.columns, change.after or ()
        pairs = ",".join(f"{quote_name(column.name)}={literal(column, value)}" for column, value in zip(columns, after, strict=True))
        return f"UPDATE {self._name(change.table)} SET {pairs} WHERE {self._where(change)}"


def changes_unique_value(change: RowChange) -> bool:
    """Return whether an update changes the handle key or any unique key: the producer's rule for splitting it."""
    before, after, table = change.before, change.after, change.table
    if before is None or after is None:
        return False
    places = {table.position[name] for index in table.unique_indexes for name in index.columns}
    return any(before[place] != after[place] for place in places)
