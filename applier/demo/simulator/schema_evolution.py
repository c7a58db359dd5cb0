"""Seeded DDLs: how the schema of the simulated upstream changes.

Tables of the lab may change in any way; the others keep their meaning and only gain and lose extra columns and indexes.
"""

import random
from collections.abc import Callable, Collection, Sequence
from enum import StrEnum

from applier.demo.simulator.alter_clauses import AlterClauses
from applier.demo.simulator.catalogue import Catalogue, TableState
from applier.demo.simulator.operation import (
    CreateSchema,
    CreateTable,
    CreateTableLike,
    CreateView,
    Ddl,
    DropSchema,
    DropTable,
    DropView,
    RenameTable,
    TruncateTable,
)
from applier.demo.simulator.schema import Table
from applier.demo.simulator.table_factory import TableFactory
from applier.demo.simulator.table_family import LAB_SCHEMA, ORDERS
from applier.model.events import TableName

LAB_NAMES = ("t1", "t2", "t3", "T4", "t 5", "t`6")


class SimulatedDdlKind(StrEnum):
    """What a DDL step of the history does."""

    CREATE_TABLE = "create_table"
    CREATE_TABLES = "create_tables"
    CREATE_LIKE = "create_like"
    DROP_TABLE = "drop_table"
    RECREATE_TABLE = "recreate_table"
    """DROP and CREATE of one name, soon after one another, with other columns."""
    TRUNCATE_TABLE = "truncate_table"
    RENAME_TABLE = "rename_table"
    RENAME_CHAIN = "rename_chain"
    """a -> tmp, b -> a, tmp -> b at one ts."""
    MOVE_TABLE = "move_table"
    """A rename into another schema."""
    SCHEMA = "schema"
    VIEW = "view"
    ALTER = "alter"
    FOREIGN_KEY = "foreign_key"
    """ADD FOREIGN KEY without a name, and DROP FOREIGN KEY by the name that upstream gave."""
    EXPRESSION_INDEX = "expression_index"
    """An index of an expression without a name, and DROP INDEX by the name that upstream gave."""
    ALTER_MANY = "alter_many"
    """Several clauses in one statement: a multi-schema change."""


# Alterations are the everyday DDLs; what they leave behind (indexes, extra columns) is the material of the next ones.
_WEIGHTS = {
    SimulatedDdlKind.ALTER: 8,
    SimulatedDdlKind.ALTER_MANY: 3,
    SimulatedDdlKind.FOREIGN_KEY: 2,
}
_LAB_SHARE = 0.7
"""How often an ALTER is of a table of the lab, whose columns later DDLs may change."""


