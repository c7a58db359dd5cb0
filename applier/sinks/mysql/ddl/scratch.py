"""A scratch table: it shows what a statement makes without touching the statement's own table.

It lies beside the bookkeeping tables and holds no row of upstream. A replica has one at most. Both sides of a comparison come from the
server as it is now, so that no version's wording is compared with another's. A run that dies leaves the table behind; the next one drops it
before anything else.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Final

from sqlalchemy import Connection, insert

from applier.ddl.edit import Edit, edited
from applier.ddl.parser import parse, parse_or_none
from applier.ddl.tree import AlterTableStatement, CreateTableStatement, IndexStatement, NamePlace
from applier.model.events import DdlEvent, TableName
from applier.mysql.catalogue import given_name, read_structures
from applier.mysql.errors import ErrorVerdict, code_of, is_database_error, meaning_of, server_text
from applier.mysql.names import schema_spelling, spellings, sql_name
from applier.mysql.quoting import quote_table
from applier.mysql.session import execute_text
from applier.mysql.structure import TableStructure
from applier.sinks.failpoint import reach
from applier.sinks.mysql.ddl.schema_default import read_schema_default
from applier.sinks.mysql.ddl.statement import as_in_sink, send
from applier.sinks.settings import Collations

_CHARSET_WORDS: Final = frozenset({"CHARSET", "CHARACTER", "CHAR", "COLLATE"})


def retargeted(statement: str, name: TableName) -> str | None:
    """Replace the table of a CREATE TABLE, ALTER TABLE, CREATE INDEX or DROP INDEX by ``name``; None for another statement."""
    tree = parse_or_none(statement)
    if tree is None:
        return None
    match tree.node:
        case (
            CreateTableStatement(table=NamePlace(schema=schema, table=table))
            | AlterTableStatement(table=NamePlace(schema=schema, table=table))
            | IndexStatement(table=NamePlace(schema=schema, table=table))
        ) if table is not None:
            return edited(statement, [Edit((schema or table).start, table.end, quote_table(*name))])
        case _:
            return None


def with_default(statement: str, default: str) -> str:
    """Put ``default`` after the columns of a CREATE TABLE that names neither a character set nor a collation for the table."""
    tree = parse(statement)
    node = tree.node
    # LIKE takes the other table's collation and allows no options: it has no elements here.
    if not isinstance(node, CreateTableStatement) or not node.elements:
        return statement
    first, last = node.options
    if any(token.keyword in _CHARSET_WORDS for token in tree.tokens[first : last + 1]):
        return statement
    closing = tree.tokens[node.elements[-1].span[1] + 1]
    return edited(statement, [Edit(closing.end, closing.end, default)])


_PREFIX: Final = "scratch_"


class ScratchRefused(Exception):
    """The server refused a statement on the scratch table, or the statement cannot be directed at it. Stays in this package."""

    def __init__(self, reason: str, code: int | None = None) -> None:
        super().__init__(reason)
        self.reason, self.code = reason, code


@dataclass(frozen=True, slots=True)
class Scratch:
    """The scratch table of the replica ``replica``, in ``schema``. Its statements commit implicitly: no transaction may be open."""

    connection: Connection
    schema: str
    replica: str
    collations: Collations = ()

    @property
    def name(self) -> TableName:
        """Where it lies."""
        # A hash: names of replicas may differ in case only, names of tables may not on every server.
        return TableName(self.schema, _PREFIX + sha256(self.replica.encode()).hexdigest()[:16])

    def drop_leftover(self) -> None:
        """Drop what a dead run left. Without a leftover no statement runs, so the user needs no privilege for it."""
        # DROP TABLE IF EXISTS needs the privilege DROP even if nothing exists.
        if spellings(self.connection, [self.name]):
            self._drop()

    @contextmanager
    def of_definition(self, definition: str) -> Iterator[None]:
        """Make it from the text of SHOW CREATE TABLE, for the time of the block. ScratchRefused."""
        self._drop()
        try:
            with _refusals():
                execute_text(self.connection, self._own(definition))
            reach("ddl.scratch")
            yield
        finally:
            self._drop()

    @contextmanager
    def of_statement(self, ddl: DdlEvent) -> Iterator[None]:
        """Make it by a CREATE TABLE of upstream, for the time of the block. ScratchRefused."""
        self._drop()
        # A table takes its collation from its schema, and the scratch table lies in the bookkeeping's.
        there = as_in_sink(self.connection, ddl, self.collations)
        statement = with_default(self._own(there.query), self._default_of(there.schema))
        try:
            with _refusals():
                send(self.connection, there, statement)
            reach("ddl.scratch")
            yield
        finally:
            self._drop()

    def run(self, ddl: DdlEvent) -> None:
        """Run upstream's statement on it. ScratchRefused."""
        there = as_in_sink(self.connection, ddl, self.collations, table=self.name)
        with _refusals():
            if there.query:
                send(self.connection, there, self._own(there.query))

    def as_sent(self, ddl: DdlEvent) -> str:
        """Return the statement of a DDL with all that it asks for, also where the DDL's own table has some of it."""
        return as_in_sink(self.connection, ddl, self.collations, resolves=False).query

    def alter(self, clause: str) -> None:
        """Run an ALTER TABLE of our own on it. ScratchRefused."""
        with _refusals():
            execute_text(self.connection, f"ALTER TABLE {quote_table(*self.name)} {clause}")

    def fill(self) -> bool:
        """Insert one row of defaults; False if the table's checks or partitions refuse it."""
        with _refusals():
            # IGNORE gives columns without a default the type's own: '', 0.
            filled = self.connection.execute(insert(sql_name(self.name)).prefix_with("IGNORE")).rowcount == 1
            self.connection.commit()
        return filled

    def structure(self, actual: TableName) -> TableStructure:
        """Return its structure as that of ``actual`` would be."""
        found = read_structures(self.connection, [self.name])[self.name.fold()]
        return _as_of(found, self.name, actual)

    def _own(self, statement: str) -> str:
        """Return the statement with this table in place of its table. ScratchRefused."""
        found = retargeted(statement, self.name)
        if found is None:
            reason = "the applier cannot find the table in the statement"
            raise ScratchRefused(reason)
        return found

    def _default_of(self, schema: str) -> str:
        """Return the options that a table takes over from its schema."""
        name = schema_spelling(self.connection, schema)
        if name is None:
            return ""
        character_set, collation = read_schema_default(self.connection, name)
        return f" DEFAULT CHARACTER SET {character_set} COLLATE {collation}"

    def _drop(self) -> None:
        execute_text(self.connection, "DROP TABLE IF EXISTS " + quote_table(*self.name))


