"""Executes one DDL of upstream on the file: a dispatcher over the statements that TiDB prints. Runs inside the caller's transaction.

CREATE SCHEMA leaves a trace in the ledger only: a schema is a prefix, and exists while it has a table. A statement that the file already
satisfies (the table to drop is absent, the very same table exists) is done; what cannot be translated stops with the statement.

Columns change by ALTER TABLE ADD COLUMN where SQLite can, else by building the table again, as sqlite.org/lang_altertable.html describes in
section 7. Rows are kept exactly: values of a column whose type changes pass through ``conversion.py``; new columns take what MySQL gives
existing rows.

A view holds no rows of its own, so sqlglot's translation of its query is trusted; SQLite must be able to prepare the result, else the DDL
stops. DECIMAL is text in the file: a view that calculates with it shows floating point.
"""

import sqlite3
from typing import Any, Final, assert_never

import sqlglot
from sqlglot import ErrorLevel, exp
from sqlglot.errors import SqlglotError

from applier.ddl import parse_ddl
from applier.ddl.charset import NARROW, holder
from applier.ddl.column_type import ColumnType, TypeFamily
from applier.ddl.old_values import OLD_TIMESTAMPS, OWN_VALUES, own_values
from applier.ddl.parser import BY_HAND, NO_SEQUENCE, OTHER_ROWS, PLAIN_COLUMN, parse
from applier.ddl.portable_expression import named_columns
from applier.ddl.table_draft import (
    ColumnDefinition,
    DefaultKind,
    DraftColumn,
    TableDefinition,
    TableDraft,
    alter,
    changes_partitioned_rows,
    emptied_partitions,
    parse_index,
    parse_table,
)
from applier.ddl.tokens import Cursor, DdlSyntaxError
from applier.ddl.tree import (
    AlterTableStatement,
    ClauseKind,
    CreateTableStatement,
    CreateViewStatement,
    DropTablesStatement,
    IndexStatement,
    RecoverTableStatement,
    RenameTablesStatement,
    SchemaStatement,
    TruncateTableStatement,
    WrittenName,
    with_new_names,
)
from applier.ddl.zone_use import in_zone_of_need
from applier.model.errors import ApplierError, FatalSinkError, NeedsOperator, Remedy
from applier.model.events import DdlEvent, FoldedName, TableName
from applier.sinks.sqlite.catalogue import StoredObject, find_objects, read_definition, tables_with_rows
from applier.sinks.sqlite.create_statement import column_clause, create_index, create_indexes, create_table, is_computed, stored_indexes
from applier.sinks.sqlite.literal_value import blob, bring_to_wire, fill_value, plain, table_of_wire
from applier.sinks.sqlite.names import Sql, compose, index_name, quote, quote_all, stored_name
from applier.sinks.sqlite.stored_value import Conversion, DdlTime, Inexact, Stored, as_text, conversion_of_rows, same


def in_its_zone(connection: sqlite3.Connection, ddl: DdlEvent) -> DdlEvent:
    """Return the DDL with the zone of its session if it depends on it. NeedsOperator: it does, and the zone is not known."""
    statement = parse_ddl(ddl)
    tables = () if statement is None else statement.needs[:1]
    entry = find_objects(connection).get(tables[0].fold()) if tables else None

    def types() -> dict[str, ColumnType]:
        definition = None if entry is None or entry.is_view else read_definition(connection, entry)
        return {} if definition is None else {column.name.casefold(): column.type for column in definition.columns}

    def holds(column: str) -> bool:
        if entry is None:
            return False
        condition = compose(" WHERE {column} IS NOT NULL", column=quote(column)) if column else Sql("")
        statement = compose("SELECT EXISTS (SELECT 1 FROM {table}{condition})", table=quote(entry.stored), condition=condition)
        return bool(connection.execute(statement).fetchone()[0])

    return in_zone_of_need(ddl, types, holds)