class SchemaEvolution:
    """Chooses DDLs that are legal in the catalogue's present state; the caller executes them."""

    def __init__(self, rng: random.Random, kinds: Collection[SimulatedDdlKind]) -> None:
        self._rng = rng
        self._kinds = sorted(kinds)
        self._factory = TableFactory(rng)
        self._clauses = AlterClauses(self._factory)
        self._pending: list[Ddl] = []

    def next(self, catalogue: Catalogue) -> tuple[Ddl, ...]:
        """Return the DDLs of one commit_ts, in their order; () if the chosen kind is not possible now."""
        if self._pending:
            return (self._pending.pop(),)
        kind = self._rng.choices(self._kinds, [_WEIGHTS.get(kind, 1) for kind in self._kinds])[0]
        return tuple(self._makers()[kind](catalogue))

    def _makers(self) -> dict[SimulatedDdlKind, Callable[[Catalogue], list[Ddl]]]:
        return {
            SimulatedDdlKind.CREATE_TABLE: self._create,
            SimulatedDdlKind.CREATE_TABLES: self._create_batch,
            SimulatedDdlKind.CREATE_LIKE: self._like,
            SimulatedDdlKind.DROP_TABLE: self._drop,
            SimulatedDdlKind.RECREATE_TABLE: self._recreate,
            SimulatedDdlKind.TRUNCATE_TABLE: self._truncate,
            SimulatedDdlKind.RENAME_TABLE: self._rename,
            SimulatedDdlKind.RENAME_CHAIN: self._chain,
            SimulatedDdlKind.MOVE_TABLE: self._move,
            SimulatedDdlKind.SCHEMA: self._schema,
            SimulatedDdlKind.VIEW: self._view,
            SimulatedDdlKind.FOREIGN_KEY: self._foreign_key,
            SimulatedDdlKind.EXPRESSION_INDEX: self._expression_index,
            SimulatedDdlKind.ALTER: self._alter,
            SimulatedDdlKind.ALTER_MANY: self._alter_many,
        }

    def new_table(self, name: TableName) -> Table:
        """Define a table with some columns of any kind, a key, and perhaps a unique index."""
        return self._factory.new_table(name)

    # Tables

    def _lab(self, catalogue: Catalogue) -> list[TableState]:
        return [state for state in catalogue if state.table.name.schema.startswith(LAB_SCHEMA)]

    def _free_names(self, catalogue: Catalogue, schema: str = LAB_SCHEMA) -> list[TableName]:
        if schema not in catalogue.schemas:  # without the lab's family there is no lab
            return []
        # Tables and views share one namespace, and TiDB ignores the case of both.
        taken = {(name.schema, name.table.casefold()) for name in [*catalogue.tables, *catalogue.views]}
        return [TableName(schema, name) for name in LAB_NAMES if (schema, name.casefold()) not in taken]

    def _create(self, catalogue: Catalogue) -> list[Ddl]:
        return [CreateTable(self._factory.new_table(name)) for name in self._free_names(catalogue)[:1]]

    def _create_batch(self, catalogue: Catalogue) -> list[Ddl]:
        names = self._free_names(catalogue)[:2]
        return [CreateTable(self._factory.new_table(name), batch=True) for name in names] if len(names) == 2 else []

    def _like(self, catalogue: Catalogue) -> list[Ddl]:
        # The lab changes its tables in any way, and keys of partitioned ones may not change so.
        models, names = [state.table.name for state in catalogue if not state.table.partitions], self._free_names(catalogue)
        return [CreateTableLike(self._rng.choice(names), self._rng.choice(models))] if models and names else []

    def _pick_lab(self, catalogue: Catalogue, count: int = 1) -> list[TableName]:
        states = self._lab(catalogue)
        return [state.table.name for state in self._rng.sample(states, count)] if len(states) >= count else []

    def _drop(self, catalogue: Catalogue) -> list[Ddl]:
        return [DropTable(name) for name in self._pick_lab(catalogue)]

    def _recreate(self, catalogue: Catalogue) -> list[Ddl]:
        names = self._pick_lab(catalogue)
        # Not at the same ts: the second half comes with the next DDL of the history.
        self._pending += [CreateTable(self._factory.new_table(name)) for name in names]
        return [DropTable(name) for name in names]

    def _truncate(self, catalogue: Catalogue) -> list[Ddl]:
        return [TruncateTable(name) for name in self._pick_lab(catalogue)]

    def _rename(self, catalogue: Catalogue) -> list[Ddl]:
        names = self._free_names(catalogue)
        return [RenameTable(old, self._rng.choice(names)) for old in self._pick_lab(catalogue) if names and old.schema == LAB_SCHEMA]

    def _chain(self, catalogue: Catalogue) -> list[Ddl]:
        states = [state for state in self._lab(catalogue) if state.table.name.schema == LAB_SCHEMA]
        if len(states) < 2:
            return []
        a, b = (state.table.name for state in self._rng.sample(states, 2))
        spare = TableName(LAB_SCHEMA, "swap_tmp")
        return [RenameTable(a, spare), RenameTable(b, a), RenameTable(spare, b)]

    def _move(self, catalogue: Catalogue) -> list[Ddl]:
        others = sorted(schema for schema in catalogue.schemas if schema.startswith(LAB_SCHEMA) and schema != LAB_SCHEMA)
        for old in self._pick_lab(catalogue):
            target = LAB_SCHEMA if old.schema != LAB_SCHEMA else others[0] if others else ""
            names = self._free_names(catalogue, target) if target else []
            if names:
                return [RenameTable(old, self._rng.choice(names))]
        return []

    # Schemas and views

    def _schema(self, catalogue: Catalogue) -> list[Ddl]:
        others = sorted(schema for schema in catalogue.schemas if schema.startswith(LAB_SCHEMA) and schema != LAB_SCHEMA)
        if not others:
            return [CreateSchema(f"{LAB_SCHEMA}_2")]
        if self._rng.random() < 0.4:
            return [DropSchema(others[0])]
        names = self._free_names(catalogue, others[0])
        return [CreateTable(self._factory.new_table(names[0]))] if names else []

    def _view(self, catalogue: Catalogue) -> list[Ddl]:
        if catalogue.views and self._rng.random() < 0.5:
            return [DropView(self._rng.choice(sorted(catalogue.views)))]
        name = TableName("shop", f"open_orders_{self._factory.serial()}")
        return [CreateView(name, ORDERS, ("id", "status"))] if ORDERS in catalogue.tables else []

    # What upstream names itself

    def _foreign_key(self, catalogue: Catalogue) -> list[Ddl]:
        return self._first(catalogue, self._clauses.foreign_key)

    def _expression_index(self, catalogue: Catalogue) -> list[Ddl]:
        return self._first(catalogue, self._clauses.expression_index)

    def _first(self, catalogue: Catalogue, make: Callable[[Table], Sequence[Ddl]]) -> list[Ddl]:
        """Return what can be made for some table of the lab."""
        tables = [state.table for state in self._lab(catalogue)]
        self._rng.shuffle(tables)
        return list(next(filter(None, map(make, tables)), []))

    # Alterations

    def _alter(self, catalogue: Catalogue) -> list[Ddl]:
        return self._altered(catalogue, 1)

    def _alter_many(self, catalogue: Catalogue) -> list[Ddl]:
        return self._altered(catalogue, self._rng.randint(2, 3))

    def _altered(self, catalogue: Catalogue, count: int) -> list[Ddl]:
        states = list(catalogue)
        if not states:
            return []
        lab = self._lab(catalogue)
        statement = self._clauses.alter(self._rng.choice(lab if lab and self._rng.random() < _LAB_SHARE else states).table, count)
        return [] if statement is None else [statement]
