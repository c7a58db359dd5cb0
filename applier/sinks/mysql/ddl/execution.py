"""Sends the statement of an intent until it has run, or until an answer of the server stops it: then it says why, and what to do."""

import re
from collections.abc import Collection
from typing import Final

import stamina
from sqlalchemy import Connection

from applier.ddl import DdlKind, parse_ddl
from applier.ddl.remedy import NO_SEQUENCE, OTHER_ROWS
from applier.model.errors import FatalSinkError, RetryableSinkError, SinkError
from applier.model.remedy import Remedy
from applier.mysql.errors import ErrorVerdict, code_of, is_database_error, is_known, meaning_of, translate
from applier.mysql.system_schema import SYSTEM_SCHEMAS
from applier.sinks.mysql.ddl.comparison import Comparison
from applier.sinks.mysql.ddl.intents import Intent, Intents, OwnerSession
from applier.sinks.mysql.ddl.sessions import blockers, wait_until_ended
from applier.sinks.mysql.ddl.statement import run_statement
from applier.sinks.reserved import Reserved
from applier.sinks.settings import SinkSettings

LOCK_WAIT_TIMEOUT, NO_TABLE, DUPLICATE_ENTRY, SYNTAX_ERROR = 1205, 1146, 1062, 1064
_NEAR: Final = re.compile(r"near '(.*)' at line", re.DOTALL)
_MAX_SHOWN: Final = 80
_OTHER_TABLE: Final = Remedy(
    "mysql.define-table-as-upstream",
    "Give the table in the sink upstream's definition and rows, then run `applier ddl done --ts … --table …`. "
    "Or rename it, so that it keeps its rows, and start the applier again: it makes the table",
)
_OTHER_INDEX: Final = Remedy(
    "mysql.define-index-as-upstream",
    "Give the index in the sink upstream's definition, then run `applier ddl done --ts … --table …`. "
    "Or drop the index, which holds no rows, and start the applier again",
)
_OTHER_VIEW: Final = Remedy(
    "mysql.define-view-as-upstream",
    "Give the view in the sink upstream's definition, then run `applier ddl done --ts … --table …`. "
    "Or drop the view, which holds no rows, and start the applier again",
)
_OTHER_COLUMNS: Final = Remedy(
    "mysql.complete-table",
    "Give the table in the sink what it has upstream behind this DDL, and old rows the values that they have there: `applier verify` shows "
    "those that differ. Then run `applier ddl done --ts … --table …`",
)
_FOUND: Final = Remedy(
    "mysql.define-column-as-upstream",
    "Give the column in the sink upstream's definition, and its rows upstream's values. Then run `applier ddl done --ts … --table …`",
)
_LOCKED: Final = Remedy(
    "mysql.end-blocking-session",
    "Another session holds a lock that the DDL needs: blocked_by names it. End that session, then start the applier again",
)
_BY_HAND: Final = Remedy(
    "mysql.change-by-hand-then-done",
    "Change the sink by hand, its rows included, then run `applier ddl done --ts … --table …`."
    " Run `applier ddl skip --ts … --table …` only if the sink does not need the statement",
)


def refused(connection: Connection, intent: Intent, error: BaseException, *, reason: str = "") -> SinkError:
    """Return the server's refusal as an error of ours. ``reason``: why an "already so" does not count as done."""
    facts = intent.facts | ({"reason": reason} if reason else {})
    if code_of(error) == LOCK_WAIT_TIMEOUT:
        facts["blocked_by"] = blockers(connection, intent.ddl.schema) or "unknown (GRANT PROCESS shows it)"
    # The text of a DDL is in the message already, so the server's words about it give away nothing more.
    ours = translate(error, "running a DDL", shows_text=True, **facts)
    if code_of(error) == SYNTAX_ERROR:
        return FatalSinkError(_unknown_words(ours.message), remedy=_BY_HAND, **ours.facts)
    # 1146 has its own remedy: create the table.
    if code_of(error) == DUPLICATE_ENTRY:
        return FatalSinkError(ours.message, remedy=OTHER_ROWS, **ours.facts)
    if code_of(error) == NO_TABLE and intent.ddl.is_of_log and _changes_table(intent):
        return FatalSinkError(ours.message, remedy=NO_SEQUENCE, **ours.facts)
    if isinstance(ours, RetryableSinkError):
        remedy = _LOCKED if code_of(error) == LOCK_WAIT_TIMEOUT else ours.remedy
        return RetryableSinkError(ours.message, remedy=remedy, **ours.facts)
    remedy = _remedy_of_result(intent) if reason and code_of(error) != NO_TABLE else ours.remedy if is_known(error) else _BY_HAND
    return type(ours)(ours.message, remedy=remedy, **ours.facts)


def _changes_table(intent: Intent) -> bool:
    statement = parse_ddl(intent.ddl)
    return statement is not None and statement.kind in {DdlKind.RENAME_TABLE, DdlKind.ALTER_TABLE}


def _unknown_words(message: str) -> str:
    """Say what the server does not know: it begins its answer with advice to read a manual."""
    near = _NEAR.search(message)
    return "the sink's server does not know words of the DDL" + (f": {near[1][:_MAX_SHOWN]}" if near is not None else "")


def found_otherwise(intent: Intent, reason: str) -> FatalSinkError:
    """Return the error of a DDL that has made a part, and has found another part (IF NOT EXISTS) that is not what it makes."""
    message = f"the DDL has found a column that is not what it makes: {reason}"
    return FatalSinkError(message, remedy=_FOUND, **intent.facts)


def result_differs(intent: Intent, reason: str) -> FatalSinkError:
    """Return the error of a DDL that changed nothing (IF NOT EXISTS), and whose object is not what it makes."""
    message = f"the DDL changed nothing, because its object exists already: {reason}"
    return FatalSinkError(message, remedy=_remedy_of_result(intent), **intent.facts)


