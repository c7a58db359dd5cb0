"""Which tables' rows may be written ahead of W, and which rows of them must wait.

A table qualifies if the sink can take its rows one by one, in any order of keys: the caller answers that from the sink's catalogue
(``AskKeys``). Rows that came in another form than the sink's key (stale flags), placeholders, and rows of tables that a write ahead has
refused make their stream wait: what is behind them is not passed, so ``applied_ts`` never lies about a row.
"""

from collections.abc import Iterable, Mapping

from applier.coordinator.step import KeyAnswer
from applier.model.errors import NeedsOperator
from applier.model.events import FoldedName
from applier.model.position import NO_TS, Stream, Ts
from applier.model.range_report import TableRows
from applier.model.segment import has_reached, is_beyond

Form = tuple[tuple[str, ...], tuple[str, ...]]


class RowTables:
    """What is known of tables. ``stored``: those that are ahead by the sink's progress, ``top_ts``: the greatest applied_ts there."""

    def __init__(self, stored: Iterable[FoldedName], top_ts: Ts, *, by_table: bool) -> None:
        self._keys: dict[FoldedName, tuple[str, ...] | None] = {}
        self._forms: dict[FoldedName, Form] = {}
        self._blocked: set[FoldedName] = set()
        self._homes: dict[FoldedName, Stream] = {}
        self._stored, self._start_ts, self._by_table = set(stored), top_ts, by_table
        # Up to where a table's rows may lie in the sink ahead of the checkpoint, and up to where they lie behind applied_ts without it.
        self._written = dict.fromkeys(self._stored, top_ts)
        self._late: dict[FoldedName, Ts] = {}

    def knows(self, name: FoldedName) -> bool:
        """Whether the caller has answered for a table."""
        return name in self._keys

    def learn(self, keys: Mapping[FoldedName, KeyAnswer]) -> None:
        """Take the answer: the key of each table that qualifies, None for one that does not."""
        for name, key in keys.items():
            self._keys[name] = key
            if name not in self._stored:
                # Its rows below applied_ts of an earlier run may be missing: the settings, or the sink's indexes, were others.
                self._late[name] = max(self._late.get(name, NO_TS), self._start_ts)

    def is_ahead(self, name: FoldedName, checkpoint_ts: Ts) -> bool:
        """Whether a table's rows up to their stream's applied_ts are in the sink."""
        return self._keys.get(name) is not None and has_reached(checkpoint_ts, self._late.get(name, NO_TS))

    def ahead(self, checkpoint_ts: Ts) -> frozenset[FoldedName]:
        """Name all tables that are ahead."""
        return frozenset(name for name in self._keys if self.is_ahead(name, checkpoint_ts))

    def changes(self, names: Iterable[FoldedName], checkpoint_ts: Ts) -> dict[FoldedName, bool]:
        """Return what must be stored of these tables, because it differs from what is stored."""
        found = {name: self.is_ahead(name, checkpoint_ts) for name in names}
        return {name: is_ahead for name, is_ahead in found.items() if is_ahead is not (name in self._stored)}

    def must_wait(self, rows: TableRows) -> bool:
        """Whether rows of a table that is ahead stop their stream."""
        name = rows.name.fold()
        form = rows.handle_key, rows.bytes_key
        return (
            name in self._blocked
            or bool(rows.placeholders)
            or rows.handle_key != self._keys[name]
            or self._forms.setdefault(name, form) != form
        )

    def check_home(self, rows: TableRows) -> None:
        """Check that a table comes from one stream, where the dispatcher says so. NeedsOperator."""
        name = rows.name.fold()
        if not self._by_table or rows.stream is None:
            return
        home = self._homes.setdefault(name, rows.stream)
        if home != rows.stream:
            raise NeedsOperator(
                "rows of one table come in two partitions, although the declared dispatcher is table",
                remedy="Set source.dispatcher as the changefeed has it; for any but table and index-value, "
                'set sink.consistency = "transaction"',
                kind="dispatcher",
                table=str(rows.name),
                topic=rows.stream.topic,
                partition=rows.stream.partition,
                offset=rows.first_offset,
                commit_ts=rows.min_ts,
                other_partition=str(home),
            )

    def block(self, name: FoldedName) -> None:
        """Let a table's rows wait for W from now on: written ahead, they were refused."""
        self._blocked.add(name)

    def written(self, names: Iterable[FoldedName], upto_ts: Ts, changes: Mapping[FoldedName, bool]) -> None:
        """Know rows of these tables as durable up to a ts, and ``changes`` as stored."""
        for name in names:
            self._written[name] = max(self._written.get(name, NO_TS), upto_ts)
        for name, is_ahead in changes.items():
            (self._stored.add if is_ahead else self._stored.discard)(name)

    def passed(self, upto_ts: Ts, checkpoint_ts: Ts) -> None:
        """Extend the wait of tables to ``upto_ts``: streams may have passed rows of them."""
        for name in [name for name in self._late if not self.is_ahead(name, checkpoint_ts)]:
            self._late[name] = max(self._late[name], upto_ts)

    def moved(self) -> None:
        """Record that partitions have changed: a table may come from another stream than before."""
        self._homes.clear()

    def was_overtaken(self, touches: frozenset[FoldedName] | None, ts: Ts) -> bool:
        """Whether rows above ``ts`` were written of a table that a DDL at ``ts`` touches."""
        return any(is_beyond(upto, ts) for name, upto in self._written.items() if touches is None or name.is_covered(touches))

    def changed(self, touches: frozenset[FoldedName] | None, top_ts: Ts) -> None:
        """Ask again for tables that a DDL has changed. What they hold below ``top_ts``, the greatest applied_ts, may have waited so far."""
        for name in [name for name in self._keys if touches is None or name.is_covered(touches)]:
            del self._keys[name]
            self._forms.pop(name, None)
            self._blocked.discard(name)
            self._late[name] = max(self._late.get(name, NO_TS), top_ts)
