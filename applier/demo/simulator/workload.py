"""Seeded transactions: what applications do to the simulated upstream's rows.

Tables without any key are changed row by row: rows that equal one another come, change and go.
"""

import random
from dataclasses import dataclass, field
from decimal import Decimal

from applier.demo.simulator.catalogue import Catalogue, Key, TableState
from applier.demo.simulator.operation import Row, RowChange
from applier.demo.simulator.table_factory import random_value
from applier.demo.simulator.table_family import ACCOUNTS, ORDER_ITEMS, ORDERS, TRANSFERS, WALLETS
from applier.model.events import TableName, Value

# A table whose key has few values fills up, so a free row is not always found.
_TRIES = 12
_OPENING_BALANCE = 1000


@dataclass(slots=True)
class Transaction:
    """The changes of one commit_ts so far. A key is used at most once as what leaves and once as what comes."""

    catalogue: Catalogue
    changes: list[RowChange] = field(default_factory=list)
    _leaving: set[tuple[TableName, Key]] = field(default_factory=set)
    _coming: set[tuple[TableName, Key]] = field(default_factory=set)

    def is_untouched(self, state: TableState, row: Row) -> bool:
        """Return whether this commit has not changed ``row`` yet."""
        place = (state.table.name, state.key_of(row))
        return place not in self._leaving and place not in self._coming

    def put(self, state: TableState, before: Row | None, after: Row | None) -> None:
        """Record one change and carry it out."""
        self.put_all(state, [(before, after)])

    def put_all(self, state: TableState, pairs: list[tuple[Row | None, Row | None]]) -> None:
        """Record several changes that only make sense together (a swap), and carry them out."""
        changes = [RowChange(state.table, before, after) for before, after in pairs]
        for change in changes:
            if change.before is not None:
                self._leaving.add((state.table.name, state.key_of(change.before)))
            if change.after is not None:
                self._coming.add((state.table.name, state.key_of(change.after)))
        state.change(changes)
        self.changes += changes


def row_of(rng: random.Random, state: TableState, known: dict[str, Value]) -> Row:
    """Make a row: ``known`` columns as given, the others at random."""
    drawn = tuple(known[column.name] if column.name in known else random_value(rng, column) for column in state.table.columns)
    return state.table.completed(drawn)


def with_values(state: TableState, row: Row, changed: dict[str, Value]) -> Row:
    """Return ``row`` with some columns changed."""
    return state.table.completed(tuple(changed.get(column.name, value) for column, value in zip(state.table.columns, row, strict=True)))


def value_in(state: TableState, row: Row, name: str) -> Value:
    """Return one column of ``row``."""
    return row[state.table.position[name]]


