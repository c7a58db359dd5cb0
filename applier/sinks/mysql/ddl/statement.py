"""Sends one DDL to the server as upstream's session would have, and looks at who is in its way."""

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Final

import pymysql
from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from applier.ddl import DdlKind, DdlStatement, parse_ddl
from applier.model.errors import FatalSinkError
from applier.model.events import DdlEvent, FoldedName
from applier.model.position import physical_ms
from applier.sinks.mysql.ddl.rewrite import sink_statement
from applier.sinks.mysql.ddl.schema_default import schema_as_upstreams
from applier.sinks.mysql.ddl.spelling import spelled_in_sink
from applier.sinks.mysql.dialect import quote_table
from applier.sinks.mysql.errors import ErrorVerdict, code_of, meaning_of, translate
from applier.sinks.mysql.session import QUERIES, driver_of, execute_text, read_bytes, roll_back, session_id, transaction

POLL_S: Final = 0.5
"""Seconds between two looks at a statement that a dead run's session still executes."""
LONGEST_SILENCE_S: Final = 300.0
"""Seconds at most between two words about it: the first come soon, each after twice the time of the one before."""
_NO_SCHEMA: Final = "information_schema"

_UNLIKE: Final = 1731
_RUNNING: Final = ("running_mysql", "running_mariadb", "running_tidb")

_log = logging.getLogger(__name__)


def run_statement(connection: Connection, ddl: DdlEvent) -> list[int]:
    """Run the DDL in its schema, at the time of its commit_ts; return the codes of the server's warnings.

    Errors are the driver's or SQLAlchemy's. If a lock wait timed out, the sessions that hold the lock are logged.
    """
    there = as_in_sink(connection, ddl)
    warnings: list[int] = []
    try:
        with schema_as_upstreams(connection, ddl):
            warnings = send(connection, there, there.query)
    except Exception as error:
        if meaning_of(error).verdict is ErrorVerdict.RETRY:
            facts = {"table": str(ddl.name), "commit_ts": ddl.commit_ts, "blocked_by": blockers(connection, ddl.schema)}
            _log.warning("ddl_blocked", extra=facts)
        raise
    return warnings


def as_in_sink(connection: Connection, ddl: DdlEvent) -> DdlEvent:
    """Return the DDL with the statement as the sink shall run it, and the names as the sink spells them."""
    with transaction(connection):
        spelled = spelled_in_sink(connection, ddl)
    schema = spelled.get(FoldedName(ddl.schema.casefold(), ""), ddl.name).schema
    return replace(ddl, schema=schema, query=sink_statement(ddl, spelled))


def send(connection: Connection, ddl: DdlEvent, statement: str) -> list[int]:
    """Run ``statement`` as a session of the DDL's would (``as_in_sink``): its schema, its time; return the codes of the warnings.

    The session is left as it was found, also where the statement fails: what runs on it next is no part of the DDL.
    """
    parsed = parse_ddl(ddl)
    _enter(connection, ddl, parsed)
    with _clock_of(connection, ddl):
        try:
            return _execute(connection, statement)
        except pymysql.err.MySQLError as error:
            if parsed is None or not _are_unlike_inside(error):
                raise
        _rebuild(connection, parsed)
        return _execute(connection, statement)


def _enter(connection: Connection, ddl: DdlEvent, statement: DdlStatement | None) -> None:
    """Enter the DDL's schema. One without a schema must not run in that of the DDL before it: no table can be made in the catalogue."""
    is_of_schema = statement is not None and statement.kind in {DdlKind.CREATE_SCHEMA, DdlKind.DROP_SCHEMA}
    driver_of(connection).select_db(_NO_SCHEMA if is_of_schema or not ddl.schema else ddl.schema)


def _are_unlike_inside(error: pymysql.err.MySQLError) -> bool:
    """Tell whether an EXCHANGE was refused because MySQL has added or dropped a column of one table without writing its rows anew."""
    return code_of(error) == _UNLIKE and "INSTANT COLUMN" in str(error.args[-1])


def _rebuild(connection: Connection, statement: DdlStatement) -> None:
    """Write the tables of an EXCHANGE anew: MySQL has no way to add a column that EXCHANGE would take, and upstream has no such rule."""
    for name in statement.needs:
        _log.info("rebuilding_table", extra={"table": str(name)})
        _execute(connection, f"ALTER TABLE {quote_table(name.schema, name.table)} FORCE")


