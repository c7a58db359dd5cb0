"""Compares the sink's tables with an intent, each time in its own transaction on the owner's session."""

from collections.abc import Collection

from sqlalchemy import Connection

from applier.model.errors import NeedsOperator
from applier.model.remedy import Remedy
from applier.sinks.mysql.ddl.already_so import missing_result
from applier.sinks.mysql.ddl.intents import Intent
from applier.sinks.mysql.ddl.outcome import Outcome, outcome_of
from applier.sinks.mysql.ddl.owner_session import OwnerSession
from applier.sinks.mysql.ddl.scratch import Scratch
from applier.sinks.mysql.ddl.snapshot import described_tables, snapshot, states_of
from applier.sinks.settings import SinkSettings


class Comparison:
    """The questions that the run of a DDL asks about its tables."""

    def __init__(self, settings: SinkSettings, session: OwnerSession) -> None:
        self._settings, self._session = settings, session

    def has_run(self, intent: Intent, cause: str) -> bool:
        """Return whether a DDL with an unknown outcome has run. NeedsOperator if that cannot be decided; ``cause`` made it unknown."""
        # No snapshot: the statement was never sent, was refused, or the operator decided that it runs.
        if not intent.before:
            return False
        found = self._session.commit(
            lambda connection: outcome_of(self._scratch(connection), intent.ddl, intent.before),
            "comparing the tables of a DDL",
            **intent.facts,
        )
        if found.outcome is Outcome.UNDECIDED:
            message = f"the outcome of the DDL is unknown after {cause}: {found.reason}"
            remedy = Remedy(
                "mysql.decide-ddl-outcome",
                "Look at the table in the sink. Run `applier ddl done --ts … --table …` if the statement ran, "
                "`applier ddl retry --ts … --table …` if it did not",
            )
            raise NeedsOperator(message, remedy=remedy, **intent.facts)
        return found.outcome is Outcome.RAN

    def has_changed(self, intent: Intent) -> bool:
        """Return whether the tables have other definitions than when the statement was sent."""
        names = described_tables(intent.ddl)

        def work(connection: Connection) -> str:
            return snapshot(connection, names)

        now = self._session.commit(work, "reading the tables of a DDL", **intent.facts)
        return not states_of(intent.before).has_same_definitions(states_of(now), names)

    def missing_result(self, intent: Intent, own: Collection[str] = ()) -> str | None:
        """Say what the sink lacks of the statement's result; None: nothing. ``own``: columns that upstream's table had before."""
        return self._session.commit(
            lambda connection: missing_result(self._scratch(connection), intent.ddl, own),
            "comparing the sink with the result of a DDL",
            **intent.facts,
        )

    def drop_leftover(self) -> None:
        """Drop the scratch table that a dead run left."""
        self._session.commit(lambda connection: self._scratch(connection).drop_leftover(), "dropping the scratch table of an earlier run")

    def _scratch(self, connection: Connection) -> Scratch:
        return Scratch(connection, self._settings.schema, self._settings.name, self._settings.collations)
