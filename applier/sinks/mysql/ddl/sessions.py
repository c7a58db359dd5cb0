"""The sessions that concern a DDL: those that block it, and those of a dead run that still execute it."""

import logging
import time
from typing import Final

from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from applier.ddl.background import background_form, may_run_in_background
from applier.model.errors import FatalSinkError
from applier.model.events import DdlEvent
from applier.model.remedy import Remedy
from applier.mysql.errors import ErrorVerdict, meaning_of, translate
from applier.mysql.queries import QUERIES
from applier.mysql.session import roll_back, session_id, transaction
from applier.sinks.mysql.ddl.rewrite import known_to, sink_statement, spelled_in_sink, target_of
from applier.sinks.settings import Collations

POLL_S: Final = 0.5
"""Seconds between two looks at a statement that a dead run's session still executes."""
LONGEST_SILENCE_S: Final = 300.0
"""Seconds at most between two log lines about it. The first ones come soon; each pause is twice as long as the one before."""
# In this order: each server answers the first one that it knows.
_RUNNING: Final = ("running_mysql", "running_mariadb", "running_tidb")

_log = logging.getLogger(__name__)


def blockers(connection: Connection, schema: str) -> str:
    """Name the sessions that hold locks on the schema, or the oldest open transactions; '' where the server does not show them."""
    for query, values in (("blockers_locks", {"schema_name": schema}), ("blockers_transactions", {})):
        try:
            with transaction(connection):
                rows = connection.execute(QUERIES[query], values).all()
        except (SQLAlchemyError, OSError):
            # Another server's table, or one that needs a privilege. The blocker's name is a convenience, so the next query is tried.
            roll_back(connection)
            continue
        if rows:
            return "; ".join(f"session {row.id} of {row.user}@{row.host} for {row.seconds} s" for row in rows)
    return ""


def wait_until_ended(connection: Connection, ddl: DdlEvent, collations: Collations = ()) -> None:
    """Wait until no session of ours executes the DDL: a server continues a statement after its client has died."""
    try:
        with transaction(connection):
            # Both spellings: a part of a list of RENAMEs or DROPs may have run, and the sink spells other names now.
            target, spelled, known = target_of(connection, collations), spelled_in_sink(connection, ddl), known_to(connection, ddl)
            plain = {sink_statement(ddl, target=target, known=known), sink_statement(ddl, spelled, target, known)} - {""}
            statements = sorted(plain | {background_form(statement) for statement in plain if may_run_in_background(statement)})
    except (SQLAlchemyError, OSError) as error:
        raise translate(error, "checking for a running DDL") from error
    logged_at_s, silence_s = time.monotonic(), 0.0
    while running := [session for statement in statements for session in _running(connection, statement)]:
        # An ALTER may run for hours. Twice a second, as often as it is looked for, would be 14,000 lines in two hours.
        if time.monotonic() - logged_at_s >= silence_s:
            _log.warning("waiting_for_ddl", extra={"sessions": running})
            logged_at_s, silence_s = time.monotonic(), min(max(2 * silence_s, POLL_S), LONGEST_SILENCE_S)
        time.sleep(POLL_S)


def sessions_with(connection: Connection, statement: str) -> list[int]:
    """Return the other sessions of ours that execute a statement, from whichever list of sessions the server has."""
    try:
        own = session_id(connection)
    except SQLAlchemyError as error:
        raise translate(error, "checking for a running DDL") from error
    # performance_schema first: MySQL's information_schema.processlist ends with 3854 while any session executes a statement
    # with a character of four bytes, and MariaDB's shows question marks.
    for query in _RUNNING:
        try:
            with transaction(connection):
                found = set(connection.execute(QUERIES[query], {"statement": statement}).scalars())
        except (SQLAlchemyError, OSError) as error:
            if query == _RUNNING[-1] or meaning_of(error).verdict is ErrorVerdict.LOST:
                raise translate(error, "checking for a running DDL") from error
            continue
        if own in found:  # a list without this session is switched off (performance_schema)
            return sorted(found - {own})
    raise FatalSinkError(
        "the server does not list this session", remedy=Remedy("mysql.avoid-proxy", "Point [sink] url at the server itself, not at a proxy")
    )


def _running(connection: Connection, statement: str) -> list[int]:
    found = sessions_with(connection, statement)
    try:
        with transaction(connection):
            # TiDB runs a DDL as a job of its cluster, after the session that asked for it has gone.
            return found + list(connection.execute(QUERIES["tidb_jobs"], {"statement": statement}).scalars())
    except SQLAlchemyError as error:
        # Only TiDB has this table.
        if meaning_of(error).verdict is ErrorVerdict.LOST:
            raise translate(error, "checking for a running DDL") from error
        return found
