"""How a vault says the bookkeeping's SQL: with schemas, standard upserts, a clock of its own, and other words for locks."""

from sqlalchemy import BigInteger, LargeBinary, String, Text

from applier.sinks.bookkeeping.bookkeeping import Bookkeeping, BookkeepingDialect, ColumnTypes
from applier.sinks.settings import SinkSettings

WORDS = BookkeepingDialect(
    now="vault_clock()",
    for_update="LIMIT 1",
    for_share="LIMIT 2",
    counts_tables="SELECT COUNT(*) FROM main.sqlite_master WHERE name = :schema_name || '!' || :table_name",
    greatest_number=2**63 - 1,
    drops_defaults=False,
    types=ColumnTypes(text=String, long_text=Text(), tso=BigInteger(), number=BigInteger(), moment=String(32), content=LargeBinary()),
)


def bookkeeping_of(settings: SinkSettings) -> Bookkeeping:
    return Bookkeeping(settings.name, WORDS, settings.schema)
