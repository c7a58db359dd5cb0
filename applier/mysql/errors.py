"""What the error codes of MySQL, MariaDB and TiDB mean to the applier, in one table, and how an exception becomes one of our errors.

Unknown codes are fatal. Sources: mysql_sink.md 5.5 and 5.6; MySQL error reference; MariaDB error codes; TiDB error codes.

A message of the server may quote row values (duplicate entry, incorrect value, the text near a syntax error). So only the messages of
codes that are known to carry nothing but names are passed on; from others only the column or key at the end of the message is taken.
"""

import re
import ssl
from enum import Enum
from typing import Any, Final, NamedTuple

import pymysql
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from applier.model.errors import NO_REMEDY, NULL_VALUE, FatalSinkError, Remedy, RetryableSinkError, RowRefused, SinkError, SinkFull


class ErrorVerdict(Enum):
    """What follows from an error."""

    RETRY = "retry"
    """The transaction was rolled back, and a retry may succeed."""
    LOST = "lost"
    """The connection is lost: the outcome of what was sent last is unknown."""
    FULL = "full"
    """The server has no room; what was sent last was rolled back, and may be sent again once there is room."""
    ALREADY_SO = "already so"
    """A DDL found that its result exists (or its object is missing); the catalogue decides whether that is so."""
    FATAL = "fatal"
    """A retry would fail again. Unknown codes are fatal."""


class ErrorMeaning(NamedTuple):
    """What a code means. ``shows_names``: the server's message holds names only, never values; ``of_rows``: some rows are wrong."""

    verdict: ErrorVerdict
    remedy: Remedy = NO_REMEDY
    shows_names: bool = False
    of_rows: bool = False


_GRANT = Remedy(
    "mysql.grant-denied-privilege",
    "Grant the user what the message says is denied: `applier grants sink` prints all that the sink's user needs, "
    "`applier grants verify` all for a comparison",
)
_LOGIN = Remedy(
    "mysql.check-user-and-password",
    "Check user, password and host of [sink] url, and whether the server requires TLS for this user (tls_mode, tls_cert). The password may "
    "come from APPLIER_SINK__PASSWORD or password_file",
)
_REACH = Remedy("mysql.check-host-and-port", "Check host and port of [sink] url, and whether the server runs")
_PORT = Remedy("mysql.check-other-program-on-port", "Check host and port of [sink] url: another program answers there")
_TLS = Remedy(
    "mysql.check-tls-settings",
    "Check tls_ca, tls_cert, tls_key and tls_mode of [sink], and the host's name in the server's certificate. The files must exist on "
    "every machine that writes",
)
_SHAPE = Remedy("mysql.define-table-like-upstream", "Give the sink's table the definition that it has upstream")
_SHAPE_AND_VALUES = Remedy(
    "mysql.define-table-or-exclude", f"{_SHAPE}. If a column was missing, give it upstream's values in existing rows"
)
_UNCHECKED = Remedy(
    "mysql.check-not-enforced",
    "If upstream has this check too, its session had check_constraint_checks = 0 (MariaDB): run in the sink ALTER TABLE … ALTER CHECK … "
    "NOT ENFORCED, and start the applier again. Otherwise drop the check",
)
_MISSING_TABLE = Remedy(
    "mysql.create-table-with-rows", "Create the table in the sink as upstream has it, with its rows, or restore the sink"
)
_MISSING_SCHEMA = Remedy(
    "mysql.create-schema-with-tables",
    "Create the schema in the sink as upstream has it, with tables and rows. For the bookkeeping, run `applier migrate`",
)
_OTHER_CHARSET = Remedy(
    "mysql.use-server-with-charset",
    "Use a server that has the charset, or change the sink by hand, its rows included, then `applier ddl done --ts … --table …`",
)
_MISSING_ROUTINE = Remedy(
    "mysql.make-function-by-hand",
    "Stored functions are not replicated. Make the function in the sink with upstream's text (SHOW CREATE FUNCTION there), and start the "
    "applier again. If the sink can do without the view: `applier ddl skip --ts … --table …`",
)
_WRITABLE = Remedy("mysql.use-writable-server", "Set [sink] url to a server that accepts writes")
ALREADY: Final = Remedy(
    "mysql.compare-table-and-decide",
    "Compare the sink's table with upstream's after this DDL, its rows too. If they are equal, run `applier ddl done --ts … --table …`. "
    "If not, correct the table, or rename the object that blocks it and run `applier ddl retry --ts … --table …`",
)

