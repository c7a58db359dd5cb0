"""Sends one DDL to the server in the schema, at the time and with the variables that upstream's session had; finds sessions that block it.

A definition of a dump goes the same way: the same reader, the same rewriting, the same refusals. It has no intent: a load that fails begins
again from nothing, so an unknown outcome needs no comparison.
"""

import logging
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Final

from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from applier.ddl import DdlKind, DdlStatement, parse_ddl
from applier.ddl.adaptation import indexes_by_name, left_out, refuse_inexpressible, without_missing_indexes
from applier.ddl.conditions import background_form, may_run_in_background
from applier.ddl.old_values import SERVER_KIND
from applier.ddl.tokens import as_tidb_reads
from applier.ddl.zone_use import TIME_ZONE
from applier.model.errors import FatalSinkError, Remedy
from applier.model.events import DdlEvent, FoldedName, TableName
from applier.mysql.catalogue import whole_columns_of_indexes
from applier.mysql.errors import ErrorVerdict, code_of, is_database_error, meaning_of, server_text, translate
from applier.mysql.names import has_schema, names_asked_once, quote_table, spellings
from applier.mysql.queries import QUERIES
from applier.mysql.session import driven, execute_text, read_bytes, roll_back, session_id, transaction
from applier.mysql.session_variables import SQL_MODE, zone_on_server
from applier.sinks.bookkeeping.ledger import PastDdls
from applier.sinks.mysql.ddl.rewrite import known_to, sink_statement, spelled_in_sink, target_of, without_satisfied
from applier.sinks.mysql.ddl.schema_default import schema_as_upstreams
from applier.sinks.mysql.ddl.upstream_names import with_upstream_names
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


_TIMESTAMP: Final = "timestamp"
_NO_VARIABLES: Final = frozenset({_TIMESTAMP, SERVER_KIND})
"""Variables that are set in another way, or that describe the server."""
_VERSION: Final = "version"
_SQL_MODE: Final = "sql_mode"
_ROUNDS, _TRUNCATES = "TIME_ROUND_FRACTIONAL", "TIME_TRUNCATE_FRACTIONAL"
"""Modes of MariaDB, and of MySQL: each turns on what the server does not do without it."""
_NOT_OURS: Final = frozenset({"NO_AUTO_VALUE_ON_ZERO", "ALLOW_INVALID_DATES"})
"""Modes that only upstream's session decides: numbers of a new AUTO_INCREMENT column, and which dates of old rows remain."""


@contextmanager
def upstream_session(connection: Connection, ddl: DdlEvent) -> Iterator[None]:
    """Give the session upstream's time and variables in the block, so that values that a DDL gives to old rows are upstream's."""
    wanted = variables_of(ddl)
    with transaction(connection):
        before = _present(connection, [*wanted, _VERSION]) if wanted else {}
        is_mariadb = "mariadb" in before.pop(_VERSION, "").casefold()
    try:
        with transaction(connection):
            _set(connection, modes_known_to(wanted, is_mariadb=is_mariadb))
            # A timestamp of 0 would mean the server's clock.
            if seconds := time_of(ddl):
                connection.execute(QUERIES["timestamp_set"], {"seconds": seconds})
            else:
                connection.execute(QUERIES["timestamp_reset"])
        yield
    except BaseException:
        # The statement's error must come through.
        with suppress(SQLAlchemyError, OSError):
            _restore(connection, before)
        raise
    _restore(connection, before)


def _present(connection: Connection, names: Iterable[str]) -> dict[str, str]:
    rows = connection.execute(QUERIES["session_variables"], {"names": list(names)})
    return {str(name).casefold(): str(value) for name, value in rows}


def _set(connection: Connection, values: Mapping[str, str | int]) -> None:
    for name, value in values.items():
        connection.execute(QUERIES[f"set_{name}"], {"value": value})


def _restore(connection: Connection, before: Mapping[str, str | int]) -> None:
    try:
        with transaction(connection):
            connection.execute(QUERIES["timestamp_reset"])
            _set(connection, before)
    except BaseException:
        # Nothing of ours may run on a session that is not as it was set up.
        connection.invalidate()
        raise


def variables_of(ddl: DdlEvent) -> dict[str, str | int]:
    """Return the variables of the session that a DDL sets in addition to its time, each with the value that the sink needs."""
    found = {name: value for name, value in ddl.session if name not in _NO_VARIABLES}
    if TIME_ZONE in found:
        found[TIME_ZONE] = zone_on_server(str(found[TIME_ZONE]))
    if _SQL_MODE in found:
        # What upstream's modes make of a statement is added to the modes that let the sink take what upstream has taken.
        ours = [mode for mode in SQL_MODE.split(",") if mode not in _NOT_OURS]
        found[_SQL_MODE] = ",".join(filter(None, (*ours, str(found[_SQL_MODE]))))
    return found