def create_view(connection: sqlite3.Connection, name: TableName, cursor: Cursor, schema: str) -> None:
    """Create a view; ``cursor`` is after its name. DdlSyntaxError if the query cannot be translated. No view of that name may exist.

    ``schema`` is that of unqualified names.
    """
    columns = _column_names(cursor)
    cursor.expect("AS")
    query = _translate(connection, cursor, schema)
    statement = compose(
        "CREATE VIEW {name}{columns} AS {query}",
        name=quote(stored_name(name)),
        columns=compose(" ({names})", names=quote_all(columns)) if columns else Sql(""),
        query=query,
    )
    try:
        connection.execute(statement)
        # CREATE VIEW does not look at its tables; only preparing a query does.
        connection.execute(compose("EXPLAIN SELECT * FROM {name}", name=quote(stored_name(name))))
    except sqlite3.OperationalError as error:
        raise cursor.unexpected(f"a query that SQLite understands ({error})") from error


def _column_names(cursor: Cursor) -> list[str]:
    names: list[str] = []
    if cursor.sees("("):
        inside = cursor.parenthesis()
        while not inside.is_done:
            names.append(inside.name())
            inside.accept(",")
    return names


def _translate(connection: sqlite3.Connection, cursor: Cursor, schema: str) -> Sql:
    source = cursor.source()
    try:
        tree = sqlglot.parse_one(source, read="mysql")
        _rename_tables(tree, schema, find_objects(connection))
        return Sql(tree.sql("sqlite", unsupported_level=ErrorLevel.RAISE, identify=True))
    except SqlglotError as error:
        raise cursor.unexpected("a query that can be translated") from error


def _rename_tables(tree: exp.Expr, schema: str, present: dict[FoldedName, StoredObject]) -> None:
    """Give each table its name in the file, as the file spells it, and, as alias, the name by which the query's columns call it."""
    common = {cte.alias.casefold() for cte in tree.find_all(exp.CTE)}
    for table in list(tree.find_all(exp.Table)):
        if table.db or table.name.casefold() not in common:
            # Columns of the query say t.a, while the table is called shop.t in the file.
            alias = table.alias or table.name
            name = TableName(table.db or schema, table.name)
            stored = present[name.fold()].stored if name.fold() in present else stored_name(name)
            renamed = exp.to_identifier(stored, quoted=True)
            table.set("this", renamed)
            table.set("db", None)
            table.set("alias", exp.TableAlias(this=exp.to_identifier(alias, quoted=True)))
    for column in tree.find_all(exp.Column):
        column.set("db", None)
        column.set("catalog", None)


_SCRATCH: Final = "applier_rebuild"


def change_columns(
    connection: sqlite3.Connection, old: TableDefinition, new: TableDefinition, columns: list[DraftColumn], ddl_time: DdlTime
) -> bool:
    """Bring the table from ``old`` to ``new``; return whether its indexes were created again.

    ``columns`` are the new ones with their sources.
    """
    is_narrowed = any(column.charset in NARROW for column in columns)
    if old.columns == new.columns and old.primary_key == new.primary_key and not is_narrowed:
        return False
    if _can_append(old, new) and not is_narrowed:
        for column in new.columns[len(old.columns) :]:
            _append(connection, new, column, ddl_time)
        return False
    _rebuild(connection, old, new, columns, ddl_time)
    return True


def _can_append(old: TableDefinition, new: TableDefinition) -> bool:
    """SQLite appends nullable columns with a constant default at once; others need a rebuild."""
    return (
        new.columns[: len(old.columns)] == old.columns
        and old.primary_key == new.primary_key
        and all(
            # ADD COLUMN of NOT NULL wants a DEFAULT, which our columns do not carry (create_statement.py).
            column.nullable and not column.generated and (column.default is None or column.default.kind is DefaultKind.LITERAL)
            for column in new.columns[len(old.columns) :]
        )
    )


def _append(connection: sqlite3.Connection, table: TableDefinition, column: ColumnDefinition, ddl_time: DdlTime) -> None:
    fill = fill_value(column, ddl_time)
    statement = compose(
        "ALTER TABLE {table} ADD COLUMN {clause}", table=quote(stored_name(table.name)), clause=column_clause(table, column)
    )
    if isinstance(fill, float):  # SQLite takes no exact spelling of a fraction as a default of an appended column
        connection.execute(statement)
        update = compose("UPDATE {table} SET {column} = ?", table=quote(stored_name(table.name)), column=quote(column.name))
        connection.execute(update, (fill,))
        return
    if fill is not None:
        statement = compose(
            "{statement} DEFAULT {value}", statement=statement, value=Sql(blob(fill) if isinstance(fill, bytes) else plain(fill))
        )
    connection.execute(statement)