_ROOM = Remedy(
    "mysql.free-disk-space",
    "Free space on the disks of the sink's server (data, logs, temporary files), or raise the limit of its tablespace: a daemon "
    "retries for run.retry_for_s, and the next start retries too",
)
_MEMORY = Remedy("mysql.give-server-memory", "Give the sink's server more memory, or lower max_transaction_rows")
_DAMAGED = Remedy("mysql.repair-table", "See the server's log: check its disk, and repair the table or restore the sink")

RETRY = ErrorMeaning(ErrorVerdict.RETRY, shows_names=True)
_LOST = ErrorMeaning(ErrorVerdict.LOST, _REACH, shows_names=True)
_WRONG_VALUE = ErrorMeaning(ErrorVerdict.FATAL, _SHAPE, of_rows=True)
_NULL = ErrorMeaning(ErrorVerdict.FATAL, NULL_VALUE, of_rows=True)
_ALREADY_SO = ErrorMeaning(ErrorVerdict.ALREADY_SO, ALREADY, shows_names=True)

MEANINGS: Final[dict[int, ErrorMeaning]] = {
    # Rolled back: a retry may succeed.
    1020: RETRY,  # record changed since last read
    1040: RETRY,  # too many connections
    1047: RETRY,  # Galera node not ready
    1203: RETRY,  # too many connections of this user
    1205: RETRY,  # lock wait timeout
    1213: RETRY,  # deadlock
    1412: RETRY,  # table definition changed
    1637: RETRY,  # too many transactions
    3032: RETRY,  # offline mode (MySQL): the server is under maintenance
    3101: RETRY,  # the group's certification rolled back (MySQL Group Replication)
    2002: ErrorMeaning(ErrorVerdict.RETRY, _REACH, shows_names=True),
    2003: ErrorMeaning(ErrorVerdict.RETRY, _REACH, shows_names=True),
    2005: ErrorMeaning(ErrorVerdict.RETRY, _REACH, shows_names=True),
    8005: RETRY,  # TiDB: write conflict
    8022: RETRY,  # TiDB: transaction retryable
    8027: RETRY,  # TiDB: schema out of date
    8028: RETRY,  # TiDB: schema changed
    9001: RETRY,  # TiDB: PD timeout
    9002: RETRY,  # TiDB: TiKV timeout
    9003: RETRY,  # TiDB: TiKV busy
    9004: RETRY,  # TiDB: resolve lock timeout
    9005: RETRY,  # TiDB: region unavailable
    9007: RETRY,  # TiDB: write conflict
    # The connection is lost.
    0: _LOST,  # PyMySQL: used after it was closed
    1053: _LOST,  # server shutdown
    1152: _LOST,
    1158: _LOST,
    1159: _LOST,
    1160: _LOST,
    1161: _LOST,
    1317: _LOST,  # interrupted by KILL
    1927: _LOST,  # killed (MariaDB)
    2006: _LOST,
    2013: _LOST,
    2055: _LOST,
    3169: _LOST,  # killed (MySQL)
    4031: _LOST,  # idle for too long (MySQL 8)
    8501: _LOST,  # TiDB: outcome undetermined
    # A DDL that found its result.
    1007: _ALREADY_SO,
    1008: _ALREADY_SO,
    1050: _ALREADY_SO,
    1051: _ALREADY_SO,
    1060: _ALREADY_SO,
    1061: _ALREADY_SO,
    1068: _ALREADY_SO,
    1091: _ALREADY_SO,
    1176: _ALREADY_SO,
    1507: _ALREADY_SO,
    1517: _ALREADY_SO,
    1831: _ALREADY_SO,
    # An unknown column or table: of a DDL perhaps renamed or dropped already, of rows a wrong definition.
    1054: ErrorMeaning(ErrorVerdict.ALREADY_SO, _SHAPE_AND_VALUES, shows_names=True),
    1146: ErrorMeaning(ErrorVerdict.ALREADY_SO, _MISSING_TABLE, shows_names=True),
    4092: ErrorMeaning(ErrorVerdict.ALREADY_SO, ALREADY, shows_names=True),  # unknown view (MariaDB)
    # Access and configuration.
    1044: ErrorMeaning(ErrorVerdict.FATAL, _GRANT, shows_names=True),
    1045: ErrorMeaning(ErrorVerdict.FATAL, _LOGIN, shows_names=True),
    1049: ErrorMeaning(
        ErrorVerdict.FATAL,
        _MISSING_SCHEMA,
        shows_names=True,
    ),
    1129: ErrorMeaning(
        ErrorVerdict.FATAL,
        Remedy(
            "mysql.flush-hosts",
            "Too many connections from this machine had failed. Run FLUSH HOSTS on the server "
            "(MySQL 8.4: TRUNCATE TABLE performance_schema.host_cache)",
        ),
        shows_names=True,
    ),
    1130: ErrorMeaning(
        ErrorVerdict.FATAL,
        Remedy(
            "mysql.give-user-this-host",
            "Give the sink's user an account for this machine's address: CREATE USER 'user'@'address', "
            "with the privileges that `applier grants sink` prints",
        ),
        shows_names=True,
    ),
    1142: ErrorMeaning(ErrorVerdict.FATAL, _GRANT, shows_names=True),
    1143: ErrorMeaning(ErrorVerdict.FATAL, _GRANT, shows_names=True),
    1227: ErrorMeaning(ErrorVerdict.FATAL, _GRANT, shows_names=True),
    1251: ErrorMeaning(
        ErrorVerdict.FATAL,
        Remedy(
            "mysql.give-user-known-plugin",
            "Give the sink's user an authentication plugin that PyMySQL supports: mysql_native_password or caching_sha2_password",
        ),
        shows_names=True,
    ),
    1298: ErrorMeaning(
        ErrorVerdict.FATAL,
        Remedy("mysql.load-zone-tables", "Load the zone tables (mysql_tzinfo_to_sql), or give time_zone as an offset"),
        shows_names=True,
    ),
    1370: ErrorMeaning(ErrorVerdict.FATAL, _GRANT, shows_names=True),
    1410: ErrorMeaning(ErrorVerdict.FATAL, _GRANT, shows_names=True),
    1698: ErrorMeaning(ErrorVerdict.FATAL, _LOGIN, shows_names=True),
    2012: ErrorMeaning(ErrorVerdict.FATAL, _PORT, shows_names=True),  # the port speaks another protocol
    2026: ErrorMeaning(ErrorVerdict.FATAL, _TLS, shows_names=True),
    3159: ErrorMeaning(
        ErrorVerdict.FATAL,
        Remedy("mysql.set-tls", "Set tls_ca or tls_mode of [sink]: this server accepts connections with TLS only"),
        shows_names=True,
    ),
    1290: ErrorMeaning(ErrorVerdict.FATAL, _WRITABLE, shows_names=True),
    1665: ErrorMeaning(
        ErrorVerdict.FATAL, Remedy("mysql.set-binlog-format-row", "Set binlog_format = ROW on the server"), shows_names=True
    ),
    1792: ErrorMeaning(ErrorVerdict.FATAL, _WRITABLE, shows_names=True),
    1836: ErrorMeaning(ErrorVerdict.FATAL, _WRITABLE, shows_names=True),
    # Room.
    20: ErrorMeaning(ErrorVerdict.FULL, _ROOM, shows_names=True),  # disk is full (MySQL: 20, the C API's number)
    28: ErrorMeaning(ErrorVerdict.FULL, _ROOM, shows_names=True),  # the number of the operating system
    1021: ErrorMeaning(ErrorVerdict.FULL, _ROOM, shows_names=True),  # disk full
    1114: ErrorMeaning(ErrorVerdict.FULL, _ROOM, shows_names=True),  # the table is full: its disk, tablespace or memory
    # The operating system's number in the text decides: see ``_OS_FULL``.
    3: ErrorMeaning(ErrorVerdict.FATAL, _DAMAGED, shows_names=True),  # error writing a file
    1004: ErrorMeaning(ErrorVerdict.FATAL, _DAMAGED, shows_names=True),  # a file cannot be created
    1005: ErrorMeaning(ErrorVerdict.FATAL, ALREADY, shows_names=True),  # a table cannot be created
    1006: ErrorMeaning(ErrorVerdict.FATAL, _DAMAGED, shows_names=True),  # a schema cannot be created
    1023: ErrorMeaning(ErrorVerdict.FATAL, _DAMAGED, shows_names=True),  # error on close
    1026: ErrorMeaning(ErrorVerdict.FATAL, _DAMAGED, shows_names=True),  # error writing a file
    1030: ErrorMeaning(ErrorVerdict.FATAL, _DAMAGED, shows_names=True),  # error of the storage engine
    126: ErrorMeaning(ErrorVerdict.FATAL, _DAMAGED, shows_names=True),  # damaged
    127: ErrorMeaning(ErrorVerdict.FATAL, _DAMAGED, shows_names=True),  # damaged
    1194: ErrorMeaning(ErrorVerdict.FATAL, _DAMAGED, shows_names=True),  # marked as crashed
    5: ErrorMeaning(ErrorVerdict.RETRY, _MEMORY, shows_names=True),  # out of memory
    1037: ErrorMeaning(ErrorVerdict.RETRY, _MEMORY, shows_names=True),  # out of memory
    1038: ErrorMeaning(ErrorVerdict.RETRY, _MEMORY, shows_names=True),  # out of sort memory
    1041: ErrorMeaning(ErrorVerdict.RETRY, _MEMORY, shows_names=True),  # out of memory
    1197: ErrorMeaning(
        ErrorVerdict.FATAL,
        Remedy("mysql.raise-binlog-cache", "Raise max_binlog_cache_size of the server, or lower max_transaction_rows"),
        shows_names=True,
    ),
    1153: ErrorMeaning(
        ErrorVerdict.FATAL, Remedy("mysql.raise-max-allowed-packet", "Raise max_allowed_packet of the server"), shows_names=True
    ),
    1206: ErrorMeaning(
        ErrorVerdict.FATAL,
        Remedy("mysql.raise-buffer-pool", "Raise innodb_buffer_pool_size, or lower max_transaction_rows"),
        shows_names=True,
    ),
    # Rows that the sink's tables refuse.
    1048: _NULL,
    1062: ErrorMeaning(
        ErrorVerdict.FATAL,
        Remedy("mysql.look-for-unique-key", "Look for a unique key that upstream lacks, or a collation stricter than upstream's"),
        of_rows=True,
    ),
    1136: ErrorMeaning(ErrorVerdict.FATAL, _SHAPE),
    1263: _NULL,  # of a line of a bulk load
    1264: _WRONG_VALUE,
    1265: _WRONG_VALUE,
    1292: _WRONG_VALUE,
    1300: _WRONG_VALUE,
    1364: _WRONG_VALUE,
    1366: _WRONG_VALUE,
    1406: _WRONG_VALUE,
    1451: ErrorMeaning(
        ErrorVerdict.FATAL, Remedy("mysql.drop-foreign-keys", "Drop the foreign keys that upstream does not have"), of_rows=True
    ),
    1452: ErrorMeaning(
        ErrorVerdict.FATAL, Remedy("mysql.drop-foreign-keys-of-parent", "Drop the foreign keys that upstream does not have"), of_rows=True
    ),
    1526: ErrorMeaning(
        ErrorVerdict.FATAL,
        Remedy("mysql.give-partitions", "Give the sink's table the partitions that it has upstream, and keep its rows"),
        of_rows=True,
    ),
    1906: _WRONG_VALUE,
    3105: _WRONG_VALUE,
    3140: _WRONG_VALUE,  # no JSON (MySQL)
    3144: _WRONG_VALUE,  # JSON of binary text (MySQL)
    3157: _WRONG_VALUE,  # JSON that is too deep (MySQL)
    3819: ErrorMeaning(ErrorVerdict.FATAL, _UNCHECKED, shows_names=True, of_rows=True),
    4025: ErrorMeaning(
        ErrorVerdict.FATAL,
        Remedy("mysql.drop-check-constraint", "Drop the check that upstream does not have"),
        shows_names=True,
        of_rows=True,
    ),
    # DDL that this server does not support.
    1305: ErrorMeaning(ErrorVerdict.FATAL, _MISSING_ROUTINE, shows_names=True),
    1115: ErrorMeaning(ErrorVerdict.FATAL, _OTHER_CHARSET, shows_names=True),
    1235: ErrorMeaning(
        ErrorVerdict.FATAL,
        Remedy("mysql.change-by-hand-and-decide", "Change the sink by hand, its rows included, then `applier ddl done --ts … --table …`"),
        shows_names=True,
    ),
    1273: ErrorMeaning(
        ErrorVerdict.FATAL,
        Remedy("mysql.name-collation", "Name a collation of the server for it under [ddl.collations], and start the applier again"),
        shows_names=True,
    ),
    1286: ErrorMeaning(
        ErrorVerdict.FATAL,
        Remedy("mysql.change-by-hand-with-rows", "Change the sink by hand, its rows included, then `applier ddl done --ts … --table …`"),
        shows_names=True,
    ),
    6136: ErrorMeaning(
        ErrorVerdict.FATAL,
        Remedy("mysql.use-longtext-for-json", "Make the sink's column a LONGTEXT: MySQL does not convert text to VECTOR"),
        shows_names=True,
    ),
    3750: ErrorMeaning(
        ErrorVerdict.FATAL,
        Remedy(
            "mysql.allow-tables-without-key",
            "Set sql_require_primary_key = OFF on the server, or give the sink's user SESSION_VARIABLES_ADMIN",
        ),
    ),
}
UNKNOWN: Final = ErrorMeaning(
    ErrorVerdict.FATAL, Remedy("mysql.see-database-manual", "See the database's manual for the code, and its log")
)


