"""Facts about a server that stay the same as long as a session lasts: each is asked for once per session.

A DDL would ask for its version nine times. Another server, or another version of it, means another session.
"""

from collections.abc import Callable
from typing import TypeVar

from sqlalchemy import Connection, text

T = TypeVar("T")

_VERSION = text("SELECT VERSION()")


def asked_once(connection: Connection, fact: str, ask: Callable[[], T]) -> T:
    """Return what ``ask`` gives; from the second time on without asking."""
    # Of the driver's connection: a new session has a new one.
    known = connection.info.setdefault(__name__, {})
    if fact not in known:
        known[fact] = ask()
    found: T = known[fact]
    return found


def version_of(connection: Connection) -> str:
    """Return the server's version, casefolded; the name of MariaDB or TiDB is in it."""
    return asked_once(connection, "version", lambda: str(connection.scalar(_VERSION)).casefold())
