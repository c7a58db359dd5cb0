"""The ledger of one replica: every DDL that began, is done or was skipped. It is never pruned.

Its key is the identity of a DDL (ts, folded name, names touched). So copies, replays and other wordings of a DDL are the same entry, and
the pieces of a RENAME chain are several (DESIGN.md section 3). Statements inside the caller's transaction.

``PastDdls`` reads what the ledger says about tables once: each later question reads only newer entries. A settled DDL does not change
while the run owns the replica, so it is kept. DDLs at the ts of the question, whose siblings may still come, and all DDLs from the first
unsettled one on are read again each time. After other changes (a reload, an operator between two runs) the run settles its intents, and
then everything is read again.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any, Final

from sqlalchemy import Connection, Row

from applier.ddl.adaptation import Target
from applier.ddl.generated_name import Naming, Past, PastDdl, TableHistory
from applier.model.errors import InvariantViolation, NeedsOperator, Remedy
from applier.model.events import DdlEvent, DdlIdentity, FoldedName, TableName
from applier.model.position import NO_TS, Ts
from applier.model.segment import may_follow
from applier.sinks.bookkeeping.bookkeeping import Bookkeeping, as_datetime
from applier.sinks.ledger_entry import DdlState, LedgerEntry, LedgerKey

MAX_LISTED: Final = 1_000
"""Timestamps in one statement: SQLite takes some 32,000 values."""


@dataclass(frozen=True, slots=True)
class Ledger:
    """The ledger of the replica that ``bookkeeping`` is of."""

    bookkeeping: Bookkeeping

    def read(self, connection: Connection) -> list[LedgerEntry]:
        """Return all entries by ts; entries of one ts in the order in which they began."""
        return self._entries(connection, "ledger_read")

    def recent(self, connection: Connection, at_most: int, at_most_text: int) -> list[LedgerEntry]:
        """Return the newest entries first, with the beginning of their texts, and without ``before``."""
        return [_entry(row) for row in self.bookkeeping.run(connection, "ledger_recent", at_most=at_most, at_most_text=at_most_text)]

    def statements(self, connection: Connection) -> list[DdlEvent]:
        """Return upstream's statements in the order in which they ran. Skipped ones have ``left_out``."""
        rows = connection.execute(self.bookkeeping.query("ledger_statements"), {"name": self.bookkeeping.name})
        ordered = sorted(rows, key=lambda row: (int(row.ddl_ts), as_datetime(row.began_at)))
        return [replace(_ddl(row), left_out=row.state) if row.state == DdlState.SKIPPED else _ddl(row) for row in ordered]

    def history(self, connection: Connection, since: Ts) -> list[PastDdl]:
        """Return upstream's statements at or above ``since`` with the tables that they touch, in the order in which they ran."""
        values = {"name": self.bookkeeping.name, "ddl_ts": self.bookkeeping.number(since)}
        rows = connection.execute(self.bookkeeping.query("ledger_history"), values)
        ordered = sorted(rows, key=lambda row: (int(row.ddl_ts), as_datetime(row.began_at)))
        return [
            PastDdl(_ddl(row), _touches(row.touches), row.state == DdlState.SKIPPED, row.state == DdlState.BACKGROUND) for row in ordered
        ]

    def since(self, connection: Connection, ts: Ts) -> list[LedgerKey]:
        """Return which DDLs the ledger has at or above ``ts``, without their texts."""
        values = {"name": self.bookkeeping.name, "ddl_ts": self.bookkeeping.number(ts)}
        return [_ledger_key(row) for row in connection.execute(self.bookkeeping.query("ledger_since"), values)]

    def at(self, connection: Connection, times: Sequence[Ts]) -> list[LedgerKey]:
        """Return which DDLs the ledger has at these timestamps, without their texts."""
        found: list[LedgerKey] = []
        for start in range(0, len(times), MAX_LISTED):
            listed = [self.bookkeeping.number(ts) for ts in times[start : start + MAX_LISTED]]
            values = {"name": self.bookkeeping.name, "times": listed}
            found += map(_ledger_key, connection.execute(self.bookkeeping.query("ledger_at"), values))
        return found

    def intents(self, connection: Connection) -> list[LedgerEntry]:
        """Return the DDLs that began and did not end, in the order in which they have to run."""
        return self._entries(connection, "ledger_intents")

    def intent(self, connection: Connection, identity: DdlIdentity, ddl: DdlEvent, before: str, state: DdlState = DdlState.INTENT) -> None:
        """Write that the DDL is about to run. ``before`` describes the tables as they are."""
        values = self._values(identity, ddl) | {"before_state": before, "state": state.value}
        connection.execute(self.bookkeeping.query("ledger_intent"), values)

    def settled(self, connection: Connection, identity: DdlIdentity, ddl: DdlEvent, state: DdlState) -> None:
        """Write a DDL that has no intent: skipped, or done in this transaction (where DDL is transactional)."""
        values = self._values(identity, ddl)
        connection.execute(self.bookkeeping.query("ledger_settled"), values | {"state": state.value})

    def end(self, connection: Connection, identity: DdlIdentity, state: DdlState) -> None:
        """Turn an intent into done or skipped; InvariantViolation if the intent does not exist."""
        if not self.end_if_open(connection, identity, state):
            message = "a DDL ended without an intent in the ledger"
            raise InvariantViolation(message, ddl_ts=identity.ts, table=identity.name)

    def end_if_open(self, connection: Connection, identity: DdlIdentity, state: DdlState) -> bool:
        """Turn an intent into done or skipped; return whether there was one."""
        values = self._key(identity) | {"state": state.value}
        return connection.execute(self.bookkeeping.query("ledger_end"), values).rowcount == 1

    def describe(self, connection: Connection, identity: DdlIdentity, before: str) -> None:
        """Write how the tables are, just before the statement is sent again."""
        connection.execute(self.bookkeeping.query("ledger_before"), self._key(identity) | {"before_state": before})

    def refused(self, connection: Connection, identity: DdlIdentity, error: str) -> None:
        """Write that the server refused the statement, and why. The intent stays; it has not run, so nothing is compared."""
        connection.execute(self.bookkeeping.query("ledger_refused"), self._key(identity) | {"error": error})

    def note_skipped(self, connection: Connection, identity: DdlIdentity, note: str) -> None:
        """Add to a skipped DDL who has skipped it."""
        connection.execute(self.bookkeeping.query("ledger_note"), self._key(identity) | {"error": note})

    def forget_skipped(self, connection: Connection, identity: DdlIdentity) -> bool:
        """Remove a skipped DDL; return whether there was one."""
        return connection.execute(self.bookkeeping.query("ledger_forget"), self._key(identity)).rowcount == 1

    def resolve(self, connection: Connection, ts: Ts, name: TableName, state: DdlState | None) -> int:
        """Apply the operator's decision to the intents at ``ts`` of ``name``; return how many there were.

        ``state`` done or skipped ends them; with None they run again without a comparison.
        """
        # Compared here and not in SQL: names fold as TiDB folds them, not as a collation of the sink does.
        matching = [e for e in self.intents(connection) if e.ddl.commit_ts == ts and e.ddl.name.fold() == name.fold()]
        for entry in matching:
            if state is None:
                connection.execute(self.bookkeeping.query("ledger_retry"), self._key(entry.identity))
            else:
                self.end(connection, entry.identity, state)
        return len(matching)

    def _entries(self, connection: Connection, query: str) -> list[LedgerEntry]:
        rows = connection.execute(self.bookkeeping.query(query), {"name": self.bookkeeping.name})
        return sorted((_entry(row) for row in rows), key=lambda entry: (entry.ddl.commit_ts, entry.began_at))

    def _values(self, identity: DdlIdentity, ddl: DdlEvent) -> dict[str, Any]:
        _check_text(ddl)
        return self._key(identity) | {
            "schema_name": ddl.schema,
            "table_name": ddl.table,
            "touches": _touches_text(identity),
            "ddl_type": ddl.ddl_type,
            "query": ddl.query,
            "time_ms": ddl.time_ms,
            "session": json.dumps(ddl.session) if ddl.session else None,
        }

    def _key(self, identity: DdlIdentity) -> dict[str, Any]:
        return {
            "name": self.bookkeeping.name,
            "ddl_ts": self.bookkeeping.number(identity.ts),
            # The names may be longer than an index allows, so a hash of them is the key.
            "identity_hash": sha256(json.dumps([*identity.name, _touches_text(identity)]).encode()).hexdigest(),
        }