def meaning_of_code(code: int) -> ErrorMeaning:
    """Return the meaning of the code of an error or a warning."""
    return MEANINGS.get(code, UNKNOWN)


TIDB_GENERIC: Final = 1105
NO_PRIVILEGE: Final = frozenset({1044, 1142, 1143, 1227, 1370, 1410})
"""The server has answered, and the user may not do what was asked: on a schema, a table, a column, a routine, or at all."""
DENIED: Final = NO_PRIVILEGE | {1045, 1698, 3118}
"""These, and a user whose login the server refuses."""
NO_TABLE: Final = 1146
NOT_THERE: Final = frozenset({1049, NO_TABLE})
"""A schema or a table that the server does not have, or does not show to the user."""
BELOW_GC: Final = 8055
"""TiDB has removed the versions of this time."""
TLS_FAILED: Final = 2026
OS_FULL: Final = 28
_TIDB_STALE_SCHEMA: Final = re.compile(r"information schema is (?:out of date|changed)", re.IGNORECASE)
_OF_FILES: Final = frozenset({3, 1004, 1005, 1006, 1023, 1026, 1030})
"""Codes that say what failed, and why only in their text."""
_OS_FULL: Final = re.compile(r"\b(?:errno:?|error:?) \"?(?:28|122)\b|No space left on device|Disk quota exceeded", re.IGNORECASE)
_CUT_SHORT: Final = (ssl.SSLEOFError, ssl.SSLZeroReturnError, ssl.SSLSyscallError)
PASSING: Final = Remedy("mysql.run-again", "This may pass: run the command again. If it does not, see the log of the sink's server")
_PLACE: Final = re.compile(
    r".*(?:for column|Column|Field|for key) (?P<name>\S+?)(?: at row \d+| cannot be null| doesn't have a default value)?", re.DOTALL
)


