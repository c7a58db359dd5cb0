"""The upstream's present state: schemas, tables with their rows, views; and what DDLs do to it.

The generator needs it to write legal transactions. It is not the oracle: that is a database, which executes the statements itself.
"""

import random
from collections import Counter
from collections.abc import Iterator, Sequence

from applier.demo.simulator.alteration import altered, convert, fill_of
from applier.demo.simulator.column_type import TypeClass, UpstreamType
from applier.demo.simulator.operation import (
    AlterTable,
    Clause,
    CreateSchema,
    CreateTable,
    CreateTableLike,
    CreateView,
    Ddl,
    DropSchema,
    DropTable,
    DropView,
    RenameTable,
    Row,
    RowChange,
    TruncateTable,
)
from applier.demo.simulator.schema import Table, UpstreamColumn
from applier.model.events import TableName, Value

Key = tuple[Value, ...]


def comparable(kind: UpstreamType, value: Value) -> Value:
    """Fold ``value`` as a unique index does: PAD SPACE everywhere, no case under a ``_ci`` collation."""
    if kind.kind is not TypeClass.STRING or not isinstance(value, str):
        return value
    trimmed = value.rstrip(" ")
    return trimmed.casefold() if kind.collation.endswith("_ci") else trimmed


class TableState:
    """A table with its rows, by handle key; every unique index is watched, so that only legal rows get in."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.rows: dict[Key, Row] = {}
        self._copies: Counter[Row] = Counter()
        self._keys: list[Key] = []
        self._place: dict[Key, int] = {}
        self._taken: list[dict[Key, Key]] = [{} for _ in table.unique_indexes]
        self._unique_places = [tuple(table.position[name] for name in index.columns) for index in table.unique_indexes]

    def key_of(self, row: Row) -> Key:
        """Return the identity of ``row``, folded as its index folds; without a key, all of its values."""
        return self._fold(row, self.table.handle_places) if self.table.handle else row

    def _taken_from(self, row: Row) -> Key:
        """Return where ``row`` is kept, once less. Equal rows of a table without a key are numbered."""
        if self.table.handle:
            return self.key_of(row)
        self._copies[row] -= 1
        return (*row, self._copies[row])

    def _put_at(self, row: Row) -> Key:
        """Return where ``row`` is kept, once more."""
        if self.table.handle:
            return self.key_of(row)
        self._copies[row] += 1
        return (*row, self._copies[row] - 1)

    def copies(self, row: Row) -> int:
        """Return how many rows equal ``row`` a table without a key holds."""
        return self._copies[row]

    def _fold(self, row: Row, places: Sequence[int]) -> Key:
        return tuple(comparable(self.table.columns[place].type, row[place]) for place in places)

    def pick(self, rng: random.Random) -> Row | None:
        """Choose a row, None if there is none."""
        return self.rows[self._keys[rng.randrange(len(self._keys))]] if self._keys else None

    def is_free(self, row: Row, leaving: Sequence[Row] = ()) -> bool:
        """Return whether ``row`` collides with no row except those ``leaving``."""
        # A row that leaves in the same transaction makes room: values of a unique index may swap.
        going = {self.key_of(other) for other in leaving}
        for places, taken in zip(self._unique_places, self._taken, strict=True):
            holder = taken.get(self._fold(row, places))
            if holder is not None and holder not in going:
                return False
        return True

    def change(self, changes: Sequence[RowChange]) -> None:
        """Carry out changes of one commit: everything that leaves, then everything that comes."""
        for change in changes:
            if change.before is not None:
                self._remove(change.before)
        for change in changes:
            if change.after is not None:
                self._insert(change.after)

    def _remove(self, row: Row) -> None:
        key = self._taken_from(row)
        del self.rows[key]
        # The last key takes the position of the removed one: pick() needs a list, and a list is slow to delete from.
        place, last = self._place.pop(key), self._keys.pop()
        if last != key:
            self._keys[place], self._place[last] = last, place
        for places, taken in zip(self._unique_places, self._taken, strict=True):
            taken.pop(self._fold(row, places), None)

    def _insert(self, row: Row) -> None:
        key = self._put_at(row)
        if key in self.rows or not self.is_free(row):
            message = f"the generator made a duplicate row in {self.table.name}: {row!r}"
            raise ValueError(message)
        self.rows[key] = row
        self._place[key] = len(self._keys)
        self._keys.append(key)
        for places, taken in zip(self._unique_places, self._taken, strict=True):
            folded = self._fold(row, places)
            if None not in folded:  # NULLs never collide
                taken[folded] = key

    def redefined(self, table: Table, sources: Sequence[int | UpstreamColumn], types: Sequence[UpstreamType | None]) -> "TableState":
        """Return the state under another definition: each new column comes from an old position, or is filled with a default."""
        state = TableState(table)
        for row in self.rows.values():
            values = []
            for source, old, column in zip(sources, types, table.columns, strict=True):
                values.append(convert(row[source], old, column.type) if isinstance(source, int) and old else fill_of(column))
            state._insert(tuple(values))
        return state


class Catalogue:
    """All schemas, tables and views."""

    def __init__(self) -> None:
        self.schemas: set[str] = set()
        self.tables: dict[TableName, TableState] = {}
        self.views: dict[TableName, CreateView] = {}

    def __iter__(self) -> Iterator[TableState]:
        return iter(self.tables.values())

    def change(self, changes: Sequence[RowChange]) -> None:
        """Carry out the row changes of one commit."""
        by_table: dict[TableName, list[RowChange]] = {}
        for change in changes:
            by_table.setdefault(change.table.name, []).append(change)
        for name, some in by_table.items():
            self.tables[name].change(some)

    def execute(self, ddl: Ddl) -> None:  # noqa: C901 - one case per kind of DDL
        """Carry out a DDL; KeyError where a database would not find a name."""
        match ddl:
            case CreateSchema(schema):
                self.schemas.add(schema)
            case DropSchema(schema):
                self.schemas.remove(schema)
                self.tables = {name: state for name, state in self.tables.items() if name.schema != schema}
                self.views = {name: view for name, view in self.views.items() if name.schema != schema}
            case CreateTable(table):
                self.tables[table.name] = TableState(table)
            case CreateTableLike(name, model):
                self.tables[name] = TableState(self.tables[model].table.renamed(name))
            case DropTable(name):
                del self.tables[name]
            case TruncateTable(name):
                self.tables[name] = TableState(self.tables[name].table)
            case RenameTable(old, new):
                state = self.tables.pop(old)
                state.table = state.table.renamed(new)
                self.tables[new] = state
            case CreateView(name, _, _):
                self.views[name] = ddl
            case DropView(name):
                del self.views[name]
            case AlterTable(before, clauses):
                self._alter(before, clauses)

    def _alter(self, before: Table, clauses: Sequence[Clause]) -> None:
        table, origin = altered(before, clauses)
        sources = [before.position[source] if source else column for source, column in zip(origin, table.columns, strict=True)]
        types = [before.column(source).type if source else None for source in origin]
        self.tables[table.name] = self.tables[before.name].redefined(table, sources, types)