def _ledger_key(row: Row[Any]) -> LedgerKey:
    name = TableName(row.schema_name, row.table_name).fold()
    return LedgerKey(DdlIdentity(Ts(int(row.ddl_ts)), name, _touches(row.touches)), DdlState(row.state))


def _touches(text: str) -> frozenset[FoldedName] | None:
    names = json.loads(text)
    return None if names is None else frozenset(FoldedName(*name) for name in names)


def _check_text(ddl: DdlEvent) -> None:
    try:
        (ddl.schema + ddl.table + ddl.query).encode()
    except UnicodeEncodeError as error:
        message = "the ledger cannot store a DDL: its text is not UTF-8"
        remedy = Remedy(
            "bookkeeping.change-by-hand-and-skip",
            "Change the sink by hand, its rows included, and skip the DDL with `applier ddl skip --ts … --table …`",
        )
        raise NeedsOperator(message, remedy=remedy, ddl_ts=ddl.commit_ts, query=ascii(ddl.query)) from error


def _touches_text(identity: DdlIdentity) -> str:
    return json.dumps(None if identity.touches is None else sorted(identity.touches))


def _ddl(row: Row[Any]) -> DdlEvent:
    return DdlEvent(
        commit_ts=Ts(int(row.ddl_ts)),
        schema=row.schema_name,
        table=row.table_name,
        query=row.query,
        ddl_type=row.ddl_type,
        time_ms=None if row.time_ms is None else int(row.time_ms),
        session=tuple((name, value) for name, value in json.loads(row.session or "[]")),
    )