@contextmanager
def _clock_of(connection: Connection, ddl: DdlEvent) -> Iterator[None]:
    """Let CURRENT_TIMESTAMP defaults of old rows be those of upstream. A session's timestamp of 0 would mean the clock."""
    with transaction(connection):
        connection.execute(QUERIES["timestamp_reset"])
        if seconds := physical_ms(ddl.commit_ts) / 1000:
            connection.execute(QUERIES["timestamp_set"], {"seconds": seconds})
    try:
        yield
    except BaseException:
        # A session that is lost has no clock to reset; the error of the statement is what counts.
        with suppress(SQLAlchemyError, OSError), transaction(connection):
            connection.execute(QUERIES["timestamp_reset"])
        raise
    with transaction(connection):
        connection.execute(QUERIES["timestamp_reset"])


def _execute(connection: Connection, statement: str) -> list[int]:
    # With autocommit off, MariaDB's EXCHANGE PARTITION waits for a lock of its own check of the rows, until it times out.
    driver = driver_of(connection)
    driver.autocommit(True)
    try:
        _, warnings = execute_text(connection, statement)
        codes = [int(code) for _, code, _ in read_bytes(connection, "SHOW WARNINGS")] if warnings else []
    except Exception as error:
        if meaning_of(error).verdict is not ErrorVerdict.LOST:
            driver.autocommit(False)
        raise
    driver.autocommit(False)
    return codes


def blockers(connection: Connection, schema: str) -> str:
    """Name the sessions that hold locks on the schema, or the oldest open transactions; '' where the server does not tell."""
    for query, values in (("blockers_locks", {"schema_name": schema}), ("blockers_transactions", {})):
        try:
            with transaction(connection):
                rows = connection.execute(QUERIES[query], values).all()
        except (SQLAlchemyError, OSError):
            # Another server's table, or one that needs a privilege: the name of the blocker is a convenience.
            roll_back(connection)
            continue
        if rows:
            return "; ".join(f"session {row.id} of {row.user}@{row.host} for {row.seconds} s" for row in rows)
    return ""


def wait_until_ended(connection: Connection, ddl: DdlEvent) -> None:
    """Wait until no session of ours executes the DDL any more: a server goes on after its client has died."""
    try:
        with transaction(connection):
            # The names may be others by now: a part of a list of RENAMEs, or of DROPs, has run.
            statements = sorted({sink_statement(ddl), sink_statement(ddl, spelled_in_sink(connection, ddl))})
    except (SQLAlchemyError, OSError) as error:
        raise translate(error, "looking for a running DDL") from error
    told_at_s, silence_s = time.monotonic(), 0.0
    while running := [session for statement in statements for session in _running(connection, statement)]:
        if time.monotonic() - told_at_s >= silence_s:
            _log.warning("waiting_for_ddl", extra={"sessions": running})
            told_at_s, silence_s = time.monotonic(), min(max(2 * silence_s, POLL_S), LONGEST_SILENCE_S)
        time.sleep(POLL_S)


def _sessions_with(connection: Connection, statement: str) -> list[int]:
    """Return the other sessions of ours that execute a statement, from whichever list of sessions the server has."""
    own = session_id(connection)
    for query in _RUNNING:
        try:
            with transaction(connection):
                found = set(connection.execute(QUERIES[query], {"statement": statement}).scalars())
        except (SQLAlchemyError, OSError) as error:
            if query == _RUNNING[-1] or meaning_of(error).verdict is ErrorVerdict.LOST:
                raise translate(error, "looking for a running DDL") from error
            continue
        if own in found:  # a list without this session is switched off
            return sorted(found - {own})
    raise FatalSinkError("the server does not list this session", remedy="Connect to the server itself and not to a proxy")


def _running(connection: Connection, statement: str) -> list[int]:
    found = _sessions_with(connection, statement)
    try:
        with transaction(connection):
            return found + list(connection.execute(QUERIES["tidb_jobs"], {"statement": statement}).scalars())
    except SQLAlchemyError as error:
        # Only TiDB has this table.
        if meaning_of(error).verdict is ErrorVerdict.LOST:
            raise translate(error, "looking for a running DDL") from error
        return found
