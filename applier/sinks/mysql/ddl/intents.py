"""The intents of one replica: what its ledger says about DDLs that have not ended. Each change is one transaction."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from sqlalchemy import Connection

from applier.ddl import parse_ddl
from applier.ddl.adaptation import refuse_inexpressible
from applier.ddl.conditions import conditional_columns, table_columns
from applier.model.errors import SinkError
from applier.model.events import DdlEvent, DdlIdentity
from applier.mysql.names import names_asked_once
from applier.planner.table_check import Evidence
from applier.sinks.bookkeeping.ledger import Ledger, PastDdls
from applier.sinks.bookkeeping.progress_table import ProgressTable
from applier.sinks.failpoint import reach
from applier.sinks.ledger_entry import DdlState
from applier.sinks.mysql.ddl.old_rows import OldTable, in_its_zone, refuse_other_conversions, refuse_other_rows, refuse_own_values
from applier.sinks.mysql.ddl.rewrite import refuse_generated, spelled_in_sink, target_of
from applier.sinks.mysql.ddl.snapshot import described_tables, snapshot, states_of
from applier.sinks.mysql.ddl.upstream_names import with_upstream_names
from applier.sinks.mysql.ownership import Ownership, commit_owned
from applier.sinks.progress import Fence, ProgressCommit
from applier.sinks.settings import Collations

T = TypeVar("T")


class OwnerSession:
    """The session of ``ownership``. ``retries``: how often a transaction that was rolled back is repeated."""

    def __init__(self, ownership: Ownership, retries: int) -> None:
        self._ownership, self._retries = ownership, retries

    @property
    def connection(self) -> Connection:
        """The session. No transaction is open between two calls."""
        return self._ownership.connection

    def commit(self, work: Callable[[Connection], T], doing: str, **facts: Any) -> T:
        """Run ``work`` and COMMIT. Errors: ``commit_owned``."""
        return commit_owned(self._ownership, self._retries, work, doing, **facts)

    def commit_once(self, work: Callable[[Connection], T], doing: str, **facts: Any) -> T:
        """Run ``work`` and COMMIT without a repetition. Errors: ``commit_owned``."""
        return commit_owned(self._ownership, 0, work, doing, **facts)

    def retake(self) -> None:
        """Replace a lost session. The server's end of the old one is killed, so that it sends no statement any more."""
        self._ownership.retake()


@dataclass(frozen=True, slots=True)
class Intent:
    """A DDL that has begun and has not ended.

    ``before`` describes its tables as they were when the statement was sent last. It is '' if the statement must run without a comparison:
    it was never sent, the server refused it, or the operator chose ``applier ddl retry``.
    """

    identity: DdlIdentity
    ddl: DdlEvent
    before: str
    is_background: bool = False
    """Whether it runs in the background."""

    @property
    def facts(self) -> dict[str, Any]:
        """What names the DDL in a message."""
        return {"table": str(self.ddl.name), "commit_ts": self.ddl.commit_ts, "query": self.ddl.query}


