"""Sends the statement of an intent until it has run, or until an answer of the server stops it."""

from collections.abc import Collection
from typing import Final

import stamina

from applier.model.errors import RetryableSinkError
from applier.mysql.errors import ErrorVerdict, is_database_error, meaning_of, translate
from applier.mysql.system_schema import SYSTEM_SCHEMAS
from applier.sinks.mysql.ddl.comparison import Comparison
from applier.sinks.mysql.ddl.intents import Intent, Intents
from applier.sinks.mysql.ddl.owner_session import OwnerSession
from applier.sinks.mysql.ddl.refusal import found_otherwise, refused, result_differs
from applier.sinks.mysql.ddl.sessions import wait_until_ended
from applier.sinks.mysql.ddl.statement import run_statement
from applier.sinks.reserved import Reserved
from applier.sinks.settings import SinkSettings

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
