"""Runs, skips and settles the DDLs of one run. The package's docstring has the theory. Driver only.

Indexes that are built in the background (``[ddl] background``): the ledger says ``background`` before the statement is sent, so the DDL is
settled for the coordinator and is not lost. It is sent on a session of its own, which is registered: a run that takes the replica over ends
it, and the server rolls the index back. A thread waits for the answer; everything else happens in the main thread, which looks at the end
of each cycle, and before a DDL that touches the table. After any answer but success (the server cannot do it online, the session was
killed, the disk is full) the DDL runs in the foreground: it is compared, sent again, and stops as every other DDL does.
"""

import logging
import re
from collections.abc import Callable
from threading import Thread
from typing import Final

import stamina
from sqlalchemy import Connection

from applier.ddl import DdlKind, parse_ddl
from applier.ddl.conditions import background_form, may_run_in_background
from applier.ddl.parser import NO_SEQUENCE, OTHER_ROWS
from applier.model.errors import ApplierError, FatalSinkError, Remedy, RetryableSinkError, SinkError
from applier.model.events import DdlEvent, DdlIdentity, FoldedName
from applier.mysql.errors import ALREADY, NO_TABLE, ErrorVerdict, code_of, is_database_error, is_known, meaning_of, translate
from applier.mysql.names import SYSTEM_SCHEMAS
from applier.mysql.session import discard
from applier.sinks.bookkeeping.ledger import Ledger
from applier.sinks.failpoint import reach
from applier.sinks.mysql.ddl.comparison import Comparison
from applier.sinks.mysql.ddl.intents import Intent, Intents, OwnerSession
from applier.sinks.mysql.ddl.statement import as_in_sink, blockers, note_left_out, run_statement, send, wait_until_ended
from applier.sinks.mysql.ownership import Ownership
from applier.sinks.progress import Fence, ProgressCommit
from applier.sinks.reserved import Reserved
from applier.sinks.settings import SinkSettings

Touches = frozenset[FoldedName] | None
_log = logging.getLogger(__name__)


class BackgroundDdl:
    """One DDL that runs in the background. ``there``: the statement and the names as the sink has them."""

    def __init__(self, intent: Intent, there: DdlEvent, connection: Connection) -> None:
        self.intent = intent
        self.error: BaseException | None = None
        self._there, self._connection = there, connection
        # A daemon thread: a run that ends does not wait for an index. The next one finds out what became of it.
        self._thread = Thread(target=self._run, name="applier index build", daemon=True)

    def start(self) -> None:
        """Send the statement."""
        _log.info("index_building", extra=self.intent.facts)
        self._thread.start()

    @property
    def is_running(self) -> bool:
        """Whether the server has not answered yet."""
        return self._thread.is_alive()

    def join(self) -> None:
        """Wait for the answer."""
        self._thread.join()

    def _run(self) -> None:
        try:
            send(self._connection, self._there, background_form(self._there.query))
        except BaseException as error:  # noqa: BLE001 - nobody would see it in this thread; the main thread answers it
            self.error = error
        finally:
            discard(self._connection)


class BackgroundDdls:
    """The indexes that this run builds. ``take_over`` runs a DDL in the foreground, ``end`` writes that it is done. Main thread only."""

    def __init__(self, take_over: Callable[[Intent], None], end: Callable[[Intent], None]) -> None:
        self._take_over, self._end = take_over, end
        self._builds: list[BackgroundDdl] = []

    def start(self, intent: Intent, there: DdlEvent, connection: Connection) -> None:
        """Build an index on a session of its own, which is closed at the end."""
        build = BackgroundDdl(intent, there, connection)
        self._builds.append(build)
        build.start()

    def take_ended(self) -> None:
        """Write what has ended. Raises what stops a DDL; it is tried again at the next call."""
        for build in [build for build in self._builds if not build.is_running]:
            self._finish(build)

    def wait_for(self, touches: Touches) -> None:
        """Wait for the builds on any of these tables (None: on all), and write them."""
        for build in [build for build in self._builds if _meet(build.intent.identity.touches, touches)]:
            build.join()
            self._finish(build)

    def forget(self) -> None:
        """Forget all builds: their sessions have been ended, and the ledger has what remains."""
        for build in self._builds:
            build.join()
        self._builds.clear()

    def _finish(self, build: BackgroundDdl) -> None:
        if build.error is not None:
            _log.info("index_build_failed", extra={**build.intent.facts, "code": code_of(build.error)})
            self._take_over(build.intent)
        self._end(build.intent)
        _log.info("index_built", extra=build.intent.facts)
        self._builds.remove(build)