def _remedy_of_result(intent: Intent) -> Remedy:
    """Return what to do about an object that is not what the statement makes: what holds rows is never dropped."""
    statement = parse_ddl(intent.ddl)
    match None if statement is None else statement.kind:
        case DdlKind.CREATE_TABLE | DdlKind.CREATE_TABLE_LIKE:
            return _OTHER_TABLE
        case DdlKind.CREATE_INDEX | DdlKind.DROP_INDEX:
            return _OTHER_INDEX
        case DdlKind.CREATE_VIEW | DdlKind.DROP_VIEW:
            return _OTHER_VIEW
        case _:
            return _OTHER_COLUMNS


NOT_MADE: Final = frozenset({1007, 1050, 1054, 1060, 1061, 1068, 1146, 1517, 4092})
"""Warnings of a statement that did not make what it names: something of that name exists, or its table does not."""


class DdlNotRun(RetryableSinkError):
    """The statement has not run, and may be sent again."""


class Execution:
    """Runs statements on the owner's session."""

    def __init__(self, settings: SinkSettings, session: OwnerSession, intents: Intents, comparison: Comparison) -> None:
        self._retries, self._reserved = settings.retries, Reserved(settings.schema, SYSTEM_SCHEMAS)
        self._session, self._intents, self._comparison = session, intents, comparison
        self._collations = settings.collations

    def run(self, intent: Intent, *, is_described: bool) -> None:
        """Run the statement. What stops it is written into the intent and raised.

        ``is_described``: the intent describes the tables as they are now. FatalSinkError; RetryableSinkError if the obstacle may pass (a
        lock that somebody holds for long): the statement is sent again at the next start.
        """
        # Once more, although new DDLs are checked before: an older applier may have left an intent on a schema that is reserved now.
        self._reserved.refuse_ddl(intent.ddl)
        try:
            # No time limit over all attempts: how long each takes depends on its table, and on how long somebody holds a lock.
            for attempt in stamina.retry_context(on=DdlNotRun, attempts=self._retries + 1, timeout=None):
                with attempt:
                    self._attempt(intent if is_described and attempt.num == 1 else self._intents.describe(intent))
        except DdlNotRun as error:
            failure = refused(self._session.connection, intent, error.__cause__ or error)
            self._intents.note_refusal(intent, failure)
            raise failure from error.__cause__

    def _attempt(self, intent: Intent) -> None:
        """Send the statement once. DdlNotRun: it may be sent again; every other error stops it."""
        try:
            warnings = run_statement(self._session.connection, intent.ddl, self._collations)
        except Exception as error:
            if not is_database_error(error):
                raise
            # Raised, not returned: stamina counts and logs a repetition only if the attempt raises.
            if not self._has_run_after(error, intent):
                ours = translate(error, "running a DDL", **intent.facts)
                raise DdlNotRun(ours.message, remedy=ours.remedy, **ours.facts) from error
        else:
            # IF [NOT] EXISTS turns the error into a note. Upstream's statement has changed something, or there would be no event.
            # Not so in a binlog, where a statement stands that has found what it asks about.
            if not intent.ddl.is_of_log and any(code in NOT_MADE for code in warnings):
                self._require_made(intent)

    def _has_run_after(self, error: Exception, intent: Intent) -> bool:
        """Return whether the DDL has run in spite of ``error``; False: it may be sent again. Raises what stops it."""
        match meaning_of(error).verdict:
            case ErrorVerdict.LOST:
                return self._has_run_on_lost_session(intent)
            case ErrorVerdict.RETRY:
                # A lock wait ended, or the like: the server has rolled back. Without the note, a crash before the next attempt
                # would compare the tables, and take somebody's change in between for the statement's.
                self._intents.note_refusal(intent, translate(error, "running a DDL", **intent.facts))
                return False
            case ErrorVerdict.ALREADY_SO:
                self._require_result(intent, error)
                return True
            case _:
                failure = refused(self._session.connection, intent, error)
                self._intents.note_refusal(intent, failure)
                raise failure from error

    def _has_run_on_lost_session(self, intent: Intent) -> bool:
        """Return what the tables show once the server has ended the lost session. The session that asks may be lost in turn."""
        for attempt in stamina.retry_context(on=RetryableSinkError, attempts=self._retries + 1, timeout=None):
            with attempt:
                # The server may still be at it, or may have finished: the old session ends first, then the tables show it.
                self._session.retake()
                wait_until_ended(self._session.connection, intent.ddl, self._collations)
                return self._comparison.has_run(intent, "a lost connection")
        raise RetryableSinkError("retries ended without an outcome", doing="finding out whether a DDL has run")

    def _require_made(self, intent: Intent) -> None:
        """Raise unless what a statement has found and not made is what it makes."""
        found = self._intents.conditional_columns(intent)
        own = [column for column, is_own in found.items() if is_own]
        if not self._comparison.has_changed(intent):
            self._require_result(intent, None, own)
        # What the statement has changed it has made. A column that upstream's table never had was made by hand.
        elif False in found.values() and (reason := self._comparison.missing_result(intent, own)) is not None:
            failure = found_otherwise(intent, reason)
            self._intents.note_refusal(intent, failure)
            raise failure

    def _require_result(self, intent: Intent, error: Exception | None, own: Collection[str] = ()) -> None:
        """Raise unless the sink has all that the statement makes. ``error``: the server's answer; None for a warning."""
        reason = self._comparison.missing_result(intent, own)
        if reason is None:
            return
        failure = result_differs(intent, reason) if error is None else refused(self._session.connection, intent, error, reason=reason)
        self._intents.note_refusal(intent, failure)
        raise failure from error
