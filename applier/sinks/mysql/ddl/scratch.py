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

from sqlalchemy import Connection, insert, text

from applier.ddl.tokens import TOKEN
from applier.model.events import DdlEvent, TableName
from applier.sinks.failpoint import reach
from applier.sinks.mysql.ddl.statement import as_in_sink, send
from applier.sinks.mysql.dialect import quote_table
from applier.sinks.mysql.errors import ErrorVerdict, code_of, is_database_error, meaning_of
from applier.sinks.mysql.names import schema_spelling, spellings, sql_name
from applier.sinks.mysql.session import execute_text
from applier.sinks.mysql.structure.model import TableStructure
from applier.sinks.mysql.structure.reader import given_name, read_structures

_PREFIX: Final = "scratch_"
_IS_LIKE: Final = re.compile(r"^[^()]*\(?\s*LIKE\b", re.IGNORECASE)
_DEFAULT: Final = text(
    "SELECT DEFAULT_CHARACTER_SET_NAME, DEFAULT_COLLATION_NAME FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = :schema"
)


class ScratchRefused(Exception):
    """The server refused a statement on the scratch table, or the statement cannot be directed at it. Never leaves this package."""

    def __init__(self, reason: str, code: int | None = None) -> None:
        super().__init__(reason)
        self.reason, self.code = reason, code


@dataclass(frozen=True, slots=True)
class Scratch:
    """The scratch table of the replica ``replica``, in ``schema``. Work with it commits by itself: no transaction may be open."""

    connection: Connection
    schema: str
    replica: str

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
                execute_text(self.connection, retargeted(definition, self.name))
            reach("ddl.scratch")
            yield
        finally:
            self._drop()

    @contextmanager
    def of_statement(self, ddl: DdlEvent) -> Iterator[None]:
        """Make it by a CREATE TABLE of upstream, for the time of the block. ScratchRefused."""
        self._drop()
        # A table takes its collation from its schema, and the scratch table lies in the bookkeeping's.
        there = as_in_sink(self.connection, ddl)
        statement = with_default(retargeted(there.query, self.name), self._default_of(there.schema))
        try:
            with _refusals():
                send(self.connection, there, statement)
            reach("ddl.scratch")
            yield
        finally:
            self._drop()

    def run(self, ddl: DdlEvent) -> None:
        """Run upstream's statement on it. ScratchRefused."""
        there = as_in_sink(self.connection, ddl)
        with _refusals():
            send(self.connection, there, retargeted(there.query, self.name))

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

    def _default_of(self, schema: str) -> str:
        """Return the options that a table takes over from its schema."""
        name = schema_spelling(self.connection, schema)
        row = self.connection.execute(_DEFAULT, {"schema": name}).one_or_none()
        return "" if row is None else f" DEFAULT CHARACTER SET {row[0]} COLLATE {row[1]}"

    def _drop(self) -> None:
        execute_text(self.connection, "DROP TABLE IF EXISTS " + quote_table(*self.name))


def own_structure(connection: Connection, actual: TableName) -> TableStructure:
    """Return the structure of a table as ``Scratch.structure`` returns it."""
    return _as_of(read_structures(connection, [actual])[actual.fold()], actual, actual)


def retargeted(statement: str, name: TableName) -> str:
    """Replace the table of a CREATE TABLE, ALTER TABLE, CREATE INDEX or DROP INDEX by ``name``. ScratchRefused."""
    matches = [match for match in TOKEN.finditer(statement) if match.lastgroup != "blank"]
    words = [match.group().upper() if match.lastgroup == "word" else match.group() for match in matches]
    try:
        at = words.index("TABLE") if "INDEX" not in words[:3] else words.index("ON")
        at += 1
        for skipped in ("IF", "NOT", "EXISTS"):
            at += words[at] == skipped
        last = at + 2 if words[at + 1] == "." else at
        return statement[: matches[at].start()] + quote_table(*name) + statement[matches[last].end() :]
    except (ValueError, IndexError) as error:
        reason = "the applier cannot find the table in the statement"
        raise ScratchRefused(reason) from error


def with_default(statement: str, default: str) -> str:
    """Give a CREATE TABLE without a character set its schema's: the scratch table lies in another schema."""
    depth, end, options = 0, 0, set[str]()
    for match in TOKEN.finditer(statement):
        depth += (match.group() == "(") - (match.group() == ")")
        if depth == 0 and match.group() == ")" and not end:
            end = match.end()
        elif depth == 0 and end and match.lastgroup == "word":
            options.add(match.group().upper())
    # LIKE takes the other table's collation and allows no options.
    is_named = not options.isdisjoint({"CHARSET", "CHARACTER", "CHAR", "COLLATE"})
    return statement if is_named or not end or _IS_LIKE.search(statement) else statement[:end] + default + statement[end:]


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
    """Turn a definite refusal into ScratchRefused. A lost connection, and errors that may pass, come through."""
    try:
        yield
    except Exception as error:
        if not is_database_error(error) or meaning_of(error).verdict in {ErrorVerdict.LOST, ErrorVerdict.RETRY}:
            raise
        # A message of several lines would break the log line and the ledger's list.
        words = re.sub(r"\s+", " ", str(error.args[-1] if error.args else error))
        raise ScratchRefused(f"the server refused the statement on a scratch table: {words}", code_of(error)) from error