def own_structure(connection: Connection, actual: TableName) -> TableStructure:
    """Return the structure of a table as ``Scratch.structure`` returns it."""
    return _as_of(read_structures(connection, [actual])[actual.fold()], actual, actual)


def _as_of(found: TableStructure, name: TableName, actual: TableName) -> TableStructure:
    """Leave out what depends on a table's name or schema: triggers, generated names, and the schema of unqualified foreign keys."""
    # A foreign key to the table itself names the scratch table, and an unqualified one the scratch table's schema.
    keys = [
        replace(
            key,
            name=given_name(key.name, actual),
            referenced_schema=actual.schema if key.referenced_schema == name.schema else key.referenced_schema,
            referenced_table=actual.table if (key.referenced_schema, key.referenced_table) == name else key.referenced_table,
        )
        for key in found.foreign_keys
    ]
    checks = [replace(check, name=given_name(check.name, actual)) for check in found.checks]
    return replace(
        found,
        # CREATE TABLE … and ALTER TABLE make no trigger; the table check looks at them.
        triggers=(),
        foreign_keys=tuple(sorted(keys, key=lambda key: (key.name, key.columns, key.referenced_table))),
        checks=tuple(sorted(checks, key=lambda check: (check.name, check.clause.text))),
    )


@contextmanager
def _refusals() -> Iterator[None]:
    """Turn a definite refusal into ScratchRefused. A lost connection and transient errors come through."""
    try:
        yield
    except Exception as error:
        if not is_database_error(error) or meaning_of(error).verdict in {ErrorVerdict.LOST, ErrorVerdict.RETRY}:
            raise
        # A message of several lines would break the log line and the ledger's list.
        words = re.sub(r"\s+", " ", server_text(error))
        raise ScratchRefused(f"the server refused the statement on a scratch table: {words}", code_of(error)) from error
