"""The location of one replica's bookkeeping (tables of ``sql/schema.sql``, rows of its name), and its SQL in a database's words.

The other modules of this package run one or a few named statements (``sql/queries.sql``) each, inside a transaction that the caller began
and commits. Database errors come through as SQLAlchemy's: each dialect translates them at its own edge.

The statements are SQL that every database understands, except ``{now}``, ``{for_update}``, ``{for_share}`` and
``UPSERT INTO table (columns) KEY (columns) VALUES (…)``. A dialect is a value of these words; the defaults are standard SQL.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from types import MappingProxyType
from typing import Any, Final, NamedTuple, Protocol, TypeVar

from sqlalchemy import BigInteger, Connection, CursorResult, DateTime, LargeBinary, Numeric, String, Text, TextClause
from sqlalchemy.types import TypeEngine

from applier.database.carried_files import clause, read_statements
from applier.sinks.settings import SCHEMA

STANDARD_UPSERT: Final = "INSERT INTO {table} ({columns})\nVALUES ({values})\nON CONFLICT ({key}) DO UPDATE SET {changes}"
REPLACE: Final = "REPLACE INTO {table} ({columns})\nVALUES ({values})"
GREATEST_UNSIGNED: Final = 2**64 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnTypes:
    """The types of the bookkeeping's columns."""

    text: Callable[[int], TypeEngine[Any]] = String
    """Text of so many characters at the most that compares byte by byte: two spellings are two names."""
    long_text: TypeEngine[Any] = field(default_factory=Text)
    tso: TypeEngine[Any] = field(default_factory=lambda: Numeric(20, 0))
    """An unsigned number of 64 bits."""
    number: TypeEngine[Any] = field(default_factory=BigInteger)
    moment: TypeEngine[Any] = field(default_factory=DateTime)
    """A wall-clock time in UTC with microseconds, by the clock of the database."""
    content: TypeEngine[Any] = field(default_factory=LargeBinary)


@dataclass(frozen=True, slots=True, kw_only=True)
class BookkeepingDialect:
    """The words of one database. Picklable."""

    now: str
    """The clock of the database in UTC."""
    for_update: str = "FOR UPDATE"
    for_share: str = "FOR SHARE"
    """Several transactions may hold such a lock; one that locks for update waits for them."""
    upsert: str = STANDARD_UPSERT
    """A row that replaces the one of its key; ``{changes}`` are the other columns with their new values."""
    quote: str = '"'
    has_schemas: bool = True
    """Without schemas, the name of the schema is a prefix of the tables' names."""
    counts_tables: str = "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = :schema_name AND table_name = :table_name"
    """Whether there is a table. A table that the user may not read may count as missing."""
    greatest_number: int = GREATEST_UNSIGNED
    """Greater timestamps are stored as decimal text."""
    is_transactional: bool = True
    """Whether the definition of a table is a part of the transaction."""
    drops_defaults: bool = True
    """Whether a column can lose its default later."""
    types: ColumnTypes = field(default_factory=ColumnTypes, compare=False, repr=False)
    table_options: Mapping[str, str] = field(default_factory=dict, compare=False, repr=False)
    """SQLAlchemy's options of a table."""


BOOKKEEPING = "sql/queries.sql"

_TABLE = re.compile(r"\bapplier\.(\w+)")
_UPSERT = re.compile(r"UPSERT INTO (?P<table>\S+) \((?P<columns>[^)]+)\)\s+KEY \((?P<key>[^)]+)\)\s+VALUES \((?P<values>.+)\)", re.DOTALL)


@cache
def load_queries(dialect: BookkeepingDialect, schema: str = SCHEMA) -> Mapping[str, TextClause]:
    """Return the statements of the bookkeeping in ``schema`` by name. Values are bound as ``:name``; one after IN takes a list."""
    # Read from the file once per process: the statements are the same for every replica of a schema.
    return MappingProxyType({name: clause(_said(text, dialect, schema)) for name, text in read_statements(BOOKKEEPING).items()})


def table_name(dialect: BookkeepingDialect, schema: str, table: str) -> str:
    """Spell the name of a table of the bookkeeping. A schema of the configuration has letters, digits and _ only."""
    if not dialect.has_schemas:
        return f"{dialect.quote}{schema}_{table}{dialect.quote}"
    return f"{schema if schema == SCHEMA else f'{dialect.quote}{schema}{dialect.quote}'}.{table}"


def _said(statement: str, dialect: BookkeepingDialect, schema: str) -> str:
    """Return a statement of the file in the words of the database."""
    said = statement.format(now=dialect.now, for_update=dialect.for_update, for_share=dialect.for_share).rstrip()
    said = _UPSERT.sub(lambda found: _upsert(dialect, found), said)
    return _TABLE.sub(lambda found: table_name(dialect, schema, found[1]), said)


def _upsert(dialect: BookkeepingDialect, found: re.Match[str]) -> str:
    key = found["key"].split(", ")
    changes = ", ".join(f"{name} = EXCLUDED.{name}" for name in found["columns"].replace("\n", " ").split(", ") if name not in key)
    return dialect.upsert.format(**found.groupdict(), changes=changes)


T = TypeVar("T")


class Transactions(Protocol):
    """Runs work in separate transactions. SQLite reads and writes in different kinds of them. ``doing``: for the message of an error."""

    def read(self, work: Callable[[Connection], T], doing: str) -> T:
        """Run reads in one transaction. ``work`` may run twice."""
        ...

    def change(self, work: Callable[[Connection], T], doing: str) -> T:
        """Run ``work`` in one transaction and commit, without owning the replica; roll back if it raises. ``work`` may run twice."""
        ...


class BookkeepingAddress(NamedTuple):
    """The location of the bookkeeping's tables: in a schema, or under a prefix where the database has no schemas."""

    schema: str | None
    prefix: str


@dataclass(frozen=True, slots=True)
class Bookkeeping:
    """The bookkeeping of the replica ``name`` in a database of ``dialect``. Picklable."""

    name: str
    dialect: BookkeepingDialect
    schema: str = SCHEMA
    """The location of its tables; the prefix of their names where there are no schemas."""

    @property
    def address(self) -> BookkeepingAddress:
        """The location of its tables."""
        return BookkeepingAddress(self.schema, "") if self.dialect.has_schemas else BookkeepingAddress(None, f"{self.schema}_")

    def run(self, connection: Connection, query: str, **values: object) -> CursorResult[Any]:
        """Run a named statement on the rows of this replica."""
        return connection.execute(self.query(query), {"name": self.name, **values})

    def query(self, name: str) -> TextClause:
        """Return a named statement for this dialect."""
        return load_queries(self.dialect, self.schema)[name]

    def number(self, ts: int) -> int | str:
        """Encode an unsigned 64-bit number: as decimal text where the database's integers end before it."""
        return str(ts) if ts > self.dialect.greatest_number else ts


def as_datetime(value: datetime | str) -> datetime:
    """Read a wall-clock time of the database (UTC) as an aware datetime."""
    parsed = datetime.fromisoformat(value) if isinstance(value, str) else value
    return parsed.replace(tzinfo=UTC)