def _rebuild(
    connection: sqlite3.Connection, old: TableDefinition, new: TableDefinition, columns: list[DraftColumn], ddl_time: DdlTime
) -> None:
    stored = stored_name(old.name)
    # No index yet: SQLite fills a table without indexes faster, and their names are still taken by the old table's.
    connection.execute(create_table(new, _SCRATCH))
    written = [column for column in columns if not is_computed(new, column.definition)]
    _copy(connection, old, written, ddl_time)
    connection.execute(compose("DROP TABLE {table}", table=quote(stored)))
    connection.execute(compose("ALTER TABLE {scratch} RENAME TO {table}", scratch=quote(_SCRATCH), table=quote(stored)))
    for statement in create_indexes(new):
        connection.execute(statement)


def _copy(connection: sqlite3.Connection, old: TableDefinition, columns: list[DraftColumn], ddl_time: DdlTime) -> None:
    # An empty table has nothing to convert: then types without an exact conversion change too.
    if not connection.execute(compose("SELECT EXISTS (SELECT 1 FROM {table})", table=quote(stored_name(old.name)))).fetchone()[0]:
        return
    _refuse_unknown_values(old, columns)
    reasons: list[str] = []
    sources = [_source(connection, old, column, ddl_time, reasons) for column in columns]
    statement = compose(
        "INSERT INTO {scratch} ({columns}) SELECT {sources} FROM {table}",
        scratch=quote(_SCRATCH),
        columns=quote_all([column.definition.name for column in columns]),
        sources=Sql(",".join(text for text, _ in sources)),
        table=quote(stored_name(old.name)),
    )
    try:
        connection.execute(statement, [fill for text, fill in sources if text == "?"])
    except (sqlite3.OperationalError, sqlite3.IntegrityError) as error:
        # IntegrityError: the STRICT table refused a value, or two values of a key became one.
        if not reasons and not isinstance(error, sqlite3.IntegrityError):
            raise
        raise _inexact(old, reasons[0] if reasons else str(error)) from error


def _refuse_unknown_values(old: TableDefinition, columns: list[DraftColumn]) -> None:
    """Raise NeedsOperator if a STORED column that comes with the rows gets new values: upstream computes the values of old rows."""
    names = {column.source.casefold(): column.definition.name for column in columns if column.source}
    changed = {column.source.casefold() for column in columns if column.source and _type_of(old, column.source) != column.definition.type}
    for column in columns:
        if not column.definition.generated:
            continue
        before = old.column(column.source) if column.source else None
        named = None if before is None else named_columns(before.generated)
        if (
            before is None
            or named is None
            or named & changed
            or before.type != column.definition.type
            or with_new_names(before.generated, names) != column.definition.generated
        ):
            raise NeedsOperator(
                "the DDL gives old rows values of a STORED column, which only upstream can compute",
                remedy=PLAIN_COLUMN,
                table=str(old.name),
                column=column.definition.name,
            )


def _type_of(table: TableDefinition, name: str) -> ColumnType | None:
    column = table.column(name)
    return None if column is None else column.type


def _source(
    connection: sqlite3.Connection, old: TableDefinition, column: DraftColumn, ddl_time: DdlTime, reasons: list[str]
) -> tuple[str, Stored]:
    """Return the expression that gives a new column its values, and the value to bind if the expression is ``?``."""
    before = old.column(column.source) if column.source else None
    if before is None:
        return "?", fill_value(column.definition, ddl_time)
    convert = _within_charset(conversion_of_rows(before.type, column.definition.type, ddl_time), before, column)
    if convert is same:
        return quote(before.name), None
    # Named by number: a column's own name may hold what no function's name may.
    name = f"applier_convert_{len(old.columns)}_{old.columns.index(before)}"
    connection.create_function(name, 1, _guarded(convert, before.name, reasons), deterministic=True)
    return compose("{function}({column})", function=Sql(name), column=quote(before.name)), None


def _within_charset(convert: Conversion, before: ColumnDefinition, column: DraftColumn) -> Conversion:
    """Refuse texts that the new character set does not certainly hold: upstream has question marks instead of them, or refused them."""
    families = {before.type.family, column.definition.type.family}
    charset = column.charset if column.charset in NARROW else column.definition.type.charset
    if families != {TypeFamily.CHARACTER} or charset in {"", before.type.charset}:
        return convert
    holds = holder(charset)

    def checked(value: Stored) -> Stored:
        if not holds(as_text(value)):
            raise Inexact(f"it is not certain that {charset} holds the text")
        return convert(value)

    return checked


