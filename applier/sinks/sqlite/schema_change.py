"""Executes one DDL of upstream on the file: a dispatcher over the statements that TiDB prints. Runs inside the caller's transaction.

CREATE SCHEMA leaves no trace but the ledger's: a schema is a prefix, and exists while it has a table. A statement that the file already
satisfies (the table to drop is absent, the very same table exists) is done; what cannot be translated stops with the statement.
"""

import sqlite3
from collections.abc import Callable, Iterator
from typing import Any, Final

from applier.ddl.comment import as_tidb_reads
from applier.model.errors import ApplierError, FatalSinkError, NeedsOperator
from applier.model.events import DdlEvent, TableName
from applier.sinks.sqlite.alter_parser import apply_clauses, refuse_partitions
from applier.sinks.sqlite.catalogue import StoredObject, find_objects, read_definition, tables_with_rows
from applier.sinks.sqlite.definition import IndexDefinition, TableDefinition, create_index, create_indexes, create_table, stored_indexes
from applier.sinks.sqlite.draft import TableDraft
from applier.sinks.sqlite.names import Sql, compose, index_name, quote, stored_name
from applier.sinks.sqlite.rebuild import DdlTime, change_columns
from applier.sinks.sqlite.table_parser import parse_create_table, parse_index, parse_name
from applier.sinks.sqlite.tokens import BY_HAND, Cursor
from applier.sinks.sqlite.view import create_view

MAKE_TABLE: Final = "Create the table in the sink as it is upstream, with its rows, or begin anew from a dump (README)"
SAME_ROWS: Final = "The sink's rows differ from upstream's: compare the two, and correct them; or begin anew from a dump (README)"
_INDEX_KINDS: Final = ("UNIQUE", "FULLTEXT", "SPATIAL", "VECTOR", "COLUMNAR", "HYBRID")


def apply_ddl(connection: sqlite3.Connection, ddl: DdlEvent, zone: str) -> None:
    """Execute a DDL. NeedsOperator: not expressible here; FatalSinkError: the file is not as the DDL expects it; sqlite3.Error otherwise.

    Both carry the statement. ``zone`` is the zone of times on the wire.
    """
    facts = {"statement": ddl.query, "table": str(ddl.name), "commit_ts": ddl.commit_ts}
    try:
        SchemaChange(connection, ddl, zone).run()
    except ApplierError as error:
        error.facts |= facts
        raise
    except (sqlite3.IntegrityError, sqlite3.OperationalError, sqlite3.ProgrammingError, UnicodeError) as error:
        raise _refusal(error, facts) from error


def _refusal(error: sqlite3.Error | UnicodeError, facts: dict[str, Any]) -> Exception:
    """Return what SQLite's refusal of a translated statement means; busy files and full disks stay what they are."""
    if isinstance(error, sqlite3.IntegrityError):
        return FatalSinkError(
            "the rows of the sink do not allow the DDL that upstream's allowed", remedy=SAME_ROWS, reason=str(error), **facts
        )
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
    if isinstance(error, sqlite3.Error) and code & 0xFF != sqlite3.SQLITE_ERROR:
        return error
    return NeedsOperator("SQLite cannot do what the DDL asks for", remedy=BY_HAND, reason=str(error), **facts)


