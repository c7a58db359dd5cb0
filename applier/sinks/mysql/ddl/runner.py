"""Runs, skips and settles the DDLs of one run. The package's docstring has the theory. Driver only."""

from sqlalchemy import Connection

from applier.ddl.background import may_run_in_background
from applier.model.errors import ApplierError
from applier.model.events import DdlEvent, DdlIdentity
from applier.sinks.bookkeeping.ledger import Ledger
from applier.sinks.failpoint import reach
from applier.sinks.mysql.ddl.background import BackgroundDdls
from applier.sinks.mysql.ddl.comparison import Comparison
from applier.sinks.mysql.ddl.execution import Execution
from applier.sinks.mysql.ddl.intents import Intent, Intents, OwnerSession
from applier.sinks.mysql.ddl.sessions import wait_until_ended
from applier.sinks.mysql.ddl.statement import as_in_sink, note_left_out
from applier.sinks.mysql.ownership import Ownership
from applier.sinks.progress import Fence, ProgressCommit
from applier.sinks.settings import SinkSettings


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
        """Take up what a dead run has built in the background: the index is there, or is built again."""
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
        # What the server cannot have is left out, and then nothing is left to build.
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