@dataclass(slots=True)
class FreeWork:
    """Changes without a meaning: inserts, updates, deletes, key changes, swaps of unique values, rotations of keys."""

    rng: random.Random
    live_rows: int

    def change(self, work: Transaction, state: TableState, count: int) -> None:
        """Make up to ``count`` changes in one table."""
        for _ in range(count):
            crowded = len(state.rows) >= self.live_rows
            choice = self.rng.random()
            if choice < 0.4 and not crowded:
                self._insert(work, state)
            elif choice < 0.65:
                self._update(work, state)
            elif choice < (0.95 if crowded else 0.78):
                self._delete(work, state)
            elif choice < 0.88:
                self._move_key(work, state)
            else:
                self._swap(work, state)

    def _insert(self, work: Transaction, state: TableState) -> None:
        for _ in range(_TRIES):
            row = row_of(self.rng, state, {})
            if state.is_free(row) and work.is_untouched(state, row):
                work.put(state, None, row)
                return

    def _pick(self, work: Transaction, state: TableState) -> Row | None:
        row = state.pick(self.rng)
        return row if row is not None and work.is_untouched(state, row) else None

    def _update(self, work: Transaction, state: TableState) -> None:
        row = self._pick(work, state)
        free = [column for place, column in enumerate(state.table.columns) if place not in state.table.handle_places]
        if row is None or not free:
            return
        chosen = self.rng.sample(free, self.rng.randint(1, len(free)))
        after = with_values(state, row, {column.name: random_value(self.rng, column) for column in chosen})
        if after != row and state.is_free(after, [row]):
            work.put(state, row, after)

    def _delete(self, work: Transaction, state: TableState) -> None:
        row = self._pick(work, state)
        if row is not None:
            work.put(state, row, None)

    def _move_key(self, work: Transaction, state: TableState) -> None:
        """Change the handle key; under a ``_ci`` collation sometimes only its spelling."""
        row = self._pick(work, state)
        if row is None:
            return
        places = state.table.handle_places
        changed = {state.table.columns[place].name: random_value(self.rng, state.table.columns[place]) for place in places}
        after = with_values(state, row, changed)
        if self.rng.random() < 0.5:
            after = tuple(self._respelled(state, place, value) for place, value in enumerate(row))
        same = state.key_of(after) == state.key_of(row)
        if after != row and state.is_free(after, [row]) and (same or work.is_untouched(state, after)):
            work.put(state, row, after)

    @staticmethod
    def _respelled(state: TableState, place: int, value: Value) -> Value:
        folds = state.table.columns[place].type.collation.endswith("_ci") and place in state.table.handle_places
        return value.swapcase() if folds and isinstance(value, str) else value

    def _swap(self, work: Transaction, state: TableState) -> None:
        """Rotate the columns of one unique index among two or three rows: keys too."""
        free = [index for index in state.table.unique_indexes if not state.table.is_generated(index)]
        if not free:
            return
        index = self.rng.choice(free)
        rows: list[Row] = []
        for _ in range(self.rng.choice((2, 2, 3))):
            row = self._pick(work, state)
            if row is not None and row not in rows:
                rows.append(row)
        if len(rows) < 2:
            return
        places = [state.table.position[name] for name in index.columns]
        after = [
            state.table.completed(tuple(other[place] if place in places else value for place, value in enumerate(row)))
            for row, other in zip(rows, rows[1:] + rows[:1], strict=True)
        ]
        if len({state.key_of(row) for row in after}) == len(rows) and all(state.is_free(row, rows) for row in after):
            pairs: list[tuple[Row | None, Row | None]] = list(zip(rows, after, strict=True))
            work.put_all(state, pairs)


def total_of(accounts: int) -> int:
    """Return the constant total of ``accounts`` accounts and as many wallets."""
    return 2 * accounts * _OPENING_BALANCE


@dataclass(slots=True)
class MoneyWork:
    """Transfers between accounts and wallets: the total is the same after each commit."""

    rng: random.Random
    accounts: int
    _next_transfer: int = 1
    _opened: int = 0

    def fund(self, work: Transaction) -> None:
        """Open all accounts and wallets with their money, in one transaction."""
        for name in (ACCOUNTS, WALLETS):
            for _ in range(self.accounts):
                self._open(work, name, _OPENING_BALANCE)

    def change(self, work: Transaction) -> None:
        """Transfer money once, or open an empty account, or close one after moving its money away."""
        choice = self.rng.random()
        if choice < 0.1:
            self._open(work, self.rng.choice((ACCOUNTS, WALLETS)), 0)
        else:
            self._transfer(work, closes=choice > 0.9)

    def _open(self, work: Transaction, name: TableName, balance: int) -> None:
        self._opened += 1
        state = work.catalogue.tables[name]
        known: dict[str, Value] = {"id": self._opened, "owner": f"owner-{self._opened}", "balance": balance}
        work.put(state, None, row_of(self.rng, state, known))

    def _transfer(self, work: Transaction, *, closes: bool) -> None:
        picks = []
        for _ in range(2):
            state = work.catalogue.tables[self.rng.choice((ACCOUNTS, WALLETS))]
            row = state.pick(self.rng)
            if row is None or not work.is_untouched(state, row):
                return
            picks.append((state, row))
        (source, giver), (target, taker) = picks
        if source is target and giver == taker:
            return
        amount = int(str(value_in(source, giver, "balance")))
        # Some accounts stay, or there would be nothing to transfer.
        closes = closes and len(source.rows) > 2
        amount = amount if closes else self.rng.randint(0, max(amount, 1))
        self._move(work, (source, giver), -amount, closes=closes)
        self._move(work, (target, taker), amount, closes=False)
        self._note(work, str(value_in(source, giver, "owner")), str(value_in(target, taker, "owner")), amount)

    @staticmethod
    def _move(work: Transaction, place: tuple[TableState, Row], amount: int, *, closes: bool) -> None:
        state, row = place
        after = with_values(state, row, {"balance": int(str(value_in(state, row, "balance"))) + amount})
        if closes:
            work.put(state, row, None)
        elif after != row:
            work.put(state, row, after)

    def _note(self, work: Transaction, source: str, target: str, amount: int) -> None:
        state = work.catalogue.tables[TRANSFERS]
        known: dict[str, Value] = {"id": self._next_transfer, "source": source, "target": target, "amount": f"{amount}.00"}
        self._next_transfer += 1
        work.put(state, None, row_of(self.rng, state, known))


