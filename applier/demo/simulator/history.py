"""A seeded upstream history: steps in commit_ts order, each with its transactions' row changes and its DDLs.

Each iteration generates the history again: memory holds the live rows only.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass, field

from applier.demo.simulator.catalogue import Catalogue, TableState
from applier.demo.simulator.operation import CreateSchema, CreateTable, Ddl, RowChange, UpstreamStep
from applier.demo.simulator.schema_evolution import SchemaEvolution, SimulatedDdlKind
from applier.demo.simulator.table_family import FAMILY_TABLES, LAB_SCHEMA, USUAL_FAMILIES, TableFamily
from applier.demo.simulator.workload import FreeWork, KeylessWork, MoneyWork, OrderWork, Transaction, total_of
from applier.model.events import TableName
from applier.model.position import Ts
from applier.sources.ticdc.tso import LOGICAL_BITS

_START_MS = 1_764_000_000_000  # 2025-11-24: timestamps far above 2^53
_FREE_FAMILIES = (TableFamily.SEATS, TableFamily.WORDS, TableFamily.TYPES, TableFamily.KEYLESS, TableFamily.PARTITIONED)
_LAB_TABLES_AT_START = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryOptions:
    """What happens, and how much of it.

    ``transactions``: steps after the tables were made. ``ddl_share``: share of steps with DDLs. ``live_rows``: rows that a table
    holds at most. ``gap_ms``: greatest time between two commits. ``shared_ts_share``: how often a DDL has rows at its own ts.
    ``keyless_twins``: one transaction may insert equal rows into a table without a key, or delete several of them.
    """

    transactions: int = 60
    families: frozenset[TableFamily] = USUAL_FAMILIES
    ddl_kinds: frozenset[SimulatedDdlKind] = frozenset(SimulatedDdlKind)
    ddl_share: float = 0.15
    shared_ts_share: float = 0.4
    rows_per_transaction: int = 6
    live_rows: int = 200
    accounts: int = 10
    gap_ms: int = 1500
    start_ms: int = _START_MS
    keyless_twins: bool = False

    def __post_init__(self) -> None:
        """Refuse options under which nothing can ever happen."""
        if not self.families:
            message = "a history needs a family of tables"
            raise ValueError(message)


@dataclass(frozen=True, slots=True)
class History:
    """What happened upstream. Equal seeds and options give equal histories."""

    seed: int
    options: HistoryOptions = field(default_factory=HistoryOptions)

    def __iter__(self) -> Iterator[UpstreamStep]:
        """Yield the steps in commit_ts order."""
        return _Writer(self).steps()

    def steps(self) -> Iterator[UpstreamStep]:
        """Yield the steps in commit_ts order."""
        return iter(self)

    def last_ts(self) -> Ts:
        """Return the greatest commit_ts."""
        return max(step.ts for step in self)

    def catalogue(self, upto_ts: Ts | None = None) -> Catalogue:
        """Return the upstream as it was after everything at ``upto_ts`` (None: at the end)."""
        catalogue = Catalogue()
        for step in self:
            if upto_ts is not None and step.ts > upto_ts:
                break
            catalogue.change(step.rows)
            for ddl in step.ddls:
                catalogue.execute(ddl)
        return catalogue

    def money_total(self) -> int:
        """Return the constant total of all balances, once they were funded."""
        return total_of(self.options.accounts)


class _Writer:
    """One run of the generator."""

    def __init__(self, history: History) -> None:
        self._options = history.options
        self._rng = random.Random(f"history {history.seed}")
        self._catalogue = Catalogue()
        self._evolution = SchemaEvolution(self._rng, history.options.ddl_kinds)
        self._free = FreeWork(self._rng, history.options.live_rows)
        self._keyless = KeylessWork(self._rng, history.options.live_rows, history.options.keyless_twins)
        self._money = MoneyWork(self._rng, history.options.accounts)
        self._orders = OrderWork(self._rng, history.options.live_rows)
        self._ts = history.options.start_ms << LOGICAL_BITS
        self._steps = 0

    def steps(self) -> Iterator[UpstreamStep]:
        yield from self._founding()
        while self._steps < self._options.transactions:
            step = self._random_step()
            if step.rows or step.ddls:
                self._steps += 1
                yield step

    def _next_ts(self) -> Ts:
        """Advance the clock: mostly by milliseconds, now and then by the logical counter only."""
        if self._rng.random() < 0.2:
            self._ts += self._rng.randint(1, 3)
        else:
            physical = (self._ts >> LOGICAL_BITS) + self._rng.randint(1, self._options.gap_ms)
            self._ts = physical << LOGICAL_BITS | self._rng.randint(0, 60)
        return Ts(self._ts)

    def _founding(self) -> Iterator[UpstreamStep]:
        """Make the schemas and tables, and give money to the accounts in one transaction."""
        families = [family for family in TableFamily if family in self._options.families]
        tables = [table for family in families for table in FAMILY_TABLES[family]]
        if TableFamily.LAB in families:
            names = ("t1", "t2", "t3")[:_LAB_TABLES_AT_START]
            tables += [self._evolution.new_table(TableName(LAB_SCHEMA, name)) for name in names]
        for schema in dict.fromkeys(table.name.schema for table in tables):
            yield self._ddl_step(CreateSchema(schema))
        for table in tables:
            yield self._ddl_step(CreateTable(table))
        if TableFamily.MONEY in families:
            work = Transaction(self._catalogue)
            self._money.fund(work)
            yield UpstreamStep(self._next_ts(), tuple(work.changes), ())

    def _ddl_step(self, ddl: Ddl) -> UpstreamStep:
        self._catalogue.execute(ddl)
        return UpstreamStep(self._next_ts(), (), (ddl,))

    def _random_step(self) -> UpstreamStep:
        """Write one commit_ts: rows, or DDLs, or both."""
        rng = self._rng
        rows: tuple[RowChange, ...] = ()
        ddls: tuple[Ddl, ...] = ()
        evolves = bool(self._options.ddl_kinds) and rng.random() < self._options.ddl_share
        if not evolves or rng.random() < self._options.shared_ts_share:
            rows = self._transaction()
        if evolves:
            ddls = self._evolution.next(self._catalogue)
            for ddl in ddls:
                self._catalogue.execute(ddl)
        return UpstreamStep(self._next_ts(), rows, ddls)

    def _transaction(self) -> tuple[RowChange, ...]:
        """Write one to three transactions that share a commit_ts."""
        work = Transaction(self._catalogue)
        for _ in range(self._rng.choice((1, 1, 1, 2, 3))):
            family = self._rng.choice([family for family in TableFamily if family in self._options.families])
            if family is TableFamily.MONEY:
                self._money.change(work)
            elif family is TableFamily.ORDERS:
                self._orders.change(work)
            else:
                self._change_freely(work, family)
        return tuple(work.changes)

    def _change_freely(self, work: Transaction, family: TableFamily) -> None:
        states = [state for state in self._catalogue if _family_of(state) is family]
        if states:
            chosen = self._rng.sample(states, min(len(states), self._rng.choice((1, 2))))
            for state in chosen:
                kind = self._free if state.table.handle else self._keyless
                kind.change(work, state, self._rng.randint(1, self._options.rows_per_transaction))


_TABLE_FAMILIES = {table.name: family for family in _FREE_FAMILIES for table in FAMILY_TABLES[family]}


def _family_of(state: TableState) -> TableFamily | None:
    name = state.table.name
    return TableFamily.LAB if name.schema.startswith(LAB_SCHEMA) else _TABLE_FAMILIES.get(name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Volume:
    """Counts of a history. ``middle_ts``: where half of its steps are done."""

    steps: int
    transactions: int
    rows: int
    ddls: int
    middle_ts: Ts
    last_ts: Ts


def volume_of(history: History) -> Volume:
    """Count what happens upstream."""
    steps = [(step.ts, len(step.rows), len(step.ddls)) for step in history]
    return Volume(
        steps=len(steps),
        transactions=sum(rows > 0 for _, rows, _ in steps),
        rows=sum(rows for _, rows, _ in steps),
        ddls=sum(ddls for _, _, ddls in steps),
        middle_ts=steps[len(steps) // 2][0],
        last_ts=steps[-1][0],
    )
