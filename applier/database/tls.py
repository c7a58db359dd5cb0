"""TLS to a database's server, in the operator's words."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class TlsMode(StrEnum):
    """How a connection to a server is protected."""

    DISABLED = "disabled"
    PREFERRED = "preferred"
    """With TLS where the server offers it; an attacker on the way can prevent it."""
    REQUIRED = "required"
    """With TLS, without checking who answers."""
    VERIFY_CA = "verify_ca"
    """With TLS, to a server with a certificate of the CA."""
    VERIFY_IDENTITY = "verify_identity"
    """With TLS, to the server that the certificate of the CA names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tls:
    """TLS to the database. Paths are on the machine that connects; without ``ca`` the system's own certificates count."""

    mode: TlsMode = TlsMode.PREFERRED
    ca: str | None = None
    cert: str | None = None
    key: str | None = None


PREFERRED: Final = Tls()
"""With TLS where the server offers it."""
