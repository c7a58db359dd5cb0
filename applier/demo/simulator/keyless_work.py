"""Changes of tables without any key: rows that equal one another come, change and go one by one."""

import random
from dataclasses import dataclass

from applier.demo.simulator.catalogue import TableState
from applier.demo.simulator.operation import Row
from applier.demo.simulator.random_value import random_value
from applier.demo.simulator.workload import Transaction, row_of, with_values

_COPY_SHARE = 0.5
_TWIN_SHARE = 0.3


@dataclass(frozen=True, slots=True)
class KeylessWork:
    """Inserts, updates and deletes. A commit changes a row once; ``twins``: it may insert, change or delete two equal rows."""

    rng: random.Random
    live_rows: int
    twins: bool

    def change(self, work: Transaction, state: TableState, count: int) -> None:
        """Make up to ``count`` changes in one table."""
        for _ in range(count):
            choice = self.rng.random()
            row = state.pick(self.rng)
            if row is None or (choice < 0.55 and len(state.rows) < self.live_rows):
                self._insert(work, state, row)
            elif not work.is_untouched(state, row):
                continue
            elif choice < 0.75:
                self._update(work, state, row)
            else:
                self._put(work, state, (row, None), most=state.copies(row))

    def _insert(self, work: Transaction, state: TableState, like: Row | None) -> None:
        copied = like if like is not None and self.rng.random() < _COPY_SHARE else row_of(self.rng, state, {})
        if work.is_untouched(state, copied):
            self._put(work, state, (None, copied), most=2)

    def _update(self, work: Transaction, state: TableState, row: Row) -> None:
        # Two equal rows may become different ones: the dispatcher ``columns`` sends these two updates to two partitions.
        again = self.twins and state.copies(row) > 1 and self.rng.random() < _TWIN_SHARE
        for _ in range(1 + again):
            column = self.rng.choice(state.table.columns)
            after = with_values(state, row, {column.name: random_value(self.rng, column)})
            if after != row and work.is_untouched(state, after):
                work.put(state, row, after)

    def _put(self, work: Transaction, state: TableState, pair: tuple[Row | None, Row | None], *, most: int) -> None:
        """Make a change once, or, as a twin, twice."""
        again = self.twins and most > 1 and self.rng.random() < _TWIN_SHARE
        for _ in range(1 + again):
            work.put(state, *pair)
