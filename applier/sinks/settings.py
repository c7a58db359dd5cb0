"""Where a sink is and how it is used: values that the configuration makes and every part of a sink reads."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

SCHEMA: Final = "applier"
"""Where the bookkeeping lies, unless the configuration names another schema."""


Collations = tuple[tuple[str, str], ...]
"""Pairs: the name of a collation upstream, in lower case, and what the sink calls it."""


class TlsMode(StrEnum):
    """How a connection to a server of the MySQL family is protected."""

    DISABLED = "disabled"
    PREFERRED = "preferred"
    """With TLS where the server offers it; an attacker on the way can prevent it."""
    REQUIRED = "required"
    """With TLS, without checking who answers."""
    VERIFY_CA = "verify_ca"
    """With TLS, to a server with a certificate of the CA."""
    VERIFY_IDENTITY = "verify_identity"
    """With TLS, to the server that the certificate of the CA names."""


class BulkLoad(StrEnum):
    """Whether rows may be written by bulk loads instead of REPLACE."""

    AUTO = "auto"
    """Where the server takes them, and every column type of the table is proven to be stored alike."""
    OFF = "off"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tls:
    """TLS to the database. Paths are those of the machine that connects; without ``ca`` the system's own certificates count."""

    mode: TlsMode = TlsMode.PREFERRED
    ca: str | None = None
    cert: str | None = None
    key: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkSettings:
    """Where the sink is and how it is used. Picklable; ``repr`` never shows the password."""

    url: str = field(repr=False)
    tls: Tls = Tls()
    name: str = "replica"
    schema: str = SCHEMA
    """Where the bookkeeping lies; in SQLite the prefix of its tables."""
    time_zone: str = "UTC"
    lease_s: float = 15.0
    lock_timeout_s: float = 30.0
    lock_wait_timeout_s: int = 50
    silence_s: int = 120
    """Beyond ``lock_wait_timeout_s``: a server that is silent for longer counts as lost."""
    bulk_load: BulkLoad = BulkLoad.AUTO
    collations: Collations = ()
    background: bool = False
    """Whether a new non-unique index is built beside the rows that follow (MySQL family)."""
    retries: int = 8
    """How often a retryable failure is retried before it becomes fatal."""