class NoSession(Exception):
    """A session could not be opened or set up.

    ``doing``: at what, and ``__cause__`` is the driver's error; without a cause it is the whole message, and ``remedy`` says what to do.
    """

    def __init__(self, doing: str, *, remedy: Remedy = NO_REMEDY, **facts: Any) -> None:
        super().__init__(doing)
        self.doing, self.remedy, self.facts = doing, remedy, facts


def code_of(error: BaseException) -> int | None:
    """Return the server's or the driver's code; 0 for a connection that broke under the driver; None: not of the database."""
    original = error.orig if isinstance(error, DBAPIError) else error
    # PyMySQL calls every failure to connect 2003, and keeps what it was. A server that is stopped cuts a handshake short, too.
    cause = getattr(original, "original_exception", None)
    is_handshake = isinstance(cause, ssl.SSLError) and not isinstance(cause, _CUT_SHORT)
    if is_handshake or isinstance(original, FileNotFoundError | PermissionError | ssl.SSLError):
        return TLS_FAILED
    if isinstance(original, pymysql.err.MySQLError):
        return original.args[0] if original.args and isinstance(original.args[0], int) else -1
    return 0 if isinstance(original, OSError | EOFError) else None


def is_database_error(error: BaseException) -> bool:
    """Return whether ``error`` is of the database, the driver or the network between."""
    return isinstance(error, SQLAlchemyError) or code_of(error) is not None


