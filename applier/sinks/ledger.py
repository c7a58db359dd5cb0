"""The ledger of one replica: every DDL that was begun, done or skipped. It is never pruned.

Keyed by the identity of a DDL (ts, folded name, names touched), so that copies, replays and other wordings collapse and the
pieces of a RENAME chain do not. Like ``bookkeeping.py``: statements inside the caller's transaction.
"""

import json
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from sqlalchemy import Connection, Row

from applier.coordinator.messages import DdlIdentity
from applier.errors import InvariantViolation, NeedsOperator
from applier.events import DdlEvent, FoldedName, TableName
from applier.position import Ts
from applier.sinks.bookkeeping import Bookkeeping, moment
from applier.sinks.port import DdlState, LedgerEntry


@dataclass(frozen=True, slots=True)
class Ledger:
    """The ledger of the replica that ``bookkeeping`` is of."""

    bookkeeping: Bookkeeping

    def read(self, connection: Connection) -> list[LedgerEntry]:
        """Return all entries by ts; those of one ts in the order in which they began."""
        return self._entries(connection, "ledger_read")

    def statements(self, connection: Connection) -> list[DdlEvent]:
        """Return upstream's statements, skipped ones too, by ts."""
        rows = connection.execute(self.bookkeeping.query("ledger_statements"), {"name": self.bookkeeping.name})
        ddls = [
            DdlEvent(commit_ts=Ts(int(ts)), schema=schema, table=table, query=query, ddl_type=kind)
            for ts, schema, table, kind, query in rows
        ]
        return sorted(ddls, key=lambda ddl: ddl.commit_ts)

    def intents(self, connection: Connection) -> list[LedgerEntry]:
        """Return the DDLs that were begun and not ended, in the order in which they have to run."""
        return self._entries(connection, "ledger_intents")

    def intent(self, connection: Connection, identity: DdlIdentity, ddl: DdlEvent, before: str) -> None:
        """Write that the DDL is about to run. ``before`` describes the tables as they are."""
        values = self._values(identity, ddl)
        connection.execute(self.bookkeeping.query("ledger_intent"), values | {"before_state": before})

    def settled(self, connection: Connection, identity: DdlIdentity, ddl: DdlEvent, state: DdlState) -> None:
        """Write a DDL that has no intent: skipped, or done in this very transaction (where DDL is transactional)."""
        values = self._values(identity, ddl)
        connection.execute(self.bookkeeping.query("ledger_settled"), values | {"state": state.value})

    def end(self, connection: Connection, identity: DdlIdentity, state: DdlState) -> None:
        """Turn an intent into done or skipped; InvariantViolation if there is no such intent."""
        values = self._key(identity) | {"state": state.value}
        if connection.execute(self.bookkeeping.query("ledger_end"), values).rowcount != 1:
            message = "a DDL ended that was not begun"
            raise InvariantViolation(message, ddl_ts=identity.ts, table=identity.name)

    def describe(self, connection: Connection, identity: DdlIdentity, before: str) -> None:
        """Write how the tables are, just before the statement is sent again."""
        connection.execute(self.bookkeeping.query("ledger_before"), self._key(identity) | {"before_state": before})

    def refused(self, connection: Connection, identity: DdlIdentity, error: str) -> None:
        """Write that the server has refused the statement, and why; its intent stays, and is not compared with anything."""
        connection.execute(self.bookkeeping.query("ledger_refused"), self._key(identity) | {"error": error})

    def resolve(self, connection: Connection, ts: Ts, name: TableName, state: DdlState | None) -> int:
        """Carry out the operator's word on the intents at ``ts`` of ``name``; return how many there were.

        ``state`` done or skipped ends them; None lets them run again without a comparison.
        """
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
        }

    def _key(self, identity: DdlIdentity) -> dict[str, Any]:
        return {
            "name": self.bookkeeping.name,
            "ddl_ts": self.bookkeeping.number(identity.ts),
            "identity_hash": sha256(json.dumps([*identity.name, _touches_text(identity)]).encode()).hexdigest(),
        }


def _check_text(ddl: DdlEvent) -> None:
    try:
        (ddl.schema + ddl.table + ddl.query).encode()
    except UnicodeEncodeError as error:
        message = "the text of a DDL is not UTF-8 and cannot be kept in the ledger"
        remedy = "Change the sink by hand, its rows included, and skip the DDL with `applier ddl skip --ts … --table …`"
        raise NeedsOperator(message, remedy=remedy, ddl_ts=ddl.commit_ts, query=ascii(ddl.query)) from error


def _touches_text(identity: DdlIdentity) -> str:
    return json.dumps(None if identity.touches is None else sorted(identity.touches))


def _entry(row: Row[Any]) -> LedgerEntry:
    ts = Ts(int(row.ddl_ts))
    ddl = DdlEvent(commit_ts=ts, schema=row.schema_name, table=row.table_name, query=row.query, ddl_type=row.ddl_type)
    names = json.loads(row.touches)
    touches = None if names is None else frozenset(FoldedName(*name) for name in names)
    return LedgerEntry(
        identity=DdlIdentity(ts, ddl.name.fold(), touches),
        ddl=ddl,
        state=DdlState(row.state),
        before=row.before_state,
        began_at=moment(row.began_at),
        ended_at=None if row.ended_at is None else moment(row.ended_at),
        error=row.error,
    )
