"""The quarantine as the driver and the commands see it, the same for every dialect: each call is a separate transaction."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from sqlalchemy import Connection

from applier.model.rejected_event import EventPlace, KeptRecord, QuarantineState
from applier.sinks.bookkeeping.quarantine import Quarantine
from applier.sinks.quarantine import QuarantineEntry, SkipRule

T = TypeVar("T")


class InTransaction(Protocol):
    """Runs work in its own transaction."""

    def __call__(self, work: Callable[[Connection], T], /) -> T:
        """Commit after ``work`` and return what it returned; roll back if it raises."""
        ...


@dataclass(frozen=True, slots=True)
class SqlQuarantineStore:
    """A ``QuarantineStore`` over the statements of ``quarantine``. SQLite reads and writes in different kinds of transactions."""

    quarantine: Quarantine
    read: InTransaction
    write: InTransaction

    def count(self) -> int:
        """Return how many entries wait for the operator."""
        return self.read(self.quarantine.count)

    def entries(self) -> Sequence[QuarantineEntry]:
        """Return all entries, without their records."""
        return self.read(self.quarantine.entries)

    def places(self) -> Sequence[EventPlace]:
        """Return the places of the entries that a run may read again."""
        return self.read(self.quarantine.places)

    def record(self, place: EventPlace) -> KeptRecord:
        """Return the record of an entry."""
        return self.read(lambda connection: self.quarantine.record(connection, place))

    def settle(self, place: EventPlace, state: QuarantineState, by: str) -> bool:
        """Store the new state of an entry that waited."""
        return self.write(lambda connection: self.quarantine.settle(connection, place, state, by))

    def skip_rules(self) -> Sequence[SkipRule]:
        """Return the operator's rules about events to skip."""
        return self.read(self.quarantine.skip_rules)

    def add_skip_rule(self, rule: SkipRule) -> None:
        """Store a rule."""
        self.write(lambda connection: self.quarantine.add_skip_rule(connection, rule))

    def remove_skip_rule(self, rule: SkipRule) -> bool:
        """Undo a rule."""
        return self.write(lambda connection: self.quarantine.remove_skip_rule(connection, rule))