class Intents:
    """Reads and writes the intents of one replica."""

    def __init__(self, ledger: Ledger, session: OwnerSession, collations: Collations = ()) -> None:
        self._ledger, self._session, self._collations = ledger, session, collations
        self._progress, self._past = ProgressTable(ledger.bookkeeping), PastDdls(ledger)

    def unsettled(self) -> list[Intent]:
        """Return all intents, in the order in which they have to run. What is known of DDLs that have ended is read again."""
        self._past.forget()
        entries = self._session.commit(self._ledger.intents, "reading the ledger")
        return [Intent(entry.identity, entry.ddl, entry.before, entry.state is DdlState.BACKGROUND) for entry in entries]

    def begin(
        self, fence: Fence, identity: DdlIdentity, ddl: DdlEvent, progress: ProgressCommit, *, is_background: bool = False
    ) -> tuple[Fence, Intent, bool]:
        """Write the intent, with the progress. True: the intent was there already, because an earlier COMMIT lost its answer."""

        def work(connection: Connection) -> tuple[Fence, Intent, bool]:
            # The intent moves the checkpoint to the DDL's ts even if no row came before it: A after a crash then says which rows
            # the tables hold.
            self._progress.lock_or_raise(connection, fence)
            left = next((entry for entry in self._ledger.intents(connection) if entry.identity == identity), None)
            if left is not None:
                intent = Intent(identity, left.ddl, left.before, left.state is DdlState.BACKGROUND)
            else:
                with names_asked_once(connection):
                    intent = self._new(connection, identity, ddl, is_background=is_background)
                state = DdlState.BACKGROUND if is_background else DdlState.INTENT
                self._ledger.intent(connection, identity, intent.ddl, intent.before, state)
            return self._progress.advance(connection, fence, progress), intent, left is not None

        return self._session.commit(work, "recording a DDL's intent", table=str(ddl.name), commit_ts=ddl.commit_ts)

    def _new(self, connection: Connection, identity: DdlIdentity, ddl: DdlEvent, *, is_background: bool) -> Intent:
        """Return the intent of a DDL, with upstream's names and the tables as they are; raises what forbids it."""
        # Before anything is written: which of two namesakes the DDL means must not depend on what someone drops later.
        spelled_in_sink(connection, ddl)
        refuse_other_rows(connection, ddl)
        old = OldTable(connection, ddl)
        refuse_own_values(old)
        target = target_of(connection, self._collations)
        refuse_inexpressible(ddl, target)
        refuse_generated(connection, ddl, target)
        zoned = in_its_zone(connection, ddl, old)
        refuse_other_conversions(connection, zoned, old)
        named = with_upstream_names(connection, self._past, zoned, target)
        return Intent(identity, named, snapshot(connection, described_tables(ddl)), is_background)

    def describe(self, intent: Intent) -> Intent:
        """Write the tables as they are now into the intent: earlier changes are not an effect of the statement."""

        def work(connection: Connection) -> Intent:
            before = snapshot(connection, described_tables(intent.ddl))
            self._ledger.describe(connection, intent.identity, before)
            return replace(intent, before=before)

        return self._session.commit(work, "describing the tables of a DDL", **intent.facts)

    def note_refusal(self, intent: Intent, error: Exception) -> None:
        """Write into the intent that the server refused the statement.

        A failure of this is not raised, because ``error`` must not be lost. The tables are compared at the next start then.
        """
        reach("ddl.refused")

        def work(connection: Connection) -> None:
            self._ledger.refused(connection, intent.identity, str(error))

        # Once, without retries: the session is often the reason of the failure.
        with suppress(SinkError):
            self._session.commit_once(work, "recording a DDL's refusal")

    def foreign_columns(self, intent: Intent) -> list[str]:
        """Return the columns that the statement adds IF NOT EXISTS, and that the sink's table had before, but upstream's had not."""
        statement, names = parse_ddl(intent.ddl), conditional_columns(intent.ddl.query)
        if not names or statement is None:
            return []
        table, evidence = statement.needs[0], Evidence(self._session.commit(self._ledger.statements, "reading the ledger", **intent.facts))
        found = names & table_columns(states_of(intent.before).definition(table))
        return sorted(name for name in found if evidence.has_column(table.fold(), name, intent.ddl.commit_ts) is False)

    def end(self, fence: Fence, intent: Intent, progress: ProgressCommit | None) -> Fence:
        """Write done, with the progress (None: the checkpoint stays)."""

        def work(connection: Connection) -> Fence:
            checkpoint_ts = self._progress.lock_or_raise(connection, fence)
            self._ledger.end(connection, intent.identity, DdlState.DONE)
            # Settling at a start moves nothing: the coordinator is not there yet, and the intent has moved the checkpoint already.
            following = self._progress.advance(connection, fence, progress or ProgressCommit(checkpoint_ts=checkpoint_ts, positions={}))
            reach("ddl.before_done")
            return following

        return self._session.commit(work, "marking a DDL as done", **intent.facts)

    def end_background(self, intent: Intent) -> None:
        """Write done for a DDL that ran in the background; the progress has passed it. The operator may have settled it meanwhile."""

        def work(connection: Connection) -> None:
            self._ledger.end_if_open(connection, intent.identity, DdlState.DONE)
            reach("ddl.before_done")

        self._session.commit(work, "marking a DDL as done", **intent.facts)

    def skip(self, fence: Fence, identity: DdlIdentity, ddl: DdlEvent, progress: ProgressCommit) -> Fence:
        """Write the DDL as skipped, with the progress. An intent that an unknown outcome left becomes skipped."""

        def work(connection: Connection) -> Fence:
            self._progress.lock_or_raise(connection, fence)
            if any(entry.identity == identity for entry in self._ledger.intents(connection)):
                self._ledger.end(connection, identity, DdlState.SKIPPED)
            else:
                self._ledger.settled(connection, identity, ddl, DdlState.SKIPPED)
            return self._progress.advance(connection, fence, progress)

        return self._session.commit(work, "skipping a DDL", table=str(ddl.name), commit_ts=ddl.commit_ts)
