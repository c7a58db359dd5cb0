"""Executes one DDL of upstream on the file: a dispatcher over the statements that TiDB prints. Runs inside the caller's transaction.

CREATE SCHEMA leaves no trace but the ledger's: a schema is a prefix, and exists while it has a table. A statement that the file already
satisfies (the table to drop is absent, the very same table exists) is done; what cannot be translated stops with the statement.
"""

import sqlite3
from typing import Any, Final, assert_never

from applier.ddl.old_values import OLD_TIMESTAMPS, OWN_VALUES, own_values
from applier.ddl.parser import parse
from applier.ddl.remedy import BY_HAND, NO_SEQUENCE, OTHER_ROWS
from applier.ddl.table import TableDefinition
from applier.ddl.table_draft import TableDraft, alter, changes_partitioned_rows, emptied_partitions, parse_index, parse_table
from applier.ddl.tokens import DdlSyntaxError
from applier.ddl.tree import (
    AlterTableStatement,
    ClauseKind,
    CreateTableStatement,
    CreateViewStatement,
    DropTablesStatement,
    IndexStatement,
    NamePlace,
    RecoverTableStatement,
    RenameTablesStatement,
    SchemaStatement,
    TruncateTableStatement,
)
from applier.model.errors import ApplierError, FatalSinkError, NeedsOperator
from applier.model.events import DdlEvent, TableName
from applier.model.remedy import Remedy
from applier.sinks.sqlite.catalogue import StoredObject, find_objects, read_definition, tables_with_rows
from applier.sinks.sqlite.create_statement import create_index, create_indexes, create_table, stored_indexes
from applier.sinks.sqlite.ddl_time import DdlTime
from applier.sinks.sqlite.literal_value import bring_to_wire, table_of_wire
from applier.sinks.sqlite.names import Sql, compose, index_name, quote, stored_name
from applier.sinks.sqlite.rebuild import change_columns
from applier.sinks.sqlite.session_zone import in_its_zone
from applier.sinks.sqlite.view import create_view

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
    """Return what SQLite's refusal of a translated statement means; busy files and full disks stay what they are."""
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

    def _name(self, place: NamePlace) -> TableName:
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
