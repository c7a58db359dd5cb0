"""The quarantine as the driver and the commands see it, the same for every dialect."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from sqlalchemy import Connection

from applier.model.rejected_event import EventPlace, KeptRecord, QuarantineState
from applier.sinks.bookkeeping.bookkeeping import Transactions
from applier.sinks.bookkeeping.quarantine import Quarantine
from applier.sinks.quarantine import QuarantineEntry, SkipRule

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class QuarantineStore:
    """The entries, and the operator's rules about events to skip. Each call is a separate transaction; none needs ownership."""

    quarantine: Quarantine
    transactions: Transactions

    def count(self) -> int:
        """Return how many entries wait for the operator. Cheap."""
        return self._read(self.quarantine.count)

    def entries(self) -> Sequence[QuarantineEntry]:
        """Return all entries, without their records, in the order in which they were found."""
        return self._read(self.quarantine.entries)

    def places(self) -> Sequence[EventPlace]:
        """Return the places of the entries that a run may read again, in any state."""
        return self._read(self.quarantine.places)

    def record(self, place: EventPlace) -> KeptRecord:
        """Return the record of an entry as it came from Kafka. FatalSinkError if there is none."""
        return self._read(lambda connection: self.quarantine.record(connection, place))

    def settle(self, place: EventPlace, state: QuarantineState, by: str) -> bool:
        """Store the new state of an entry that waited; False if it did not wait (any more)."""
        return self._change(lambda connection: self.quarantine.settle(connection, place, state, by))

    def skip_rules(self) -> Sequence[SkipRule]:
        """Return the operator's rules about events to skip."""
        return self._read(self.quarantine.skip_rules)

    def add_skip_rule(self, rule: SkipRule) -> None:
        """Store a rule; runs follow it from their next start."""
        self._change(lambda connection: self.quarantine.add_skip_rule(connection, rule))

    def remove_skip_rule(self, rule: SkipRule) -> bool:
        """Undo a rule, for runs that start later; return whether there was one."""
        return self._change(lambda connection: self.quarantine.remove_skip_rule(connection, rule))

    def _read(self, work: Callable[[Connection], T]) -> T:
        return self.transactions.read(work, "reading the quarantine")

    def _change(self, work: Callable[[Connection], T]) -> T:
        return self.transactions.change(work, "changing the quarantine")
