"""What SQLite's errors mean: retry, or fatal with a remedy. Unknown means fatal."""

import sqlite3
from typing import Any, Final

from sqlalchemy.exc import DBAPIError

from applier.model.errors import NULL_VALUE, ApplierError, FatalSinkError, Remedy, RetryableSinkError, RowRefused, SinkFull, UnknownOutcome

_RETRY: Final = frozenset({"SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_PROTOCOL", "SQLITE_INTERRUPT", "SQLITE_SCHEMA"})
_FATAL: Final = {
    "SQLITE_CANTOPEN": (
        "the database file cannot be opened",
        Remedy("sqlite.make-file-writable", "Make the file and its directory writable for this user"),
    ),
    "SQLITE_READONLY": (
        "the database file cannot be written",
        Remedy("sqlite.make-file-accessible", "Make the file and its directory writable for this user"),
    ),
    "SQLITE_PERM": (
        "access to the database file is denied",
        Remedy("sqlite.make-file-openable", "Make the file and its directory writable for this user"),
    ),
    "SQLITE_AUTH": (
        "access to the database file is denied",
        Remedy("sqlite.make-directory-writable", "Make the file and its directory writable for this user"),
    ),
    "SQLITE_NOTADB": (
        "the file is not an SQLite database",
        Remedy("sqlite.move-other-file", "Set sink.url to another file, or move this file"),
    ),
    "SQLITE_CORRUPT": (
        "the database file is damaged",
        Remedy("sqlite.restore-damaged-file", "Restore it from a backup: progress and rows are in it, so the applier continues there"),
    ),
    "SQLITE_IOERR": (
        "the database file cannot be read or written",
        Remedy("sqlite.see-system-log", "See the system's log for errors of the disk"),
    ),
    "SQLITE_TOOBIG": (
        "a value or statement is longer than SQLite allows",
        Remedy("sqlite.use-other-sink", "Use another sink for this table"),
    ),
    "SQLITE_CONSTRAINT": (
        "the sink's table refuses a row",
        Remedy("sqlite.compare-stricter-table", "Compare the sink's table with upstream's: it is stricter"),
    ),
    "SQLITE_MISMATCH": (
        "the sink's column has another type than the rows",
        Remedy("sqlite.compare-table", "Compare the sink's table with upstream's"),
    ),
    "SQLITE_ERROR": ("the statement is refused", Remedy("sqlite.compare-tables", "Compare the sink's tables with upstream's")),
}
_FULL: Final = "SQLITE_FULL"
_IOERR_SHMSIZE: Final = 4874
"""SQLITE_IOERR_SHMSIZE: there is no room for the index of the write-ahead log. Python has no name for it before 3.11.5."""
_ROOM: Final = Remedy(
    "sqlite.free-disk-space", "Free space on the disk of the file: a daemon retries for run.retry_for_s, and the next start retries too"
)
_OF_ROWS: Final = frozenset({"SQLITE_CONSTRAINT", "SQLITE_MISMATCH", "SQLITE_TOOBIG"})
"""Errors of single rows, not of their table as a whole."""
_MISSING_REMEDY: Final = Remedy(
    "sqlite.define-table-like-upstream",
    "Give the sink's table the definition that it has upstream, and upstream's values in its rows. Or create the replica again from a "
    "dump (`applier docs start_over`)",
)
_NOT_NULL: Final = "NOT NULL constraint failed"
_CLOSED: Final = "closed database"
"""In the text of Python's own error, which has no result code."""
_MISSING: Final = ("no such table", "no such column", "has no column")


def translate(error: sqlite3.Error | DBAPIError, **facts: Any) -> ApplierError:
    """Return our error for one of SQLite's, whose messages name tables and columns, never values."""
    original = error.orig if isinstance(error, DBAPIError) else error
    name = _primary_name(original)
    reason = str(original)
    if isinstance(original, sqlite3.ProgrammingError) and _CLOSED in reason:
        return RetryableSinkError("the connection to the database file was closed", reason=reason, **facts)
    # SQLITE_BUSY comes after the patience of `lock_wait_timeout_s`: another program holds the file for long.
    if name in _RETRY:
        return RetryableSinkError(
            "the database is busy",
            remedy=Remedy("sqlite.look-for-other-writer", "Look for another program that writes to the file"),
            reason=reason,
            **facts,
        )
    if name == _FULL or getattr(original, "sqlite_errorcode", None) == _IOERR_SHMSIZE:
        return SinkFull("the disk of the sink is full", remedy=_ROOM, reason=reason, code=_FULL, **facts)
    message, remedy = _FATAL.get(
        name, ("SQLite failed", Remedy("sqlite.read-result-code", "Read the reason, and SQLite's list of result codes"))
    )
    if any(words in reason for words in _MISSING):
        message, remedy = "a table or column is missing in the sink", _MISSING_REMEDY
    if reason.startswith(_NOT_NULL):
        remedy = NULL_VALUE
    kind = RowRefused if name in _OF_ROWS else FatalSinkError
    return kind(message, remedy=remedy, reason=reason, code=name, **facts)


def commit_failed(error: sqlite3.Error | DBAPIError) -> SinkFull | UnknownOutcome:
    """Return our error for a COMMIT that failed: it may have reached the disk, except where the disk is full.

    On a full disk the write-ahead log was not written to its end. If it was, the retry finds its fence moved (ALREADY).
    """
    known = translate(error)
    if isinstance(known, SinkFull):
        return known
    message = f"COMMIT failed with an unknown outcome: {known.message}"
    return UnknownOutcome(message, remedy=known.remedy, **known.facts)


def _primary_name(error: BaseException | None) -> str:
    """Name the primary result code; Python knows the names of most extended ones, which begin with it."""
    code = getattr(error, "sqlite_errorcode", None)
    if code is None:
        return type(error).__name__
    # The low byte of an extended code is the primary one (sqlite.org/rescode.html).
    return _NAMES.get(code & 0xFF, f"SQLITE_{code}")


_NAMES: Final = {
    value: name
    for name in (*_RETRY, *_FATAL, _FULL)
    if isinstance(value := getattr(sqlite3, name, None), int)
}  # fmt: skip