@dataclass(slots=True)
class OrderWork:
    """Orders and their items: written, paid, changed and cancelled together."""

    rng: random.Random
    live_rows: int
    _next_order: int = 1

    def change(self, work: Transaction) -> None:
        """Place an order, change one, or cancel one with its items."""
        orders = work.catalogue.tables[ORDERS]
        row = orders.pick(self.rng)
        crowded = len(orders.rows) >= self.live_rows
        if row is None or (not crowded and self.rng.random() < 0.5):
            self._place(work)
        elif work.is_untouched(orders, row):
            if self.rng.random() < (0.8 if crowded else 0.3):
                self._cancel(work, row)
            else:
                self._progress(work, row)

    def _place(self, work: Transaction) -> None:
        orders, items = work.catalogue.tables[ORDERS], work.catalogue.tables[ORDER_ITEMS]
        number, total = self._next_order, Decimal(0)
        self._next_order += 1
        for line in range(1, self.rng.randint(1, 4) + 1):
            quantity, cents = self.rng.randint(1, 9), self.rng.randint(1, 99999)
            price = Decimal(cents) / 100
            total += price * quantity
            known: dict[str, Value] = {"order_id": number, "line": line, "sku": f"sku-{self.rng.randint(1, 50)}", "quantity": quantity}
            work.put(items, None, row_of(self.rng, items, known | {"price": f"{price:.2f}"}))
        known = {"id": number, "account": self.rng.randint(1, 50), "status": 1, "total": f"{total:.2f}"}
        work.put(orders, None, row_of(self.rng, orders, known))

    def _items_of(self, work: Transaction, order: Row) -> list[Row]:
        orders, items = work.catalogue.tables[ORDERS], work.catalogue.tables[ORDER_ITEMS]
        number = value_in(orders, order, "id")
        found = (items.rows.get((number, line)) for line in range(1, 5))
        return [row for row in found if row is not None]

    def _cancel(self, work: Transaction, order: Row) -> None:
        for item in self._items_of(work, order):
            work.put(work.catalogue.tables[ORDER_ITEMS], item, None)
        work.put(work.catalogue.tables[ORDERS], order, None)

    def _progress(self, work: Transaction, order: Row) -> None:
        orders, items = work.catalogue.tables[ORDERS], work.catalogue.tables[ORDER_ITEMS]
        status = int(str(value_in(orders, order, "status"))) % 4 + 1
        for item in self._items_of(work, order)[:1]:
            after = with_values(items, item, {"quantity": int(str(value_in(items, item, "quantity"))) + 1})
            work.put(items, item, after)
        work.put(orders, order, with_values(orders, order, {"status": status, "note": f"now {status}"}))


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
