"""Runs DDLs exactly once on servers whose DDL commits by itself (DESIGN.md section 9).

Intent (with the tables as they are, and the checkpoint at the DDL's ts) in one transaction; the statement; done in another. An answer by
which the server refuses the statement is noted in the intent: it has not run, whatever becomes of its tables. Only what a crash or a lost
connection leaves without an answer is compared (``outcome.py``), with the tables as they were when the statement was last sent.
Everything happens on the session that holds the replica's lock: a run that lost the replica has lost this session too, so it cannot
send the statement any more.
"""

from contextlib import suppress
from typing import Any, Final, NamedTuple

import stamina
from sqlalchemy import Connection

from applier.model.errors import FatalSinkError, NeedsOperator, RetryableSinkError, SinkError, UnknownOutcome
from applier.model.events import DdlEvent, DdlIdentity
from applier.model.position import Ts
from applier.sinks.bookkeeping.bookkeeping import FenceState, fenced
from applier.sinks.bookkeeping.ledger import Ledger
from applier.sinks.failpoint import reach
from applier.sinks.ledger_entry import DdlState
from applier.sinks.mysql.ddl.in_place import why_not_in_place
from applier.sinks.mysql.ddl.outcome import Outcome, describable, outcome_of
from applier.sinks.mysql.ddl.partition import refuse_other_rows
from applier.sinks.mysql.ddl.scratch import Scratch
from applier.sinks.mysql.ddl.snapshot import snapshot, states_of
from applier.sinks.mysql.ddl.spelling import spelled_in_sink
from applier.sinks.mysql.ddl.statement import blockers, run_statement, wait_until_ended
from applier.sinks.mysql.errors import ErrorVerdict, code_of, is_database_error, is_known, meaning_of, translate
from applier.sinks.mysql.owned import commit_owned
from applier.sinks.mysql.ownership import Ownership
from applier.sinks.progress import Fence, ProgressCommit
from applier.sinks.reserved import SYSTEM_SCHEMAS, Reserved
from applier.sinks.settings import SinkSettings

LOCK_WAIT_TIMEOUT, NO_TABLE = 1205, 1146
NOT_MADE: Final = frozenset({1007, 1050, 1054, 1060, 1061, 1068, 1146, 1517, 4092})
"""Warnings of a statement that has not made what it names, because something of that name exists, or what it is about does not."""
REMOVE: Final = "Mend what the sink has, with its rows, then `applier ddl done`; or remove it, and start the applier again"
BY_HAND: Final = (
    "Change the sink by hand, its rows included, then `applier ddl done`. `applier ddl skip` is right only if the sink needs nothing of it"
)


class DdlNotRun(RetryableSinkError):
    """The statement has not run, and may be sent again."""