def _guarded(convert: Conversion, column: str, reasons: list[str]) -> Conversion:
    def run(value: Stored) -> Stored:
        try:
            return None if value is None else convert(value)
        except (Inexact, ValueError) as error:
            # SQLite passes on that a function failed, and not why.
            reasons.append(f"column {column}: {error}")
            raise

    return run


def _inexact(table: TableDefinition, reason: str) -> NeedsOperator:
    return NeedsOperator(
        "existing rows cannot be converted exactly as upstream converted them",
        remedy=BY_HAND,
        table=str(table.name),
        reason=reason,
    )


MAKE_TABLE: Final = Remedy(
    "sqlite.create-table-as-upstream",
    "Create the table in the sink with upstream's definition and rows, or start again from a dump (`applier docs start_over`)",
)
SAME_COLUMNS: Final = Remedy(
    "sqlite.compare-definitions",
    "Compare their definitions, and the values in old rows, with upstream's; then skip the DDL with `applier ddl skip --ts … --table …`",
)
PARTITION_REMEDY: Final = Remedy(
    "sqlite.change-same-rows-and-skip",
    "Delete or exchange the same rows in the sink, then skip the DDL with `applier ddl skip --ts … --table …`",
)


def apply_ddl(connection: sqlite3.Connection, ddl: DdlEvent, zone: str) -> None:
    """Execute a DDL. NeedsOperator: not expressible here; FatalSinkError: the file is not as the DDL expects it; sqlite3.Error otherwise.

    Both carry the statement. ``zone`` is the zone of times on the wire.
    """
    facts: dict[str, Any] = {"statement": ddl.query, "table": str(ddl.name), "commit_ts": ddl.commit_ts}
    try:
        SchemaChange(connection, in_its_zone(connection, ddl), zone).run()
    except ApplierError as error:
        error.facts |= facts
        raise
    except DdlSyntaxError as error:
        raise NeedsOperator(f"the DDL cannot be translated for SQLite: {error}", remedy=BY_HAND, **facts) from error
    except (sqlite3.IntegrityError, sqlite3.OperationalError, sqlite3.ProgrammingError, UnicodeError) as error:
        raise _refusal(error, facts) from error


def _refusal(error: sqlite3.Error | UnicodeError, facts: dict[str, Any]) -> Exception:
    """Return the meaning of SQLite's refusal of a translated statement; errors of busy files and full disks stay as they are."""
    if isinstance(error, sqlite3.IntegrityError):
        return FatalSinkError(
            "the DDL fails on the sink's rows, although it ran on upstream's", remedy=OTHER_ROWS, reason=str(error), **facts
        )
    # A busy file, a full disk, damaged pages have their own codes, and are retried. SQLITE_ERROR is about the statement.
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
    if isinstance(error, sqlite3.Error) and code & 0xFF != sqlite3.SQLITE_ERROR:
        return error
    return NeedsOperator("SQLite refused the translated DDL", remedy=BY_HAND, reason=str(error), **facts)


