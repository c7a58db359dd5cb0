"""The quarantine of one replica: rejected events with their records, and the operator's rules about events to skip.

Statements inside a transaction that the caller began. A writer stores entries in the transaction of the progress, after the lock of
the progress row, so that an entry is there once however often its record is read.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import msgspec
from sqlalchemy import Connection

from applier.model.errors import FatalSinkError, Remedy
from applier.model.events import FoldedName
from applier.model.position import Offset, Stream, Ts
from applier.model.rejected_event import WHOLE_RECORD, EventPosition, KeptRecord, QuarantineState, RejectedEvent
from applier.sinks.bookkeeping.bookkeeping import Bookkeeping, Transactions, as_datetime
from applier.sinks.quarantine import Quarantined, QuarantineEntry, SkipRule

PIECE_BYTES: Final = 256 * 1024
"""The smallest max_allowed_packet in use is 1 MiB, and a binary literal may need twice its bytes."""
MAX_NAME: Final = 192
"""What the columns hold; the names of a broken record may be longer."""
MAX_LISTED: Final = 1000
"""Offsets in one statement: SQLite takes some 32,000 values."""
ANYWHERE: Final = Stream("", -1)
"""The stream of a rule that holds for a timestamp."""


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(KeptRecord).decode


@dataclass(frozen=True, slots=True)
class Quarantine:
    """The quarantine of the replica that ``bookkeeping`` is of."""

    bookkeeping: Bookkeeping

    def store(
        self, connection: Connection, quarantined: Quarantined | None, refused: Sequence[RejectedEvent] = ()
    ) -> tuple[RejectedEvent, ...]:
        """Store what a transaction quarantines, reading one record at a time; return what was not there before.

        ``refused``: rows that the database has refused in it.
        """
        if quarantined is None:
            return ()
        for settlement in quarantined.settled:
            if not self.settle(connection, *settlement):
                raise FatalSinkError(
                    "another operator has settled the entry",
                    remedy=Remedy("bookkeeping.list-quarantine", "See `applier quarantine list --all`"),
                    position=settlement.position,
                )
        # An event that the planner quarantines replaces the same one refused by the database: it names the cause.
        events = {event.position: event for event in (*refused, *quarantined.events)}
        known = self.stored(connection, events)
        new = sorted((event for position, event in events.items() if position not in known), key=lambda event: event.position)
        # Sorted by position: the events of one record are neighbours, so it is read and encoded once.
        record, data = None, b""
        for event in new:
            found = quarantined.record_of(event)
            if found != record:
                record, data = found, _encode(found)
            self._insert(connection, event, data)
        return tuple(new)

    def stored(self, connection: Connection, positions: Iterable[EventPosition]) -> frozenset[EventPosition]:
        """Return which of the events are stored, in any state: a statement per stream and ``MAX_LISTED`` records."""
        offsets: dict[Stream, set[Offset]] = defaultdict(set)
        for stream, offset, _ in positions:
            offsets[stream].add(offset)
        found: set[EventPosition] = set()
        for stream, some in offsets.items():
            listed = sorted(some)
            for start in range(0, len(listed), MAX_LISTED):
                values = self._of_stream(stream) | {"record_offsets": listed[start : start + MAX_LISTED]}
                rows = connection.execute(self.bookkeeping.query("quarantine_stored"), values)
                found.update(EventPosition(stream, Offset(row.record_offset), row.event_index) for row in rows)
        return frozenset(found)

    def _insert(self, connection: Connection, event: RejectedEvent, data: bytes) -> None:
        key = self._key(event.position)
        facts = {
            "schema_name": _storable(event.schema)[:MAX_NAME],
            "table_name": _storable(event.table)[:MAX_NAME],
            "handle_key": _storable(event.key),
            "commit_ts": self.bookkeeping.number(event.commit_ts),
            "error": _storable(event.error),
            "state": event.state.value,
        }
        # Every piece repeats the facts of the event: the first one is the entry, and is found without joining the others.
        for piece, start in enumerate(range(0, len(data), PIECE_BYTES)):
            values = key | facts | {"piece": piece, "record": data[start : start + PIECE_BYTES]}
            connection.execute(self.bookkeeping.query("quarantine_store"), values)

    def entries(self, connection: Connection) -> list[QuarantineEntry]:
        """Return all entries in the order in which they were found."""
        return [_entry(row) for row in connection.execute(self.bookkeeping.query("quarantine_read"), {"name": self.bookkeeping.name})]

    def positions(self, connection: Connection) -> list[EventPosition]:
        """Return the positions of the entries that a run may read again, in any state: at or above the stored offsets."""
        return [
            _position(row) for row in connection.execute(self.bookkeeping.query("quarantine_positions"), {"name": self.bookkeeping.name})
        ]

    def record(self, connection: Connection, position: EventPosition) -> KeptRecord:
        """Return the record of an entry. FatalSinkError if there is none."""
        pieces = connection.execute(self.bookkeeping.query("quarantine_record"), self._key(position)).scalars().all()
        if not pieces:
            raise FatalSinkError(
                "the quarantine does not hold this record",
                remedy=Remedy("bookkeeping.list-quarantine-before-retry", "See `applier quarantine list --all`"),
                position=str(position),
            )
        return _decode(b"".join(pieces))

    def recent(self, connection: Connection, at_most: int, at_most_text: int) -> list[QuarantineEntry]:
        """Return the entries that wait first, then the newest of the others, with the beginning of their texts, and without keys."""
        return [_entry(row) for row in self.bookkeeping.run(connection, "quarantine_recent", at_most=at_most, at_most_text=at_most_text)]

    def count(self, connection: Connection) -> int:
        """Return how many entries wait for the operator."""
        return int(connection.execute(self.bookkeeping.query("quarantine_count"), {"name": self.bookkeeping.name}).scalar_one())

    def settle(self, connection: Connection, position: EventPosition, state: QuarantineState, by: str) -> bool:
        """Store the new state of an entry that waited; False if it did not wait (any more)."""
        values = self._key(position) | {"state": state.value, "settled_by": by}
        return connection.execute(self.bookkeeping.query("quarantine_settle"), values).rowcount > 0

    def add_skip_rule(self, connection: Connection, rule: SkipRule) -> None:
        """Store a rule of the operator."""
        connection.execute(self.bookkeeping.query("skip_write"), self._rule_key(rule) | {"said_by": rule.decided_by})

    def remove_skip_rule(self, connection: Connection, rule: SkipRule) -> bool:
        """Remove a rule; return whether there was one."""
        return connection.execute(self.bookkeeping.query("skip_remove"), self._rule_key(rule)).rowcount > 0

    def skip_rules(self, connection: Connection) -> list[SkipRule]:
        """Return all rules of the operator."""
        return [_rule(row) for row in connection.execute(self.bookkeeping.query("skip_read"), {"name": self.bookkeeping.name})]

    def _rule_key(self, rule: SkipRule) -> dict[str, Any]:
        return self._key(rule.position or EventPosition(ANYWHERE, Offset(-1), WHOLE_RECORD)) | {
            "commit_ts": self.bookkeeping.number(rule.commit_ts),
            "schema_name": rule.table.schema if rule.table else "",
            "table_name": rule.table.table if rule.table else "",
        }

    def _key(self, position: EventPosition) -> dict[str, Any]:
        return self._of_stream(position.stream) | {"record_offset": position.offset, "event_index": position.event}

    def _of_stream(self, stream: Stream) -> dict[str, Any]:
        return {"name": self.bookkeeping.name, "topic": stream.topic, "partition_number": stream.partition}


def _storable(text: str) -> str:
    """Escape what is not UTF-8: names and keys of a broken record may hold anything."""
    return text.encode("utf-8", "backslashreplace").decode()


def _entry(row: Any) -> QuarantineEntry:
    event = RejectedEvent(
        position=_position(row),
        error=row.error,
        state=QuarantineState(row.state),
        schema=row.schema_name,
        table=row.table_name,
        key=row.handle_key,
        commit_ts=Ts(int(row.commit_ts)),
    )
    return QuarantineEntry(
        event=event,
        found_at=as_datetime(row.found_at),
        settled_at=None if row.settled_at is None else as_datetime(row.settled_at),
        settled_by=row.settled_by or "",
    )


def _rule(row: Any) -> SkipRule:
    position = None if row.topic == ANYWHERE.topic else _position(row)
    table = FoldedName(row.schema_name, row.table_name) if row.schema_name or row.table_name else None
    return SkipRule(
        decided_by=row.said_by, position=position, commit_ts=Ts(int(row.commit_ts)), table=table, decided_at=as_datetime(row.said_at)
    )


def _position(row: Any) -> EventPosition:
    return EventPosition(Stream(row.topic, row.partition_number), Offset(row.record_offset), row.event_index)


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

    def positions(self) -> Sequence[EventPosition]:
        """Return the positions of the entries that a run may read again, in any state."""
        return self._read(self.quarantine.positions)

    def record(self, position: EventPosition) -> KeptRecord:
        """Return the record of an entry as it came from Kafka. FatalSinkError if there is none."""
        return self._read(lambda connection: self.quarantine.record(connection, position))

    def settle(self, position: EventPosition, state: QuarantineState, by: str) -> bool:
        """Store the new state of an entry that waited; False if it did not wait (any more)."""
        return self._change(lambda connection: self.quarantine.settle(connection, position, state, by))

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