def modes_known_to(variables: Mapping[str, str | int], *, is_mariadb: bool) -> dict[str, str | int]:
    """Return the variables without a mode that the server does not have, because it is what the server does."""
    unknown = _TRUNCATES if is_mariadb else _ROUNDS
    modes = {
        name: ",".join(mode for mode in str(value).split(",") if mode != unknown) for name, value in variables.items() if name == _SQL_MODE
    }
    return {**variables, **modes}


def time_of(ddl: DdlEvent) -> float:
    """Return when a DDL ran upstream, in seconds since the epoch; 0: not known."""
    if exact := dict(ddl.session).get(_TIMESTAMP):
        return float(exact)
    return (ddl.time_ms or 0) / 1000


_NO_SCHEMA: Final = "information_schema"

_UNLIKE: Final = 1731
"""ER_TABLES_DIFFERENT_METADATA: EXCHANGE PARTITION finds tables that differ."""


def run_statement(connection: Connection, ddl: DdlEvent, collations: Collations = ()) -> list[int]:
    """Run the DDL in its schema, at the time of its commit_ts; return the codes of the server's warnings.

    Errors are SQLAlchemy's. If a lock wait timed out, the sessions that hold the lock are logged.
    """
    with transaction(connection):
        asked, warnings = without_satisfied(connection, ddl)
    there = as_in_sink(connection, asked, collations, resolves=False)
    note_left_out(connection, asked, there)
    if not there.query:
        return warnings
    try:
        # Around the statement, because CREATE DATABASE on an existing schema answers 1007, or a note, whatever its defaults are.
        with schema_as_upstreams(connection, ddl, there.query):
            if replaced := _replaced_before(ddl, there):
                send(connection, there, f"DROP TABLE IF EXISTS {quote_table(*replaced)}")
            warnings = [*warnings, *send(connection, there, there.query)]
    except Exception as error:
        if meaning_of(error).verdict is ErrorVerdict.RETRY:
            facts = {"table": str(ddl.name), "commit_ts": ddl.commit_ts, "blocked_by": blockers(connection, ddl.schema)}
            _log.warning("ddl_blocked", extra=facts)
        raise
    return warnings


def as_in_sink(
    connection: Connection, ddl: DdlEvent, collations: Collations = (), *, table: TableName | None = None, resolves: bool = True
) -> DdlEvent:
    """Return the DDL with the statement that the sink runs, and the names as the sink spells them.

    ``table``: the table whose columns and indexes the statement finds, where that is not its own. ``resolves``: whether clauses whose IF
    [NOT] EXISTS has nothing to do are taken out.
    """
    with transaction(connection), names_asked_once(connection):
        if resolves:
            ddl, _ = without_satisfied(connection, ddl, table)
        if not ddl.query:
            return ddl
        # Asked again for each attempt: a part of a list of RENAMEs or DROPs may have run.
        spelled = spelled_in_sink(connection, ddl)
        statement = sink_statement(ddl, spelled, target_of(connection, collations), known_to(connection, ddl))
        if indexes_by_name(statement):
            statement = _with_present_indexes(connection, ddl, statement, table)
    schema = spelled.get(FoldedName(ddl.schema.casefold(), ""), ddl.name).schema
    return replace(ddl, schema=schema, query=statement)


def _replaced_before(ddl: DdlEvent, there: DdlEvent) -> TableName | None:
    """Return the table of a CREATE OR REPLACE TABLE on a server without one; None if the statement is another, or the server has it."""
    statement, sent = parse_ddl(ddl), parse_ddl(there)
    if statement is None or sent is None or sent.kind not in {DdlKind.CREATE_TABLE, DdlKind.CREATE_TABLE_LIKE}:
        return None
    return sent.creates[0] if statement.or_replace and not sent.or_replace else None


def _with_present_indexes(connection: Connection, ddl: DdlEvent, statement: str, table: TableName | None) -> str:
    """Return the statement without what it does to indexes that the sink does without."""
    parsed = parse_ddl(ddl)
    if table is None and parsed is not None and parsed.needs:
        table = parsed.needs[0]
    found = None if table is None else spellings(connection, [table]).get(table.fold())
    return statement if found is None else without_missing_indexes(statement, whole_columns_of_indexes(connection, found).keys())


