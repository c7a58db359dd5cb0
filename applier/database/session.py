"""A session that never becomes another one.

SQLAlchemy replaces a connection that it takes for lost: the next statement runs on a new one, which lacks what the old one had (a
replica's lock, a registered token, the variables of the session, an open transaction, a snapshot). Each code path that does so
begins with a connection that was invalidated: by an error that its dialect calls a disconnect, or by ``Connection.invalidate``. Neither
happens here. A session that is lost stays the session that it was, and each further use of it is an error of the driver.

Also what addresses and TLS of all databases have in common. No message about a URL quotes a part that may be a password.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TypeAlias
from urllib.parse import parse_qsl

from sqlalchemy import Connection, Engine, event
from sqlalchemy.engine import URL, ExceptionContext, make_url
from sqlalchemy.exc import ArgumentError

from applier.model.errors import Remedy

Options: TypeAlias = list[tuple[str, str]]

QUOTED: Final = Remedy(
    "sink.encode-password",
    "If user or password contain such characters, encode them (@ as %40, : as %3A, / as %2F, # as %23, ? as %3F, % as %25), "
    "or give the password as password_file, APPLIER_SINK__PASSWORD or APPLIER_SOURCE__PASSWORD, without encoding",
)


class BadAddress(ValueError):
    """What is wrong with a URL (a text that follows the URL's name in a message), and the remedy."""

    def __init__(self, problem: str, remedy: Remedy) -> None:
        super().__init__(problem)
        self.problem, self.remedy = problem, remedy


def parse_address(text: str, form: Remedy) -> tuple[URL, Options]:
    """Return the URL and its options; BadAddress: it is none. ``form``: the remedy that shows one."""
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        # Not chained: the library's message may hold the password.
        raise BadAddress("is not a URL of a database", form.then(QUOTED) if "@" in text else form) from None
    # SQLAlchemy drops options without a value; parsed here, they are refused like others.
    return url, parse_qsl(text.rpartition("@")[2].partition("?")[2], keep_blank_values=True)


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


class SingleSession(Connection):
    """One connection of the driver, from here to ``close``. ``engine`` must have been given to ``never_replace``.

    Each database has one subclass, which knows how its driver cuts a connection off. Errors of the database are SQLAlchemy's.
    """

    def end(self) -> None:
        """Cut the driver's connection without telling the server; whatever is sent afterwards is an error of the driver."""
        raise NotImplementedError

    def invalidate(self, exception: BaseException | None = None) -> None:
        """End the session. SQLAlchemy's own method would have the next statement open another connection."""
        del exception
        self.end()

    def close(self) -> None:
        """Close without a ROLLBACK, for which a silent server would let us wait: the server rolls back without it."""
        if not self.closed:
            super().invalidate()
        super().close()


def never_replace(engine: Engine) -> None:
    """Keep SQLAlchemy from opening another connection after an error of a ``SingleSession``."""
    # Asked first, also about the ROLLBACK that SQLAlchemy may send while it handles an error: an event alone comes too late for that.
    engine.dialect.is_disconnect = _never  # type: ignore[method-assign, assignment]
    event.listen(engine, "handle_error", _keep)


def _never(*_: object) -> bool:
    return False


def _keep(context: ExceptionContext) -> None:
    # Without the dialect's word, only an interrupted statement counts as a disconnect: its answer may still be on the way.
    session = context.connection
    if context.is_disconnect and isinstance(session, SingleSession):
        session.end()
        context.is_disconnect = False
