"""Runs DDLs exactly once on servers whose DDL commits by itself (DESIGN.md section 9).

Intent (with the tables as they are, and the checkpoint at the DDL's ts) in one transaction; the statement; done in another. What a
crash leaves in between is settled by comparing the tables with the intent. Everything happens on the session that holds the replica's
lock: a run that lost the replica has lost this session too, so it cannot send the statement any more.
"""

from contextlib import suppress
from enum import Enum
from typing import Any, NamedTuple

import stamina
from sqlalchemy import Connection

from applier.coordinator.messages import DdlIdentity
from applier.errors import NeedsOperator, RetryableSinkError, SinkError, UnknownOutcome
from applier.events import DdlEvent, TableName
from applier.failpoint import reach
from applier.position import Ts
from applier.sinks.bookkeeping import FenceState, fenced
from applier.sinks.ledger import Ledger
from applier.sinks.mysql.errors import Verdict, code_of, is_database_error, is_known, meaning_of, translate
from applier.sinks.mysql.owned import commit_owned
from applier.sinks.mysql.ownership import Ownership
from applier.sinks.mysql.partition import refuse_other_rows
from applier.sinks.mysql.snapshot import has_changed, has_moved, snapshot
from applier.sinks.mysql.spelling import spelled_in_sink
from applier.sinks.mysql.statement import blockers, run_statement, wait_until_ended
from applier.sinks.mysql.wish import DROPS, is_fulfilled
from applier.sinks.port import DdlState, Fence, ProgressCommit, SinkSettings
from applier.sinks.reserved import SYSTEM_SCHEMAS, Reserved
from applier.statement import Statement, StatementKind, parse_ddl

LOCK_WAIT_TIMEOUT = 1205
BY_HAND = (
    "Change the sink by hand, its rows included, then `applier ddl done`. `applier ddl skip` is right only if the sink needs nothing of it"
)


class _Outcome(Enum):
    """Whether a DDL that was begun has run."""

    RAN = "ran"
    NOT_RAN = "not ran"
    UNDECIDED = "undecided"


class DdlNotRun(RetryableSinkError):
    """The statement has not run, and may be sent again."""


class _Begun(NamedTuple):
    """A DDL with an intent in the ledger. ``before`` describes the tables as they were; '' if the operator wants no comparison."""

    identity: DdlIdentity
    ddl: DdlEvent
    before: str

    @property
    def facts(self) -> dict[str, Any]:
        """What names the DDL in a message."""
        return {"table": str(self.ddl.name), "commit_ts": self.ddl.commit_ts, "query": self.ddl.query}