def note_left_out(connection: Connection, ddl: DdlEvent, there: DdlEvent) -> None:
    """Log which indexes the sink does without."""
    with transaction(connection):
        names = left_out(ddl.query, target_of(connection))
    gone = [name for name in indexes_by_name(as_tidb_reads(ddl.query)) if name not in indexes_by_name(there.query)]
    for name in dict.fromkeys([*names, *gone]):
        _log.info("index_left_out", extra={"table": str(ddl.name), "index": name, "commit_ts": ddl.commit_ts})


def send(connection: Connection, ddl: DdlEvent, statement: str) -> list[int]:
    """Run ``statement`` in the DDL's schema and at its time; return the codes of the warnings. ``ddl`` comes from ``as_in_sink``.

    The session does not keep them, even if the statement fails: the next statement on it does not belong to the DDL.
    """
    parsed = parse_ddl(ddl)
    _enter(connection, ddl, parsed)
    with upstream_session(connection, ddl):
        try:
            return _execute(connection, statement)
        except SQLAlchemyError as error:
            if parsed is None or not _are_unlike_inside(error):
                raise
        # A setting would be cheaper, but MySQL does not have one that makes ADD COLUMN rewrite the rows.
        _rebuild(connection, parsed)
        return _execute(connection, statement)


def _enter(connection: Connection, ddl: DdlEvent, statement: DdlStatement | None) -> None:
    """Enter the DDL's schema.

    A DDL without a schema must not run in that of the DDL before it. No one can create a table in information_schema, so it fails there.
    """
    # The schema of a CREATE DATABASE does not exist yet, and that of a DROP DATABASE may be gone already.
    is_of_schema = statement is not None and statement.kind in {DdlKind.CREATE_SCHEMA, DdlKind.DROP_SCHEMA}
    with driven(connection) as driver:
        driver.select_db(_NO_SCHEMA if is_of_schema or not ddl.schema else ddl.schema)


def _are_unlike_inside(error: SQLAlchemyError) -> bool:
    """Return whether MySQL refused an EXCHANGE because an instant ADD or DROP COLUMN left one table's rows in an older format."""
    return code_of(error) == _UNLIKE and "INSTANT COLUMN" in server_text(error)


def _rebuild(connection: Connection, statement: DdlStatement) -> None:
    """Rebuild the tables of an EXCHANGE: upstream has no such rule, and MySQL takes rebuilt tables."""
    for name in statement.needs:
        _log.info("rebuilding_table", extra={"table": str(name)})
        _execute(connection, f"ALTER TABLE {quote_table(name.schema, name.table)} FORCE")


def _execute(connection: Connection, statement: str) -> list[int]:
    # With autocommit off, MariaDB's EXCHANGE PARTITION waits for a lock that its own check of the rows holds, until it times out.
    _set_autocommit(connection, is_on=True)
    try:
        _, warnings = execute_text(connection, statement)
        # Only if there are any: SHOW WARNINGS costs a round trip, and most DDLs have none.
        codes = [int(code) for _, code, _ in read_bytes(connection, "SHOW WARNINGS")] if warnings else []
    except BaseException:
        # On a session that is gone it fails, and must not hide the statement's error.
        with suppress(SQLAlchemyError):
            _set_autocommit(connection, is_on=False)
        raise
    _set_autocommit(connection, is_on=False)
    return codes


def _set_autocommit(connection: Connection, *, is_on: bool) -> None:
    with driven(connection) as driver:
        driver.autocommit(is_on)


def run_loaded(connection: Connection, past: PastDdls, ddl: DdlEvent, collations: Collations) -> DdlEvent:
    """Run the statement with upstream's names, and return the DDL with them.

    NeedsOperator: the server cannot have what it makes; FatalSinkError: the server refused it, with its words.
    """
    statement, target = parse_ddl(ddl), target_of(connection, collations)
    ddl = with_upstream_names(connection, past, ddl, target)
    refuse_inexpressible(ddl, target)
    # A schema that is there may hold tables of others. Its definition stays, and the tables of a dump name their own.
    is_schema = statement is not None and statement.kind is DdlKind.CREATE_SCHEMA
    if is_schema and statement is not None and has_schema(connection, statement.schema):
        return ddl
    connection.commit()
    try:
        run_statement(connection, ddl, collations)
    except Exception as error:
        if not is_database_error(error):
            raise
        facts = {"table": str(ddl.name), "query": ddl.query}
        raise translate(error, "making what a dump defines", shows_text=True, **facts) from error
    return ddl
