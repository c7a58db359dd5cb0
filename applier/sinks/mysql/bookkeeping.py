"""How MySQL, MariaDB and TiDB say the bookkeeping's SQL. Each DDL of a migration commits at once."""

from functools import partial
from typing import Any, Final

from sqlalchemy.dialects import mysql

from applier.sinks.bookkeeping.bookkeeping import REPLACE, Bookkeeping, BookkeepingDialect, ColumnTypes
from applier.sinks.settings import SinkSettings

_BINARY: Final[Any] = {"charset": "utf8mb4", "collation": "utf8mb4_bin"}
_OPTIONS: Final = {"engine": "InnoDB", "charset": "utf8mb4", "collate": "utf8mb4_bin"}

DIALECT: Final = BookkeepingDialect(
    now="UTC_TIMESTAMP(6)",
    for_share="LOCK IN SHARE MODE",
    upsert=REPLACE,
    quote="`",
    is_transactional=False,
    types=ColumnTypes(
        text=partial(mysql.VARCHAR, **_BINARY),
        long_text=mysql.LONGTEXT(**_BINARY),
        tso=mysql.BIGINT(unsigned=True),
        number=mysql.BIGINT(),
        moment=mysql.DATETIME(fsp=6),
        content=mysql.LONGBLOB(),
    ),
    table_options={f"{server}_{option}": value for server in ("mysql", "mariadb") for option, value in _OPTIONS.items()},
)


def bookkeeping_of(settings: SinkSettings) -> Bookkeeping:
    """Return the location of the replica's bookkeeping."""
    return Bookkeeping(settings.name, DIALECT, settings.schema)
