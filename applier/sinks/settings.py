"""Where a sink is and how it is used: values that the configuration makes and every part of a sink reads."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from applier.database.session import PREFERRED, Tls

SCHEMA: Final = "applier"
"""The location of the bookkeeping, unless the configuration names another schema."""


Collations = tuple[tuple[str, str], ...]
"""Pairs: the name of a collation upstream, in lower case, and what the sink calls it."""


class BulkLoad(StrEnum):
    """Whether rows may be written by bulk loads instead of REPLACE."""

    AUTO = "auto"
    """Where the server takes them, and every column type of the table is proven to be stored alike."""
    OFF = "off"


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkSettings:
    """Where the sink is and how it is used. Picklable; ``repr`` never shows the password."""

    url: str = field(repr=False)
    tls: Tls = PREFERRED
    name: str = "replica"
    schema: str = SCHEMA
    """The location of the bookkeeping; in SQLite the prefix of its tables."""
    time_zone: str = "UTC"
    lease_s: float = 15.0
    lock_timeout_s: float = 30.0
    lock_wait_timeout_s: int = 50
    silence_s: int = 120
    """Beyond ``lock_wait_timeout_s``: a server that is silent for longer counts as lost."""
    bulk_load: BulkLoad = BulkLoad.AUTO
    collations: Collations = ()
    background: bool = False
    """Whether a new non-unique index is built in the background (MySQL family)."""
    rows_ahead: bool = False
    """Whether rows are written ahead of the checkpoint (``consistency = "row"``), by writers that share a lock."""
    checks_rows: bool = True
    """Whether MariaDB checks rows by its CHECKs. Rows of a binlog are not checked: upstream has checked them, or had the checks off."""
    retries: int = 8
    """How often a retryable failure is retried before it becomes fatal."""