def meaning_of(error: BaseException) -> ErrorMeaning:
    """Return the meaning of an error."""
    code = code_of(error)
    # TiDB sends most of its own errors as 1105 ("unknown error").
    if code == TIDB_GENERIC and _TIDB_STALE_SCHEMA.search(server_text(error)):
        return RETRY
    # The code names the file operation that failed; only the text has the operating system's number for "no space".
    if code in _OF_FILES and _OS_FULL.search(server_text(error)):
        return MEANINGS[OS_FULL]
    return UNKNOWN if code is None else meaning_of_code(code)


def may_pass(error: BaseException) -> bool:
    """Return whether a later attempt may succeed where this one failed: for the sink, upstream and the server of a binlog alike."""
    return meaning_of(error).verdict in {ErrorVerdict.RETRY, ErrorVerdict.LOST, ErrorVerdict.FULL}


def is_lost_session(error: BaseException) -> bool:
    """Return whether an error of ours says that a session was lost: another one may do what this one could not."""
    code = error.facts.get("code") if isinstance(error, RetryableSinkError) else None
    return isinstance(code, int) and meaning_of_code(code).verdict is ErrorVerdict.LOST


def is_known(error: BaseException) -> bool:
    """Return whether the table has the error's code, and a remedy for it."""
    return bool(meaning_of(error).remedy) and meaning_of(error) is not UNKNOWN


