"""Where the bookkeeping of one replica lies: the tables of ``sql/schema.sql``, with the rows of its name.

The modules beside this one run one or a few named statements (``sql/queries.sql``) each, inside a transaction that the caller began and
commits. Database errors come through as SQLAlchemy's: each dialect translates them at its own edge.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple, Protocol, TypeVar

from sqlalchemy import Connection, CursorResult, TextClause

from applier.sinks.bookkeeping.dialect import BookkeepingDialect
from applier.sinks.bookkeeping.named_queries import load_queries
from applier.sinks.settings import SCHEMA

T = TypeVar("T")


class Transactions(Protocol):
    """Runs work in separate transactions. SQLite reads and writes in different kinds of them. ``doing``: for the message of an error."""

    def read(self, work: Callable[[Connection], T], doing: str) -> T:
        """Run reads in one transaction. ``work`` may run twice."""
        ...

    def change(self, work: Callable[[Connection], T], doing: str) -> T:
        """Run ``work`` in one transaction and commit, without owning the replica; roll back if it raises. ``work`` may run twice."""
        ...


class BookkeepingPlace(NamedTuple):
    """Where the bookkeeping's tables lie: in a schema, or under a prefix where the database has no schemas."""

    schema: str | None
    prefix: str


@dataclass(frozen=True, slots=True)
class Bookkeeping:
    """The bookkeeping of the replica ``name`` in a database of ``dialect``. Picklable."""

    name: str
    dialect: BookkeepingDialect
    schema: str = SCHEMA
    """Where its tables lie; the prefix of their names where there are no schemas."""

    @property
    def place(self) -> BookkeepingPlace:
        """Where its tables lie."""
        return BookkeepingPlace(self.schema, "") if self.dialect.has_schemas else BookkeepingPlace(None, f"{self.schema}_")

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
