"""Where the bookkeeping of one replica lies: the tables of ``sql/schema.sql``, with the rows of its name.

The modules beside this one run one or a few named statements (``sql/queries.sql``) each, inside a transaction that the caller began and
commits. Database errors come through as SQLAlchemy's: each dialect translates them at its own edge.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, CursorResult, TextClause

from applier.sinks.bookkeeping.named_queries import load_queries
from applier.sinks.settings import SCHEMA

MAX_INTEGER = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Bookkeeping:
    """The bookkeeping of the replica ``name`` in a database of ``dialect`` (SQLAlchemy's name of it). Picklable."""

    name: str
    dialect: str
    schema: str = SCHEMA
    """Where its tables lie; in SQLite the prefix of their names."""

    def run(self, connection: Connection, query: str, **values: object) -> CursorResult[Any]:
        """Run a named statement on the rows of this replica."""
        return connection.execute(self.query(query), {"name": self.name, **values})

    def query(self, name: str) -> TextClause:
        """Return a named statement for this dialect."""
        return load_queries(self.dialect, schema=self.schema)[name]

    def number(self, ts: int) -> int | str:
        """Encode an unsigned 64-bit number: SQLite's integers end at 2^63-1, above it stores decimal text."""
        return str(ts) if self.dialect == "sqlite" and ts > MAX_INTEGER else ts


def as_datetime(value: datetime | str) -> datetime:
    """Read a wall-clock time of the database (UTC) as an aware datetime."""
    parsed = datetime.fromisoformat(value) if isinstance(value, str) else value
    return parsed.replace(tzinfo=UTC)