class SchemaChange:
    """Executes one DDL on the file."""

    def __init__(self, connection: sqlite3.Connection, ddl: DdlEvent, zone: str) -> None:
        self._connection, self._ddl = connection, ddl
        # A binlog has statements that changed nothing too: IF [NOT] EXISTS found what it asks about.
        self._is_of_log = ddl.is_of_log
        self._ddl_time = DdlTime.of(ddl, zone)
        self._tree = parse(ddl.query)

    def run(self) -> None:
        """Execute the statement."""
        node = self._tree.node
        match node:
            case IndexStatement(is_create=True):
                self._create_index(node)
            case IndexStatement():
                self._drop_index(node)
            case CreateViewStatement():
                self._create_view(node)
            case SchemaStatement(verb="DROP"):
                self._drop_schema(node)
            case SchemaStatement():
                pass  # a schema is a prefix of names here: CREATE and ALTER leave no trace
            case RecoverTableStatement():
                raise self._tree.part(0).unexpected("a DDL that SQLite can express")
            case _:
                self._change_tables(node)

    def _change_tables(
        self, node: CreateTableStatement | AlterTableStatement | DropTablesStatement | RenameTablesStatement | TruncateTableStatement
    ) -> None:
        match node:
            case CreateTableStatement():
                self._create_table(node)
            case AlterTableStatement():
                self._alter(node)
            case DropTablesStatement():
                self._drop_tables(node)
            case RenameTablesStatement():
                for old, new in node.pairs:
                    is_optional = self._is_of_log and node.condition is not None
                    if not is_optional or self._find(self._name(old)) is not None:
                        self._rename_table(self._name(old), self._name(new))
            case TruncateTableStatement():
                entry = self._existing(self._name(node.table))
                self._execute("DELETE FROM {table}", table=quote(entry.stored))
            case _:
                assert_never(node)

    # Existing objects

    def _name(self, place: WrittenName) -> TableName:
        return place.name(self._ddl.schema)

    def _find(self, name: TableName, *, is_view: bool = False) -> StoredObject | None:
        entry = find_objects(self._connection).get(name.fold())
        return entry if entry is not None and entry.is_view == is_view else None

    def _existing(self, name: TableName) -> StoredObject:
        entry = self._find(name)
        if entry is None:
            raise FatalSinkError(
                "the DDL's table does not exist in the sink", remedy=NO_SEQUENCE if self._ddl.is_of_log else MAKE_TABLE, missing=str(name)
            )
        return entry

    def _definition(self, name: TableName) -> TableDefinition:
        definition = read_definition(self._connection, self._existing(name))
        if definition is None:
            raise NeedsOperator(
                "the applier did not create this table, so the MySQL types of its columns are unknown",
                remedy=BY_HAND,
            )
        return definition

    def _execute(self, template: str, **parts: Sql) -> None:
        self._connection.execute(compose(template, **parts))

    # Tables

    def _create_table(self, node: CreateTableStatement) -> None:
        name = self._name(node.table)
        if node.is_temporary:
            raise self._tree.part(0).unexpected("a table that keeps its rows")
        like = None if node.like is None else self._definition(self._name(node.like))
        new = table_of_wire(parse_table(self._tree, node, name), self._ddl_time) if like is None else like.renamed(name)
        # IF NOT EXISTS does not count: upstream has made a table, or there would be no event.
        present = find_objects(self._connection).get(name.fold())
        if present is not None and self._is_of_log and (node.if_not_exists or node.or_replace):
            if node.if_not_exists:
                return
            self._execute("DROP TABLE {name}", name=quote(present.stored))
            present = None
        if present is None:
            for statement in (create_table(new), *create_indexes(new)):
                self._connection.execute(statement)
        elif present.is_view or read_definition(self._connection, present) != new:
            raise FatalSinkError(
                "the sink already has a table of this name, with another definition",
                remedy=Remedy(
                    "sqlite.rename-own-table",
                    "Rename it if it is not upstream's (look at its rows first), or give it upstream's definition and rows",
                ),
            )
        elif tables_with_rows(self._connection, [name]):
            raise FatalSinkError(
                "the sink already has this table, with rows in it",
                remedy=Remedy(
                    "sqlite.compare-rows-and-rename",
                    "Compare its rows with upstream's. If they are not upstream's, rename the table, and start the applier again",
                ),
            )

    def _drop_tables(self, node: DropTablesStatement) -> None:
        # IF EXISTS does not count: an absent table was dropped before, by a replay or by hand.
        for place in node.tables:
            entry = self._find(self._name(place), is_view=node.is_view)
            if entry is not None:
                self._execute("DROP VIEW {name}" if node.is_view else "DROP TABLE {name}", name=quote(entry.stored))

    def _drop_schema(self, node: SchemaStatement) -> None:
        schema = (self._ddl.schema if node.schema is None else self._name(node.schema).schema).casefold()
        for folded, entry in find_objects(self._connection).items():
            if folded.schema == schema:
                self._execute("DROP VIEW {name}" if entry.is_view else "DROP TABLE {name}", name=quote(entry.stored))

    def _rename_table(self, old: TableName, new: TableName) -> None:
        entry = self._existing(old)
        if old.fold() != new.fold() and new.fold() in find_objects(self._connection):
            raise FatalSinkError(
                "the DDL renames a table to a name that already exists in the sink",
                remedy=Remedy("sqlite.compare-tables-of-ddl", "Compare the sink's tables with upstream's"),
                taken=str(new),
            )
        definition = read_definition(self._connection, entry)
        if definition is not None:
            # An index has the table's name in its own: it is created again under the new one.
            self._drop_indexes(definition)
        # By way of a third name: SQLite refuses a rename that changes nothing but the case.
        for before, after in ((entry.stored, "applier_rename"), ("applier_rename", stored_name(new))):
            self._execute("ALTER TABLE {before} RENAME TO {after}", before=quote(before), after=quote(after))
        if definition is not None:
            for statement in create_indexes(definition.renamed(new)):
                self._connection.execute(statement)

    def _drop_indexes(self, table: TableDefinition) -> None:
        for index in stored_indexes(table):
            self._execute("DROP INDEX {name}", name=quote(index_name(table.name, index.name)))

    def _alter(self, node: AlterTableStatement) -> None:
        if emptied_partitions(self._tree, node) == []:
            self._execute("DELETE FROM {table}", table=quote(self._existing(self._name(node.table)).stored))
            return
        if changes_partitioned_rows(self._tree, node):
            raise NeedsOperator(
                "SQLite has no partitions, so the DDL cannot be translated", remedy=PARTITION_REMEDY, statement=self._ddl.query
            )
        name = self._name(node.table)
        if self._is_of_log and node.condition is not None and self._find(name) is None:
            return
        old = self._definition(name)
        draft = TableDraft(old)
        alter(draft, self._tree, node, is_of_mysql=self._is_of_log)
        self._refuse_own_values(old)
        if draft.found and draft.freeze() == old and not self._is_of_log:
            # Upstream's statement has made something, or there would be no event.
            raise FatalSinkError(
                "the DDL changes nothing: the sink already has its columns",
                remedy=SAME_COLUMNS,
                columns=",".join(draft.found),
            )
        self._change(old, draft)
        for clause in node.clauses:
            if clause.kind is ClauseKind.RENAME_TABLE and clause.table is not None:
                self._rename_table(old.name, self._name(clause.table))

    def _refuse_own_values(self, old: TableDefinition) -> None:
        if OLD_TIMESTAMPS in self._ddl.session:
            message = "upstream's session has explicit_defaults_for_timestamp = OFF, whose rules are not translated"
            raise NeedsOperator(message, remedy=BY_HAND)
        column = own_values(self._ddl.query, lambda: {column.name.casefold(): column.type for column in old.columns})
        if column and tables_with_rows(self._connection, [old.name]):
            raise NeedsOperator(OWN_VALUES, remedy=BY_HAND, column=column)

    # Views and indexes

    def _create_view(self, node: CreateViewStatement) -> None:
        name = self._name(node.view)
        present = self._find(name, is_view=True)
        # SQLite has no CREATE OR REPLACE VIEW.
        if node.or_replace and present is not None:
            self._execute("DROP VIEW {view}", view=quote(present.stored))
        create_view(self._connection, name, self._tree.part(node.body), self._ddl.schema)

    def _create_index(self, node: IndexStatement) -> None:
        old = self._definition(self._name(node.table))
        wanted = parse_index(self._tree, node)
        if node.condition is not None and old.index(wanted.name) == wanted:
            return
        draft = TableDraft(old)
        draft.add_index(wanted)
        self._change_indexes(old, draft.freeze())

    def _drop_index(self, node: IndexStatement) -> None:
        old = self._definition(self._name(node.table))
        draft = TableDraft(old)
        if node.condition is not None and not draft.has_index(node.name.text):
            return
        draft.drop_index(node.name.text)
        self._change(old, draft)

    # Changes of a table

    def _change(self, old: TableDefinition, draft: TableDraft) -> None:
        bring_to_wire(old, draft.columns, self._ddl_time)
        new = draft.freeze()
        if not change_columns(self._connection, old, new, draft.columns, self._ddl_time):
            self._change_indexes(old, new)

    def _change_indexes(self, old: TableDefinition, new: TableDefinition) -> None:
        # Drops first: an index whose parts change keeps its name.
        for index in old.indexes:
            if index not in new.indexes:
                self._execute("DROP INDEX {name}", name=quote(index_name(old.name, index.name)))
        for index in new.indexes:
            if index not in old.indexes:
                self._connection.execute(create_index(new, index))
