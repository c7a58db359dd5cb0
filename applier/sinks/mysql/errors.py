"""One way from an exception of the database to an error of the applier. What a code means: ``error_table``.

A message of the server may quote row values (duplicate entry, incorrect value, the text near a syntax error). So only the messages of
codes that are known to carry nothing but names are passed on; of others the column or key is picked out of the end of the message.
"""

import re
import ssl
from typing import Any, Final

import pymysql
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from applier.model.errors import FatalSinkError, RetryableSinkError, RowRefused, SinkError, SinkFull
from applier.sinks.mysql.error_table import MEANINGS, RETRY, UNKNOWN, ErrorMeaning, ErrorVerdict, meaning_of_code

TIDB_GENERIC: Final = 1105
TLS_FAILED: Final = 2026
OS_FULL: Final = 28
_TIDB_STALE_SCHEMA: Final = re.compile(r"information schema is (?:out of date|changed)", re.IGNORECASE)
_OF_FILES: Final = frozenset({3, 1004, 1005, 1006, 1023, 1026, 1030})
"""Codes that say what failed, and why only in their text."""
_OS_FULL: Final = re.compile(r"\b(?:errno:?|error:?) \"?(?:28|122)\b|No space left on device|Disk quota exceeded", re.IGNORECASE)
_CUT_SHORT: Final = (ssl.SSLEOFError, ssl.SSLZeroReturnError, ssl.SSLSyscallError)
PASSING: Final = "This may pass: run the command again. If it does not, see the log of the sink's server"
_PLACE: Final = re.compile(
    r".*(?:for column|Column|Field|for key) (?P<name>\S+?)(?: at row \d+| cannot be null| doesn't have a default value)?", re.DOTALL
)


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
    # Errors reach logs and the ledger, where no row value may be: names only, unless the whole message is known to have none.
    words = server_text(error) if shows_text or meaning.shows_names else _named_in(error)
    message = f"the database failed while {doing}" + (f": {words}" if words else "")
    return kind(message, remedy=meaning.remedy or PASSING, **({} if code is None else {"code": code}), **facts)


def server_text(error: BaseException) -> str:
    """Return the words of the server or the driver. They may quote values of rows."""
    original = error.orig if isinstance(error, DBAPIError) else error
    if original is None or not original.args:
        return type(error).__name__
    return str(original.args[-1])


def _named_in(error: BaseException) -> str:
    match = _PLACE.fullmatch(server_text(error))
    return f"column or key {match['name'].strip(chr(39))}" if match else ""
