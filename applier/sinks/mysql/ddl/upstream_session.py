"""The session in which a DDL runs: upstream's time, and the variables that upstream's session had, for the length of the statement."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Final

from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from applier.ddl.old_values import SERVER_KIND
from applier.ddl.zone_use import TIME_ZONE
from applier.model.events import DdlEvent
from applier.mysql.queries import QUERIES
from applier.mysql.session import transaction
from applier.mysql.session_variables import SQL_MODE, zone_on_server

_TIMESTAMP: Final = "timestamp"
_NO_VARIABLES: Final = frozenset({_TIMESTAMP, SERVER_KIND})
"""What is set otherwise, or says something of the server."""
_VERSION: Final = "version"
_SQL_MODE: Final = "sql_mode"
_ROUNDS, _TRUNCATES = "TIME_ROUND_FRACTIONAL", "TIME_TRUNCATE_FRACTIONAL"
"""Known to MariaDB, and to MySQL: each for what it does not do by itself."""
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
            _set(connection, known_to(wanted, is_mariadb=is_mariadb))
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
    """Return the variables of the session that a DDL sets beside its time, each with the value that the sink needs."""
    found = {name: value for name, value in ddl.session if name not in _NO_VARIABLES}
    if TIME_ZONE in found:
        found[TIME_ZONE] = zone_on_server(str(found[TIME_ZONE]))
    if _SQL_MODE in found:
        # What upstream's modes make of a statement is added to the modes that let the sink take what upstream has taken.
        ours = [mode for mode in SQL_MODE.split(",") if mode not in _NOT_OURS]
        found[_SQL_MODE] = ",".join(filter(None, (*ours, str(found[_SQL_MODE]))))
    return found


def known_to(variables: Mapping[str, str | int], *, is_mariadb: bool) -> dict[str, str | int]:
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
