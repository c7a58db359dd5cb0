"""What the ledger says about tables, read once: each question after the first reads only what the ledger has got since.

A DDL that is settled stays as it is while the run owns the replica, so it is kept. Those at the ts of the question, whose siblings may
still come, and all from the first one on that is not settled are read again each time. Whatever may change the ledger otherwise (a reload,
an operator between two runs) makes the run settle its intents, and then everything is read anew.
"""

from sqlalchemy import Connection

from applier.ddl.generated_name import Naming
from applier.ddl.table_history import Past, TableHistory
from applier.ddl.target import Target
from applier.model.events import FoldedName
from applier.model.position import NO_TS, Ts
from applier.model.segment import may_follow
from applier.sinks.bookkeeping.ledger import Ledger


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
        """Return what the statements before a DDL at ``ts`` have made of a table. ``rules``: the sink's and upstream's."""
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