def _entry(row: Row[Any]) -> LedgerEntry:
    ddl = _ddl(row)
    return LedgerEntry(
        identity=DdlIdentity(ddl.commit_ts, ddl.name.fold(), _touches(row.touches)),
        ddl=ddl,
        state=DdlState(row.state),
        before=row.before_state,
        began_at=as_datetime(row.began_at),
        ended_at=None if row.ended_at is None else as_datetime(row.ended_at),
        error=row.error,
    )


class PastDdls:
    """The settled DDLs of one replica. Not thread-safe."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._kept: Past | None = None
        self._since = NO_TS

    def forget(self) -> None:
        """Read everything again at the next question."""
        self._kept, self._since = None, NO_TS

    def history(self, connection: Connection, name: FoldedName, ts: Ts, rules: tuple[Target, Naming]) -> TableHistory:
        """Return a table as the statements before a DDL at ``ts`` have changed it. ``rules``: the sink's and upstream's."""
        kept = self._kept
        if kept is None or kept.rules != rules or not may_follow(ts, self._since):
            kept, self._since = Past(*rules), NO_TS
        read = self._ledger.history(connection, self._since)
        upto = min([ts, *(past.ddl.commit_ts for past in read if past.is_open)])
        later = [past for past in read if may_follow(past.ddl.commit_ts, upto)]
        # By ts, so they are the last ones.
        for past in read[: len(read) - len(later)]:
            kept.add(past)
        self._kept, self._since = kept, upto
        return kept.history(name, later)
