"""What the session of a QUERY event means for a DDL: defaults for its text, and variables that a sink sets for it. Pure."""

from collections.abc import Iterator
from typing import Final

from applier.ddl.old_values import MARIADB, MYSQL, SERVER_KIND
from applier.sources.binlog.collation_name import collation_name
from applier.sources.binlog.ddl_text import SessionDefaults
from applier.sources.binlog.query_event import QueryEvent, QuerySession

_REAL_AS_FLOAT: Final = 1
_MEANING: Final = {
    1 << 0: "REAL_AS_FLOAT",
    1 << 1: "PIPES_AS_CONCAT",
    1 << 3: "IGNORE_SPACE",
    1 << 6: "NO_UNSIGNED_SUBTRACTION",
    1 << 19: "NO_AUTO_VALUE_ON_ZERO",
    1 << 29: "HIGH_NOT_PRECEDENCE",
    1 << 31: "PAD_CHAR_TO_FULL_LENGTH",
}
"""The modes that decide what a DDL means, by their bits. Strictness decides only what is refused, and upstream has accepted the statement;
ANSI_QUOTES and NO_BACKSLASH_ESCAPES are written out in the text."""
_STRICT: Final = 1 << 21 | 1 << 22
_INVALID_DATES: Final = 1 << 25
_OF_DATES: Final = {1 << 23: "NO_ZERO_IN_DATE", 1 << 24: "NO_ZERO_DATE", _INVALID_DATES: "ALLOW_INVALID_DATES"}
"""Which dates of old rows become 0000-00-00. In a strict session a DDL with such a date fails."""
_TRUNCATES_ON_MYSQL: Final = 1 << 32
_ROUNDS_ON_MARIADB: Final = 1 << 34
"""What becomes of digits for which a column has no place any more: unless told so, MySQL rounds and MariaDB truncates."""
_EXPLICIT_TIMESTAMPS: Final = 1 << 24
"""MariaDB's OPTION_EXPLICIT_DEF_TIMESTAMP in the flags, from 10.10 on. Before, only the whole server has the variable, which is OFF."""

_DEFAULT_COLLATIONS: Final = {
    "utf8": "utf8mb3_general_ci",
    "utf8mb3": "utf8mb3_general_ci",
    "ascii": "ascii_general_ci",
    "latin1": "latin1_swedish_ci",
}
"""Where TiDB has another default than all others; the sinks' code for schemas knows TiDB's."""
_MYSQL_UTF8MB4: Final = "utf8mb4_0900_ai_ci"
_MARIADB_UTF8MB4: Final = "utf8mb4_general_ci"
DUMPED: Final = SessionDefaults(collations=_DEFAULT_COLLATIONS | {"utf8mb4": _MARIADB_UTF8MB4})
"""What a definition in a dump means where it says nothing: a server whose utf8mb4 has another default than MariaDB's says it."""


def defaults_of(session: QuerySession, *, is_mariadb: bool) -> SessionDefaults:
    """Return what a statement of the session means where it says nothing."""
    own = _MARIADB_UTF8MB4 if is_mariadb else collation_name(session.utf8mb4_collation) or _MYSQL_UTF8MB4
    collations = _DEFAULT_COLLATIONS | {"utf8mb4": own}
    for charset, collation in session.charset_collations.items():
        name, of = collation_name(collation), collation_name(charset).partition("_")[0]
        if name and of:
            collations |= {of: name} | ({"utf8": name} if of == "utf8mb3" else {})
    explicit = session.has_explicit_timestamps
    if is_mariadb:
        explicit = session.flags is None or bool(session.flags & _EXPLICIT_TIMESTAMPS)
    return SessionDefaults(
        collations=collations,
        server_collation=collation_name(session.server_collation),
        # MySQL says it where it matters only.
        has_explicit_timestamps=explicit is not False,
        real_is_float=bool(session.sql_mode & _REAL_AS_FLOAT),
    )


def session_of(query: QueryEvent, *, is_mariadb: bool) -> tuple[tuple[str, str | int], ...]:
    """Return the variables of the session that a sink sets: modes, which it adds to its own, time to the microsecond, zone and language.

    With the kind of the server, which is no variable: old rows become what such a server makes of them.
    """
    session = query.session
    modes = ",".join(_modes_of(session.sql_mode, is_mariadb=is_mariadb))
    seconds = f"{query.time_s}.{session.microseconds:06d}"
    zone = session.time_zone
    kind = (SERVER_KIND, MARIADB if is_mariadb else MYSQL)
    language = (("lc_time_names", session.time_names),) if session.time_names else ()
    return (("sql_mode", modes), ("timestamp", seconds), *((("time_zone", zone),) if zone else ()), *language, kind)


def _modes_of(sql_mode: int, *, is_mariadb: bool) -> Iterator[str]:
    of_dates = _INVALID_DATES if sql_mode & _STRICT else sql_mode
    yield from (name for bit, name in _MEANING.items() if sql_mode & bit)
    yield from (name for bit, name in _OF_DATES.items() if of_dates & bit)
    rounds = bool(sql_mode & _ROUNDS_ON_MARIADB) if is_mariadb else not sql_mode & _TRUNCATES_ON_MYSQL
    yield "TIME_ROUND_FRACTIONAL" if rounds else "TIME_TRUNCATE_FRACTIONAL"