def _meet(one: Touches, other: Touches) -> bool:
    """Return whether two DDLs touch a table in common; None touches everything."""
    if one is None or other is None:
        return True
    return any(name.is_covered(other) for name in one) or any(name.is_covered(one) for name in other)


LOCK_WAIT_TIMEOUT, DUPLICATE_ENTRY, SYNTAX_ERROR = 1205, 1062, 1064
_NEAR: Final = re.compile(r"near '(.*)' at line", re.DOTALL)
_MAX_SHOWN: Final = 80
_LOCKED: Final = Remedy(
    "mysql.end-blocking-session",
    "Another session holds a lock that the DDL needs: blocked_by names it. End that session, then start the applier again",
)
_BY_HAND: Final = Remedy(
    "mysql.change-by-hand-then-done",
    "Change the sink by hand, its rows included, then run `applier ddl done --ts … --table …`."
    " Run `applier ddl skip --ts … --table …` only if the sink does not need the statement",
)


def refused(connection: Connection, intent: Intent, error: BaseException) -> SinkError:
    """Return the server's refusal as one of our errors."""
    facts = intent.facts
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
    return type(ours)(ours.message, remedy=ours.remedy if is_known(error) else _BY_HAND, **ours.facts)


def _changes_table(intent: Intent) -> bool:
    statement = parse_ddl(intent.ddl)
    return statement is not None and statement.kind in {DdlKind.RENAME_TABLE, DdlKind.ALTER_TABLE}


def _unknown_words(message: str) -> str:
    """Name what the server does not know: its answer begins with advice to read a manual."""
    near = _NEAR.search(message)
    return "the sink's server does not know words of the DDL" + (f": {near[1][:_MAX_SHOWN]}" if near is not None else "")


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
        lock that someone holds for long): the statement is sent again at the next start.
        """
        # Once more, although new DDLs are checked before: an older applier may have left an intent on a schema that is reserved now.
        self._reserved.refuse_ddl(intent.ddl)
        try:
            # No time limit over all attempts: how long each takes depends on its table, and on how long someone holds a lock.
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
                # would compare the tables, and take someone's change in between for the statement's.
                self._intents.note_refusal(intent, translate(error, "running a DDL", **intent.facts))
                return False
            case ErrorVerdict.ALREADY_SO if self._comparison.is_there(intent):
                return True
            case _:
                failure = refused(self._session.connection, intent, error)
                self._intents.note_refusal(intent, failure)
                raise failure from error

    def _has_run_on_lost_session(self, intent: Intent) -> bool:
        """Return what the tables show once the server has ended the lost session. The session that asks may be lost too."""
        for attempt in stamina.retry_context(on=RetryableSinkError, attempts=self._retries + 1, timeout=None):
            with attempt:
                # The server may still be at it, or may have finished: the old session ends first, then the tables show it.
                self._session.retake()
                wait_until_ended(self._session.connection, intent.ddl, self._collations)
                return self._comparison.has_run(intent, "a lost connection")
        raise RetryableSinkError("retries ended without an outcome", doing="finding out whether a DDL has run")

    def _require_made(self, intent: Intent) -> None:
        """Raise if the statement has made nothing, or has found what upstream's table never had: it was made by hand."""
        found = self._intents.foreign_columns(intent)
        if self._comparison.is_there(intent) or (not found and self._comparison.has_changed(intent)):
            return
        message = (
            f"the DDL has found what it makes: column {', '.join(found)}" if found else "the DDL changed nothing: what it makes exists"
        )
        failure = FatalSinkError(message, remedy=ALREADY, **intent.facts)
        self._intents.note_refusal(intent, failure)
        raise failure


