"""How one database says the bookkeeping's SQL: the words of its statements, and the types of its columns.

The statements of ``sql/queries.sql`` are SQL that every database understands, but for ``{now}``, ``{for_update}``, ``{for_share}`` and
``UPSERT INTO table (columns) KEY (columns) VALUES (…)``. A dialect is a value of these words; the defaults are standard SQL.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from sqlalchemy import BigInteger, DateTime, LargeBinary, Numeric, String, Text
from sqlalchemy.types import TypeEngine

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
    """Whether there is a table. One that the user may not read need not count."""
    greatest_number: int = GREATEST_UNSIGNED
    """Greater timestamps are stored as decimal text."""
    is_transactional: bool = True
    """Whether the definition of a table is a part of the transaction."""
    drops_defaults: bool = True
    """Whether a column can lose its default later."""
    types: ColumnTypes = field(default_factory=ColumnTypes, compare=False, repr=False)
    table_options: Mapping[str, str] = field(default_factory=dict, compare=False, repr=False)
    """SQLAlchemy's options of a table."""
