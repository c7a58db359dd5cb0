"""The variables of a session, fixed so that a server's defaults never change what is written; and facts about its server.

A fact stays the same as long as a session lasts: each is asked for once per session (a DDL would ask for the version nine times).
"""

from collections.abc import Callable, Mapping
from typing import Final, TypeVar

from sqlalchemy import Connection, text
from sqlalchemy.exc import SQLAlchemyError

from applier.model.errors import Remedy
from applier.mysql.errors import NoSession, code_of
from applier.mysql.queries import QUERIES

T = TypeVar("T")

SQL_MODE: Final = "ONLY_FULL_GROUP_BY,NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES,NO_ENGINE_SUBSTITUTION"
"""The whole list. Not strict: a strict server refuses ENUM ordinal 0 and the lossy DDLs that upstream has run; that no *row* is altered
silently is the writer's task: it stops at every warning. Zero and invalid dates are values. Not IGNORE_SPACE, which turns the
names of functions into reserved words."""

LOCK_WAIT_TIMEOUT_S: Final = 50
"""How long a session that only reads waits for a table in use."""
UNLIMITED: Final = 2**64 - 1
_PRIVILEGE_NEEDED: Final = 1227
_DISPENSABLE: Final = frozenset({"max_error_count", "sql_require_primary_key"})
"""The dialect keeps the number of warnings that a statement may raise below the server's; a DDL that is refused has a remedy (3750)."""
_READING: Final = (
    "autocommit",
    "character_set_client",
    "character_set_connection",
    "character_set_results",
    "collation_connection",
    "sql_mode",
    "time_zone",
    "sql_auto_is_null",
    "sql_safe_updates",
    "lc_messages",
    "lock_wait_timeout",
    "tidb_enable_external_ts_read",
)
_VERSION: Final = text("SELECT VERSION()")
_UTC: Final = frozenset({"UTC", "Z", "ETC/UTC", "-00:00"})


def set_variables(connection: Connection, wanted: Mapping[str, str | float]) -> None:
    """Set what differs, and read it again: a proxy between, or a limit of the server, may have changed what arrived."""
    _set(connection, "sql_select_limit", UNLIMITED)  # first: it cuts SHOW VARIABLES off too
    # Only what differs is set: on a server that is set up right, a session costs two statements and not thirty.
    different = [name for name in _different(connection, wanted) if _set(connection, name, wanted[name])]
    remaining = _different(connection, {name: wanted[name] for name in different}) if different else {}
    for name, found in remaining.items():
        raise NoSession(
            "the server changed a setting of the session",
            remedy=Remedy(
                "mysql.connect-without-proxy",
                "Connect to the server directly, not through a proxy that shares sessions. Check the limits that the server sets",
            ),
            variable=name,
            wanted=wanted[name],
            found=found,
        )
    try:
        connection.commit()
    except SQLAlchemyError as error:
        raise NoSession("setting the session's variables") from error


def _different(connection: Connection, wanted: Mapping[str, str | float]) -> dict[str, str]:
    """Return the variables that the server has and that are not as wanted, with what they are."""
    try:
        rows = connection.execute(QUERIES["session_variables"], {"names": list(wanted)}).all()
    except SQLAlchemyError as error:
        raise NoSession("reading the session's variables") from error
    present = {str(name).casefold(): str(value) for name, value in rows}
    return {name: present[name] for name, value in wanted.items() if name in present and not _is_equal(present[name], value)}


def _is_equal(present: str, wanted: str | float) -> bool:
    """Compare as servers show values: numbers with decimals, lists in their own order, switches as words or digits."""
    if not isinstance(wanted, str):
        try:
            return float(present) == float(wanted)
        except ValueError:
            return False
    switches = {"1": "on", "0": "off"}
    shown = present.casefold()
    return sorted(switches.get(shown, shown).split(",")) == sorted(wanted.casefold().split(","))


def _set(connection: Connection, name: str, value: str | float) -> bool:
    """Return False where MySQL allows only administrators to set a variable that the sink does not need."""
    try:
        connection.execute(QUERIES[f"set_{name}"], {"value": value})
    except SQLAlchemyError as error:
        if name in _DISPENSABLE and code_of(error) == _PRIVILEGE_NEEDED:
            return False
        raise NoSession("setting the session's variables", variable=name, value=value) from error
    return True


def reading_variables(time_zone: str, statement_timeout_s: int) -> dict[str, str | float]:
    """Return the variables of a session that only reads: what decides how values are printed, and which state is seen."""
    every = fixed_variables(time_zone, LOCK_WAIT_TIMEOUT_S, idle_s=statement_timeout_s)
    return {name: every[name] for name in _READING} | {
        # Only with this one does a transaction see one state.
        "transaction_isolation": "REPEATABLE-READ",
        "tx_isolation": "REPEATABLE-READ",
        "max_statement_time": statement_timeout_s,
        "max_execution_time": statement_timeout_s * 1000,
    }


def zone_on_server(zone: str) -> str:
    """Return a zone as each server knows it: the name UTC is known only if the zone tables are loaded."""
    return "+00:00" if zone.upper() in _UTC else zone


def fixed_variables(time_zone: str, lock_wait_timeout_s: int, idle_s: int, *, checks_rows: bool = True) -> dict[str, str | float]:
    """Return the required value of each session variable that the server has. Why: the comments of sql/mysql.sql."""
    return {
        "autocommit": "OFF",
        "character_set_client": "utf8mb4",
        "character_set_connection": "utf8mb4",
        "character_set_results": "utf8mb4",
        "collation_connection": "utf8mb4_bin",
        "sql_mode": SQL_MODE,
        "time_zone": zone_on_server(time_zone),
        "foreign_key_checks": "OFF",
        "transaction_isolation": "READ-COMMITTED",
        "tx_isolation": "READ-COMMITTED",
        "character_set_server": "utf8mb4",
        "collation_server": "utf8mb4_bin",
        "default_storage_engine": "InnoDB",
        "explicit_defaults_for_timestamp": "ON",
        "sql_auto_is_null": "OFF",
        "max_error_count": 65535,
        "sql_notes": "ON",
        "max_statement_time": 0,
        "max_execution_time": 0,
        "sql_safe_updates": "OFF",
        "unique_checks": "ON",
        "completion_type": "NO_CHAIN",
        "lc_messages": "en_US",
        "restrict_fk_on_non_standard_key": "OFF",
        "sql_generate_invisible_primary_key": "OFF",
        "sql_require_primary_key": "OFF",
        "innodb_lock_wait_timeout": lock_wait_timeout_s,
        "lock_wait_timeout": lock_wait_timeout_s,
        "wait_timeout": idle_s,
        "tidb_txn_mode": "pessimistic",
        "allow_auto_random_explicit_insert": "ON",
        "tidb_placement_mode": "IGNORE",
        "tidb_enable_external_ts_read": "OFF",
        **({} if checks_rows else {"check_constraint_checks": "OFF"}),
    }


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