class DdlRunner:
    """The DDLs of one replica. Its methods raise the errors of ``Sink.run_ddl``."""

    def __init__(self, settings: SinkSettings, ledger: Ledger, ownership: Ownership) -> None:
        self._ownership = ownership
        self._collations, self._background = settings.collations, settings.background
        self._session = OwnerSession(ownership, settings.retries)
        self._intents = Intents(ledger, self._session, settings.collations)
        self._comparison = Comparison(settings, self._session)
        self._execution = Execution(settings, self._session, self._intents, self._comparison)
        self._builds = BackgroundDdls(self._take_over, self._intents.end_background)

    def run(self, fence: Fence, identity: DdlIdentity, ddl: DdlEvent, *, before: ProgressCommit, after: ProgressCommit) -> Fence:
        """Write the intent, run the statement, write done; return the fence that now holds.

        A DDL that may run in the background is begun, and not waited for.
        """
        reach("ddl.before_intent")
        self._builds.wait_for(identity.touches)
        if self._background and may_run_in_background(ddl.query):
            fence, intent, _ = self._intents.begin(fence, identity, ddl, after.including(before), is_background=True)
            reach("ddl.after_intent")
            self._build(intent)
            return fence
        fence, intent, is_resumed = self._intents.begin(fence, identity, ddl, before)
        reach("ddl.after_intent")
        # An intent that was there already may have been sent: the answer to its COMMIT was lost, and a repetition came here.
        if is_resumed:
            self._settle(intent)
        else:
            self._execution.run(intent, is_described=True)
        reach("ddl.after_statement")
        fence = self._intents.end(fence, intent, after)
        reach("ddl.after_done")
        return fence

    def skip(self, fence: Fence, identity: DdlIdentity, ddl: DdlEvent, *, after: ProgressCommit) -> Fence:
        """Write the DDL as skipped, with the progress."""
        return self._intents.skip(fence, identity, ddl, after)

    @property
    def stopped_by(self) -> Exception | None:
        """Write what has been built in the background; return what stops a DDL of that kind."""
        try:
            self._builds.take_ended()
        except ApplierError as error:
            return error
        return None

    def finish(self) -> None:
        """Wait for everything that runs in the background."""
        self._builds.wait_for(None)

    def settle(self, fence: Fence) -> Fence:
        """Settle every intent in order: done if the tables show it, run again if not. NeedsOperator if the tables do not show it."""
        self._builds.forget()
        # The ledger's own texts run, whatever A is: a DDL at or below the checkpoint may be unsettled too (DESIGN.md section 9).
        intents = self._intents.unsettled()
        # First of all: a leftover would hold the name that every comparison below needs.
        self._comparison.drop_leftover()
        for intent in intents:
            if intent.is_background:
                self._resume(intent)
                continue
            self._settle(intent)
            fence = self._intents.end(fence, intent, None)
        return fence

    def _resume(self, intent: Intent) -> None:
        """Continue what a dead run was building in the background: the index is there, or is built again."""
        self._wait_until_ended(intent)
        if not self._comparison.has_run(intent, "a crash"):
            if self._background:
                self._build(self._intents.describe(intent))
                return
            self._execution.run(intent, is_described=False)
        self._intents.end_background(intent)

    def _take_over(self, intent: Intent) -> None:
        """Run in the foreground what could not be built in the background."""
        # Its session may have been ended by a run that owns the replica now: then this one is Fenced, and must not look as if the
        # database were in trouble.
        self._ownership.ensure()
        self._settle(intent)

    def _build(self, intent: Intent) -> None:
        def spelled(connection: Connection) -> DdlEvent:
            there = as_in_sink(connection, intent.ddl, self._collations)
            note_left_out(connection, intent.ddl, there)
            return there

        there = self._session.commit(spelled, "reading the names of a DDL", **intent.facts)
        # What the server cannot have is skipped, and then nothing is left to build.
        if there.query and may_run_in_background(there.query):
            self._builds.start(intent, there, self._ownership.open_background())
        else:
            self._intents.end_background(intent)

    def _wait_until_ended(self, intent: Intent) -> None:
        self._session.commit(
            lambda connection: wait_until_ended(connection, intent.ddl, self._collations), "checking for a running DDL", **intent.facts
        )

    def _settle(self, intent: Intent) -> None:
        """Make sure that a DDL of an earlier run, or of an earlier attempt, has run once."""
        # A server continues a statement after its client has died: what is compared too early looks as if it had not run.
        self._wait_until_ended(intent)
        if not self._comparison.has_run(intent, "a crash"):
            self._execution.run(intent, is_described=False)