class SchemaChange:
    """One DDL on its way into the file."""

    def __init__(self, connection: sqlite3.Connection, ddl: DdlEvent, zone: str) -> None:
        self._connection, self._ddl = connection, ddl
        self._moment = DdlTime(ddl.commit_ts, zone)
        self._cursor = Cursor(as_tidb_reads(ddl.query))

    def run(self) -> None:
        """Execute the statement."""
        handlers: dict[str, Callable[[], None]] = {
            "CREATE": self._create,
            "DROP": self._drop,
            "ALTER": self._alter,
            "TRUNCATE": self._truncate,
            "RENAME": self._rename,
        }
        word = self._cursor.accept_any(*handlers)
        if not word:
            raise self._cursor.unexpected("a DDL that SQLite can express")
        handlers[word]()

    # Existing objects

    def _find(self, name: TableName, *, is_view: bool = False) -> StoredObject | None:
        entry = find_objects(self._connection).get(name.fold())
        return entry if entry is not None and entry.is_view == is_view else None

    def _existing(self, name: TableName) -> StoredObject:
        entry = self._find(name)
        if entry is None:
            raise FatalSinkError("the DDL needs a table that the sink does not have", remedy=MAKE_TABLE, missing=str(name))
        return entry

    def _definition(self, name: TableName) -> TableDefinition:
        definition = read_definition(self._connection, self._existing(name))
        if definition is None:
            raise NeedsOperator(
                "the table was not made by the applier, so the MySQL types of its columns are unknown",
                remedy=BY_HAND,
            )
        return definition

    def _execute(self, template: str, **parts: Sql) -> None:
        self._connection.execute(compose(template, **parts))

    # CREATE

    def _create(self) -> None:
        cursor = self._cursor
        replaces = cursor.accept("OR", "REPLACE")
        if cursor.accept_any("DATABASE", "SCHEMA"):
            return
        if cursor.accept("TABLE"):
            self._create_table()
        elif any(cursor.sees(kind) for kind in ("INDEX", *_INDEX_KINDS)):
            self._create_index()
        elif self._skip_to_view():
            self._create_view(replaces=replaces)
        else:
            raise cursor.unexpected("a table, index, view or schema")

    def _create_table(self) -> None:
        cursor = self._cursor
        cursor.accept("IF", "NOT", "EXISTS")  # upstream has made a table, or there would be no event
        name = parse_name(cursor, self._ddl.schema)
        new = self._like(name) if cursor.sees("LIKE") or cursor.sees("(", "LIKE") else parse_create_table(cursor, name)
        present = find_objects(self._connection).get(name.fold())
        if present is None:
            for statement in (create_table(new), *create_indexes(new)):
                self._connection.execute(statement)
        elif present.is_view or read_definition(self._connection, present) != new:
            raise FatalSinkError(
                "the sink has a table of that name already, with another definition",
                remedy="Rename it away if it is not upstream's (look at its rows first), or give it upstream's definition and rows",
            )
        elif tables_with_rows(self._connection, [name]):
            raise FatalSinkError(
                "the sink has that table already, with rows in it", remedy="Compare them with upstream's; drop what is not"
            )

    def _like(self, name: TableName) -> TableDefinition:
        self._cursor.accept("(")
        self._cursor.expect("LIKE")
        return self._definition(parse_name(self._cursor, self._ddl.schema)).renamed(name)

    def _create_index(self) -> None:
        cursor = self._cursor
        kind = cursor.accept_any(*_INDEX_KINDS)
        cursor.expect("INDEX")
        exists_allowed = cursor.accept("IF", "NOT", "EXISTS")
        index = cursor.identifier()
        if cursor.accept_any("USING", "TYPE"):
            cursor.take()
        cursor.expect("ON")
        old = self._definition(parse_name(cursor, self._ddl.schema))
        if kind == "HYBRID":
            raise cursor.unexpected("an index that SQLite can express")
        if cursor.accept_any("USING", "TYPE"):
            cursor.take()
        parsed = parse_index(cursor)
        wanted = IndexDefinition(index, parsed.parts, unique=kind == "UNIQUE")
        if exists_allowed and old.index(index) == wanted:
            return
        draft = TableDraft(old)
        draft.add_index(wanted)
        self._change_indexes(old, draft.freeze())

    def _skip_to_view(self) -> bool:
        """Take ALGORITHM, DEFINER and SQL SECURITY of a view."""
        cursor = self._cursor
        while not cursor.is_done:
            if cursor.accept("VIEW"):
                return True
            if cursor.sees("AS") or cursor.sees("("):
                return False
            cursor.take()
        return False

    def _create_view(self, *, replaces: bool) -> None:
        ahead = Cursor(self._cursor.text, self._cursor.rest)
        name = parse_name(ahead, self._ddl.schema)
        present = self._find(name, is_view=True)
        if replaces and present is not None:
            self._execute("DROP VIEW {view}", view=quote(present.stored))
        create_view(self._connection, self._cursor, self._ddl.schema)

    # DROP, TRUNCATE, RENAME

    def _drop(self) -> None:
        cursor = self._cursor
        if cursor.accept_any("DATABASE", "SCHEMA"):
            self._drop_schema()
        elif cursor.accept("INDEX"):
            self._drop_index()
        elif kind := cursor.accept_any("TABLE", "VIEW"):
            cursor.accept("IF", "EXISTS")
            for name in self._names():
                entry = self._find(name, is_view=kind == "VIEW")
                if entry is not None:
                    self._execute(f"DROP {kind} {{name}}", name=quote(entry.stored))
        else:
            raise cursor.unexpected("a table, index, view or schema")

    def _names(self) -> Iterator[TableName]:
        yield parse_name(self._cursor, self._ddl.schema)
        while self._cursor.accept(","):
            yield parse_name(self._cursor, self._ddl.schema)

    def _drop_schema(self) -> None:
        self._cursor.accept("IF", "EXISTS")
        schema = self._cursor.identifier().casefold()
        for folded, entry in find_objects(self._connection).items():
            if folded.schema == schema:
                self._execute("DROP VIEW {name}" if entry.is_view else "DROP TABLE {name}", name=quote(entry.stored))

    def _drop_index(self) -> None:
        cursor = self._cursor
        missing_allowed = cursor.accept("IF", "EXISTS")
        index = cursor.identifier()
        cursor.expect("ON")
        old = self._definition(parse_name(cursor, self._ddl.schema))
        draft = TableDraft(old)
        if missing_allowed and not draft.has_index(index):
            return
        draft.drop_index(index)
        self._change(old, draft)

    def _truncate(self) -> None:
        self._cursor.accept("TABLE")
        entry = self._existing(parse_name(self._cursor, self._ddl.schema))
        self._execute("DELETE FROM {table}", table=quote(entry.stored))

    def _rename(self) -> None:
        self._cursor.expect("TABLE")
        while not self._cursor.is_done:
            old = parse_name(self._cursor, self._ddl.schema)
            self._cursor.expect("TO")
            self._rename_table(old, parse_name(self._cursor, self._ddl.schema))
            self._cursor.accept(",")

    def _rename_table(self, old: TableName, new: TableName) -> None:
        entry = self._existing(old)
        if old.fold() != new.fold() and new.fold() in find_objects(self._connection):
            raise FatalSinkError(
                "the DDL gives a table a name that the sink has already", remedy="Compare the sink's tables with upstream's", taken=str(new)
            )
        definition = read_definition(self._connection, entry)
        if definition is not None:
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

    # ALTER

    def _alter(self) -> None:
        cursor = self._cursor
        if cursor.accept_any("DATABASE", "SCHEMA"):
            return
        cursor.accept("IGNORE")
        cursor.expect("TABLE")
        name = parse_name(cursor, self._ddl.schema)
        refuse_partitions(cursor)
        old = self._definition(name)
        draft = TableDraft(old)
        renamed = apply_clauses(cursor, draft, self._ddl.schema)
        if draft.found and draft.freeze() == old:
            # Upstream's statement has made something, or there would be no event.
            raise FatalSinkError(
                "the DDL changes nothing, because the sink has its columns already",
                remedy="Compare their definitions, and the values in old rows, with upstream's; then `applier skip --ts … --table …`",
                columns=",".join(draft.found),
            )
        self._change(old, draft)
        if renamed is not None:
            self._rename_table(old.name, renamed)

    def _change(self, old: TableDefinition, draft: TableDraft) -> None:
        new = draft.freeze()
        if not change_columns(self._connection, old, new, draft.columns, self._moment):
            self._change_indexes(old, new)

    def _change_indexes(self, old: TableDefinition, new: TableDefinition) -> None:
        for index in old.indexes:
            if index not in new.indexes:
                self._execute("DROP INDEX {name}", name=quote(index_name(old.name, index.name)))
        for index in new.indexes:
            if index not in old.indexes:
                self._connection.execute(create_index(new, index))