class DdlRunner:
    """Runs, skips and settles the DDLs of one run. Driver only."""

    def __init__(self, settings: SinkSettings, ledger: Ledger, ownership: Ownership) -> None:
        self._settings, self._ledger, self._ownership = settings, ledger, ownership
        self._bookkeeping = ledger.bookkeeping

    def run(self, fence: Fence, identity: DdlIdentity, ddl: DdlEvent, *, before: ProgressCommit, after: ProgressCommit) -> Fence:
        """Write intent, run the statement, write done; return the fence that now holds. Errors: ``Sink.run_ddl``."""
        reach("ddl.before_intent")
        fence, begun, is_resumed = self._begin(fence, identity, ddl, before)
        reach("ddl.after_intent")
        if is_resumed:
            self._settle_one(begun)
        else:
            self._execute(begun)
        reach("ddl.after_statement")
        fence = self._end(fence, begun, after)
        reach("ddl.after_done")
        return fence

    def skip(self, fence: Fence, identity: DdlIdentity, ddl: DdlEvent, *, after: ProgressCommit) -> Fence:
        """Write the DDL as skipped, with the progress; an intent that an unknown outcome left becomes skipped."""

        def work(connection: Connection) -> Fence:
            self._hold(connection, fence)
            if any(entry.identity == identity for entry in self._ledger.intents(connection)):
                self._ledger.end(connection, identity, DdlState.SKIPPED)
            else:
                self._ledger.settled(connection, identity, ddl, DdlState.SKIPPED)
            return self._bookkeeping.advance(connection, fence, after)

        return commit_owned(self._ownership, self._settings.retries, work, "skipping a DDL", table=str(ddl.name), commit_ts=ddl.commit_ts)

    def settle(self, fence: Fence) -> Fence:
        """Settle every intent in order: done if the tables show it, run again if not; NeedsOperator if that cannot be decided."""
        entries = commit_owned(self._ownership, self._settings.retries, self._ledger.intents, "reading the ledger")
        for entry in entries:
            begun = _Begun(entry.identity, entry.ddl, entry.before)
            self._settle_one(begun)
            fence = self._end(fence, begun, None)
        return fence

    def _begin(self, fence: Fence, identity: DdlIdentity, ddl: DdlEvent, before: ProgressCommit) -> tuple[Fence, _Begun, bool]:
        """Write the intent. True: it was there already, left by an outcome that was not known."""

        def work(connection: Connection) -> tuple[Fence, _Begun, bool]:
            self._hold(connection, fence)
            left = next((entry for entry in self._ledger.intents(connection) if entry.identity == identity), None)
            if left is None:
                # Before anything is written: which of two namesakes is meant must not be decided by who is dropped later.
                spelled_in_sink(connection, ddl)
                refuse_other_rows(connection, ddl)
            begun = _Begun(identity, ddl, snapshot(connection, _names(ddl)) if left is None else left.before)
            if left is None:
                self._ledger.intent(connection, identity, ddl, begun.before)
            return self._bookkeeping.advance(connection, fence, before), begun, left is not None

        return commit_owned(
            self._ownership, self._settings.retries, work, "writing a DDL's intent", table=str(ddl.name), commit_ts=ddl.commit_ts
        )

    def _end(self, fence: Fence, begun: _Begun, after: ProgressCommit | None) -> Fence:
        """Write done, with the progress (None: as it is)."""

        def work(connection: Connection) -> Fence:
            checkpoint_ts = self._hold(connection, fence)
            self._ledger.end(connection, begun.identity, DdlState.DONE)
            following = self._bookkeeping.advance(connection, fence, after or ProgressCommit(checkpoint_ts=checkpoint_ts, positions={}))
            reach("ddl.before_done")
            return following

        return commit_owned(self._ownership, self._settings.retries, work, "writing that a DDL is done", **begun.facts)

    def _hold(self, connection: Connection, fence: Fence) -> Ts:
        """Lock the progress row under the fence and return the checkpoint."""
        state = self._bookkeeping.lock(connection, fence)
        progress = self._bookkeeping.load(connection)
        if state is FenceState.FENCED:
            raise fenced(self._settings.name, self._bookkeeping.owner(connection))
        if state is not FenceState.HELD or progress is None:
            raise UnknownOutcome("the progress is not where this run left it", replica=self._settings.name, fence=fence)
        return progress.checkpoint_ts

    def _settle_one(self, begun: _Begun) -> None:
        """Make sure that a DDL which was begun some time ago has run, once."""
        wait_until_ended(self._ownership.connection, begun.ddl)
        match self._outcome(begun):
            case _Outcome.NOT_RAN:
                self._execute(begun)
            case _Outcome.UNDECIDED:
                message = "a crash lay around a DDL, and the tables do not show whether it has run"
                remedy = "Look at the sink, then `applier ddl done` or `applier ddl retry`"
                raise NeedsOperator(message, remedy=remedy, **begun.facts)
            case _Outcome.RAN:
                pass

    def _outcome(self, begun: _Begun) -> _Outcome:
        if not begun.before:
            return _Outcome.NOT_RAN

        def work(connection: Connection) -> _Outcome:
            statement = parse_ddl(begun.ddl)
            kind = statement.kind if statement else None
            if kind in DROPS:
                # Half of it may be gone: what counts is that nothing is left.
                return _Outcome.RAN if is_fulfilled(connection, begun.ddl, begun.before) else _Outcome.NOT_RAN
            now = snapshot(connection, _names(begun.ddl))
            if has_changed(begun.before, now):
                return _Outcome.RAN
            if statement is None:
                return _Outcome.UNDECIDED
            return _moved(begun.before, now) if _swaps(statement) else _Outcome.NOT_RAN

        return commit_owned(self._ownership, self._settings.retries, work, "comparing the tables of a DDL", **begun.facts)

    def _execute(self, begun: _Begun) -> None:
        """Run the statement until it has run. What keeps it from that is written to the ledger and raised.

        FatalSinkError; RetryableSinkError if it may pass (a lock that somebody holds for long): the intent is settled at a new beginning.
        """
        Reserved(self._settings.schema, SYSTEM_SCHEMAS).refuse_ddl(begun.ddl)
        try:
            for attempt in stamina.retry_context(on=DdlNotRun, attempts=self._settings.retries + 1, timeout=None):
                with attempt:
                    self._attempt(begun)
        except DdlNotRun as error:
            raise self._failed(error.__cause__ or error, begun) from error.__cause__

    def _attempt(self, begun: _Begun) -> None:
        """Send the statement once. DdlNotRun: it may be sent again; everything else stops it."""
        try:
            run_statement(self._ownership.connection, begun.ddl)
        except Exception as error:
            if not is_database_error(error):
                raise
            if not self._has_run_after(error, begun):
                ours = translate(error, "running a DDL", **begun.facts)
                raise DdlNotRun(ours.message, remedy=ours.remedy, **ours.facts) from error

    def _has_run_after(self, error: Exception, begun: _Begun) -> bool:
        """Tell whether the DDL has run in spite of ``error``; False: it may be sent again. Raises what stops it."""
        match meaning_of(error).verdict:
            case Verdict.LOST:
                # The server may have gone on, or finished: retake ends the session, then the tables tell.
                self._ownership.retake()
                wait_until_ended(self._ownership.connection, begun.ddl)
                return self._is_decided_as_run(begun)
            case Verdict.RETRY:
                return False
            case Verdict.ALREADY_SO if self._is_fulfilled(begun):
                return True
            case _:
                raise self._failed(error, begun) from error

    def _is_decided_as_run(self, begun: _Begun) -> bool:
        outcome = self._outcome(begun)
        if outcome is _Outcome.UNDECIDED:
            raise NeedsOperator(
                "the connection was lost during a DDL, and the tables do not show whether it has run",
                remedy="Look at the sink, then `applier ddl done` or `applier ddl retry`",
                **begun.facts,
            )
        return outcome is _Outcome.RAN

    def _is_fulfilled(self, begun: _Begun) -> bool:
        return commit_owned(
            self._ownership,
            self._settings.retries,
            lambda connection: is_fulfilled(connection, begun.ddl, begun.before),
            "reading the catalogue",
            **begun.facts,
        )

    def _failed(self, error: BaseException, begun: _Begun) -> SinkError:
        facts = begun.facts
        if code_of(error) == LOCK_WAIT_TIMEOUT:
            facts["blocked_by"] = blockers(self._ownership.connection, begun.ddl.schema) or "unknown (grant PROCESS to see it)"
        ours = translate(error, "running a DDL", shows_text=True, **facts)
        remedy = ours.remedy if is_known(error) else BY_HAND
        failure = type(ours)(ours.message, remedy=remedy, **ours.facts)
        # The ledger's note is a convenience; the error itself must not be lost for it.
        with suppress(SinkError):
            commit_owned(
                self._ownership, 0, lambda connection: self._ledger.error(connection, begun.identity, str(failure)), "noting a DDL's error"
            )
        return failure


def _names(ddl: DdlEvent) -> list[TableName]:
    """Return the tables (and the schema, as table '') that show whether the DDL has run."""
    statement = parse_ddl(ddl)
    names = [ddl.name] if ddl.table else []
    if statement is not None:
        names += [*statement.names, *([TableName(statement.schema, "")] if statement.schema else [])]
    return list({name.fold(): name for name in names}.values())


def _swaps(statement: Statement) -> bool:
    """Tell whether tables or partitions change places, which alike ones do not show. Everything else that does not show can be repeated."""
    if statement.kind is StatementKind.EXCHANGE_PARTITION:
        return True
    olds, news = {old.fold() for old, _ in statement.renames}, {new.fold() for _, new in statement.renames}
    return len(statement.renames) > 1 and olds == news


def _moved(before: str, now: str) -> _Outcome:
    match has_moved(before, now):
        case None:
            return _Outcome.UNDECIDED
        case True:
            return _Outcome.RAN
        case False:
            return _Outcome.NOT_RAN
