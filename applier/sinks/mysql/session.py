"""The sessions of a sink of the MySQL family, each for one purpose: how long it waits, and what its variables are."""

from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum

from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from applier.model.errors import FatalSinkError
from applier.mysql.errors import NoSession, translate
from applier.mysql.session import (
    ServerAddress,
    ServerSession,
    SessionOptions,
    discard,
    open_reader,
    open_server_session,
    transaction,
)
from applier.mysql.session_variables import fixed_variables, reading_variables
from applier.sinks.settings import BulkLoad, SinkSettings

GLANCE_S = 3
"""How long a viewer of the page waits for each step of the answer."""
WRITER_IDLE_S = 600
"""A frozen writer holds the progress row no longer than this. Not shorter: between two statements a shuffle may be read."""
DAY_S = 86_400
YEAR_S = 365 * DAY_S


class Purpose(Enum):
    """What a session is for."""

    WRITE = "write"
    """Writes segments. A frozen one must not hold the progress row for long."""
    CONTROL = "control"
    """Reads progress and catalogue."""
    OWN = "own"
    """Holds the replica's lock and runs DDL: no read timeout, and it may idle without limit."""
    BEAT = "beat"
    """Renews the heartbeat: times out before the lease ends."""
    COMPARE = "compare"
    """Reads tables of upstream or of the sink, in consistent snapshots."""
    GLANCE = "glance"
    """Short reads for a viewer who waits."""


def open_session(settings: SinkSettings, purpose: Purpose) -> ServerSession:
    """Open a session and fix its settings; RetryableSinkError or FatalSinkError with a remedy if that fails."""
    with _refusals(settings):
        return open_server_session(_server_of(settings), _variables_of(settings, _idle_s(purpose)), _options_of(settings, purpose))


def open_comparison(settings: SinkSettings, statement_timeout_s: int) -> ServerSession:
    """Open a session that only reads, on upstream or the sink; errors as in ``open_session``. It needs no privilege but SELECT."""
    with _refusals(settings):
        return open_reader(_server_of(settings), settings.time_zone, statement_timeout_s)


@contextmanager
def glancing(settings: SinkSettings) -> Iterator[Connection]:
    """Give a separate session for one short transaction; other work of this process with the sink continues.

    Errors as in ``open_session``.
    """
    options = SessionOptions(GLANCE_S, connect_timeout_s=GLANCE_S)
    with _refusals(settings):
        connection = open_server_session(_server_of(settings), reading_variables(settings.time_zone, GLANCE_S), options)
    try:
        with transaction(connection):
            yield connection
    except (SQLAlchemyError, OSError) as error:
        raise translate(error, "reading the bookkeeping", replica=settings.name) from error
    finally:
        discard(connection)


@contextmanager
def _refusals(settings: SinkSettings) -> Iterator[None]:
    """Raise the cause that prevents a session as an error of the sink."""
    try:
        yield
    except NoSession as failure:
        cause, facts = failure.__cause__, {**failure.facts, "replica": settings.name}
        if cause is None:
            raise FatalSinkError(failure.doing, remedy=failure.remedy, **facts) from failure
        raise translate(cause, failure.doing, **facts) from cause


def _server_of(settings: SinkSettings) -> ServerAddress:
    """Return where the sink is."""
    return ServerAddress(url=settings.url, tls=settings.tls, name=settings.name)


def _variables_of(settings: SinkSettings, idle_s: int) -> dict[str, str | float]:
    """Return the variables of a session that writes to the sink."""
    return fixed_variables(settings.time_zone, settings.lock_wait_timeout_s, idle_s, checks_rows=settings.checks_rows)


def _options_of(settings: SinkSettings, purpose: Purpose) -> SessionOptions:
    if purpose is Purpose.OWN:
        return SessionOptions(None)
    if purpose is Purpose.BEAT:
        return SessionOptions(max(2, settings.lease_s), connect_timeout_s=max(2, int(settings.lease_s)))
    loads = purpose is Purpose.WRITE and settings.bulk_load is BulkLoad.AUTO
    return SessionOptions(settings.lock_wait_timeout_s + settings.silence_s, loads=loads)


def _idle_s(purpose: Purpose) -> int:
    match purpose:
        case Purpose.WRITE:
            return WRITER_IDLE_S
        case Purpose.OWN:
            return YEAR_S
        case Purpose.CONTROL | Purpose.BEAT | Purpose.COMPARE | Purpose.GLANCE:
            return DAY_S