class _Begun(NamedTuple):
    """A DDL with an intent in the ledger. ``before`` describes the tables as they were when it was sent.

    '' if it was not sent or was refused since, or if the operator wants no comparison: it has to run.
    """

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
            self._execute(begun, is_described=True)
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
        commit_owned(
            self._ownership,
            self._settings.retries,
            lambda connection: self._scratch(connection).drop_left(),
            "dropping the scratch table of an earlier run",
        )
        for entry in entries:
            begun = _Begun(entry.identity, entry.ddl, entry.before)
            self._settle_one(begun)
            fence = self._end(fence, begun, None)
        return fence

    def _scratch(self, connection: Connection) -> Scratch:
        return Scratch(connection, self._settings.schema, self._settings.name)

    def _begin(self, fence: Fence, identity: DdlIdentity, ddl: DdlEvent, before: ProgressCommit) -> tuple[Fence, _Begun, bool]:
        """Write the intent. True: it was there already, left by an outcome that was not known."""

        def work(connection: Connection) -> tuple[Fence, _Begun, bool]:
            self._hold(connection, fence)
            left = next((entry for entry in self._ledger.intents(connection) if entry.identity == identity), None)
            if left is None:
                # Before anything is written: which of two namesakes is meant must not be decided by who is dropped later.
                spelled_in_sink(connection, ddl)
                refuse_other_rows(connection, ddl)
            begun = _Begun(identity, ddl, snapshot(connection, describable(ddl)) if left is None else left.before)
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
        if not self._has_run(begun, "a crash lay around a DDL"):
            self._execute(begun, is_described=False)

    def _has_run(self, begun: _Begun, what: str) -> bool:
        """Tell whether a DDL has run whose outcome may be unknown. NeedsOperator: that cannot be decided; ``what`` happened."""
        if not begun.before:
            return False
        judgement = commit_owned(
            self._ownership,
            self._settings.retries,
            lambda connection: outcome_of(self._scratch(connection), begun.ddl, begun.before),
            "comparing the tables of a DDL",
            **begun.facts,
        )
        if judgement.outcome is Outcome.UNDECIDED:
            message = f"{what}, and the tables do not show whether it has run: {judgement.reason}"
            remedy = "Look at the sink. `applier ddl done` if the statement has run, `applier ddl retry` if it has not"
            raise NeedsOperator(message, remedy=remedy, **begun.facts)
        return judgement.outcome is Outcome.RAN

    def _execute(self, begun: _Begun, *, is_described: bool) -> None:
        """Run the statement until it has run. What keeps it from that is written to the ledger and raised.

        ``is_described``: the intent tells the tables as they are now. FatalSinkError; RetryableSinkError if it may pass (a lock that
        somebody holds for long): the statement is sent at a new beginning.
        """
        Reserved(self._settings.schema, SYSTEM_SCHEMAS).refuse_ddl(begun.ddl)
        try:
            for attempt in stamina.retry_context(on=DdlNotRun, attempts=self._settings.retries + 1, timeout=None):
                with attempt:
                    self._attempt(begun if is_described and attempt.num == 1 else self._described(begun))
        except DdlNotRun as error:
            raise self._refused(error.__cause__ or error, begun) from error.__cause__

    def _described(self, begun: _Begun) -> _Begun:
        """Write the tables as they are now into the intent: what happened before this attempt is none of its doing."""

        def work(connection: Connection) -> _Begun:
            before = snapshot(connection, describable(begun.ddl))
            self._ledger.describe(connection, begun.identity, before)
            return begun._replace(before=before)

        return commit_owned(self._ownership, self._settings.retries, work, "describing the tables of a DDL", **begun.facts)

    def _attempt(self, begun: _Begun) -> None:
        """Send the statement once. DdlNotRun: it may be sent again; everything else stops it."""
        try:
            warnings = run_statement(self._ownership.connection, begun.ddl)
        except Exception as error:
            if not is_database_error(error):
                raise
            if not self._has_run_after(error, begun):
                ours = translate(error, "running a DDL", **begun.facts)
                raise DdlNotRun(ours.message, remedy=ours.remedy, **ours.facts) from error
        else:
            # IF [NOT] EXISTS turns the error into a note. Upstream's statement has changed something, or there would be no event.
            if any(code in NOT_MADE for code in warnings) and not self._has_changed(begun):
                self._require_in_place(begun, None)

    def _has_run_after(self, error: Exception, begun: _Begun) -> bool:
        """Tell whether the DDL has run in spite of ``error``; False: it may be sent again. Raises what stops it."""
        match meaning_of(error).verdict:
            case ErrorVerdict.LOST:
                # The server may have gone on, or finished: retake ends the session, then the tables tell.
                self._ownership.retake()
                wait_until_ended(self._ownership.connection, begun.ddl)
                return self._has_run(begun, "the connection was lost during a DDL")
            case ErrorVerdict.RETRY:
                self._note_refusal(translate(error, "running a DDL", **begun.facts), begun)
                return False
            case ErrorVerdict.ALREADY_SO:
                self._require_in_place(begun, error)
                return True
            case _:
                raise self._refused(error, begun) from error

    def _has_changed(self, begun: _Begun) -> bool:
        """Tell whether the tables are defined otherwise than when the statement was sent."""
        names = describable(begun.ddl)

        def work(connection: Connection) -> str:
            return snapshot(connection, names)

        now = commit_owned(self._ownership, self._settings.retries, work, "reading the tables of a DDL", **begun.facts)
        return not states_of(begun.before).has_same_definitions(states_of(now), names)

    def _require_in_place(self, begun: _Begun, error: Exception | None) -> None:
        """Raise unless the sink has all that the statement makes. ``error``: the server's answer, None for a note."""
        reason = commit_owned(
            self._ownership,
            self._settings.retries,
            lambda connection: why_not_in_place(self._scratch(connection), begun.ddl),
            "comparing the sink with what a DDL makes",
            **begun.facts,
        )
        if reason is None:
            return
        if error is not None:
            raise self._refused(error, begun, reason=reason) from error
        message = f"a DDL changed nothing, because its object exists already: {reason}"
        failure = FatalSinkError(message, remedy=REMOVE, **begun.facts)
        self._note_refusal(failure, begun)
        raise failure

    def _refused(self, error: BaseException, begun: _Begun, *, reason: str = "") -> SinkError:
        """Note the server's refusal, and return it as an error of ours. ``reason``: why its result does not count as in place."""
        facts = begun.facts | ({"reason": reason} if reason else {})
        if code_of(error) == LOCK_WAIT_TIMEOUT:
            facts["blocked_by"] = blockers(self._ownership.connection, begun.ddl.schema) or "unknown (grant PROCESS to see it)"
        ours = translate(error, "running a DDL", shows_text=True, **facts)
        remedy = REMOVE if reason and code_of(error) != NO_TABLE else ours.remedy if is_known(error) else BY_HAND
        failure = type(ours)(ours.message, remedy=remedy, **ours.facts)
        self._note_refusal(failure, begun)
        return failure

    def _note_refusal(self, error: Exception, begun: _Begun) -> None:
        """Write into the intent that the statement has not run.

        If that fails the tables are compared at the next beginning, with the intent as it is: the error itself must not be lost for it.
        """
        reach("ddl.refused")

        def work(connection: Connection) -> None:
            self._ledger.refused(connection, begun.identity, str(error))

        with suppress(SinkError):
            commit_owned(self._ownership, 0, work, "noting a DDL's refusal")