def translate(error: BaseException, doing: str, *, shows_text: bool = False, **facts: Any) -> SinkError:
    """Return our error for one of the database: retryable or fatal, with remedy and facts, without row values.

    ``doing`` completes "the database failed while …"; ``shows_text`` passes the server's message on, whatever it holds (DDL).
    """
    meaning = meaning_of(error)
    code = code_of(error)
    fatal = RowRefused if meaning.of_rows else FatalSinkError
    kind = RetryableSinkError if meaning.verdict in {ErrorVerdict.RETRY, ErrorVerdict.LOST} else fatal
    if meaning.verdict is ErrorVerdict.FULL:
        message = f"the sink has no space left while {doing}: {server_text(error)}"
        return SinkFull(message, remedy=meaning.remedy, code=code, **facts)
    words = server_text(error) if shows_text else shown_text(error)
    message = f"the database failed while {doing}" + (f": {words}" if words else "")
    known: dict[str, Any] = {} if code is None else {"code": code}
    return kind(message, remedy=meaning.remedy or PASSING, **known, **facts)


def server_text(error: BaseException) -> str:
    """Return the words of the server or the driver. They may quote values of rows."""
    original = error.orig if isinstance(error, DBAPIError) else error
    if original is None or not original.args:
        return type(error).__name__
    return str(original.args[-1])


def shown_text(error: BaseException) -> str:
    """Return the server's words where they hold no row value; of others, the name of the column or key alone.

    Errors reach logs and the ledger, where no row value may be.
    """
    return server_text(error) if meaning_of(error).shows_names else _named_in(error)


def _named_in(error: BaseException) -> str:
    match = _PLACE.fullmatch(server_text(error))
    return f"column or key {match['name'].strip(chr(39))}" if match else ""
