"""How SQLite says the bookkeeping's SQL.

It has no schemas, and no row locks: BEGIN IMMEDIATE locks the file. Its INTEGER affinity turns numbers of 64 bits without a sign into
floating point, so timestamps have no affinity (declared BLOB): integers up to 2^63-1, decimal text above. TSOs pass 2^63 in the year 3084.
"""

from typing import Final

from sqlalchemy import BLOB, BigInteger, Text

from applier.sinks.bookkeeping.bookkeeping import REPLACE, Bookkeeping, BookkeepingDialect, ColumnTypes
from applier.sinks.settings import SinkSettings


def _text(_length: int) -> Text:
    return Text()


DIALECT: Final = BookkeepingDialect(
    now="STRFTIME('%Y-%m-%d %H:%M:%f', 'now')",
    for_update="",
    for_share="",
    upsert=REPLACE,
    has_schemas=False,
    counts_tables="SELECT COUNT(*) FROM sqlite_master WHERE name = :schema_name || '_' || :table_name",
    greatest_number=2**63 - 1,
    drops_defaults=False,
    types=ColumnTypes(text=_text, long_text=Text(), tso=BLOB(), number=BigInteger(), moment=Text(), content=BLOB()),
)


def bookkeeping_of(settings: SinkSettings) -> Bookkeeping:
    """Return the location of the replica's bookkeeping."""
    return Bookkeeping(settings.name, DIALECT, settings.schema)
