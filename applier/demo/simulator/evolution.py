"""Seeded DDLs: how the schema of the simulated upstream changes.

Tables of the lab may change in any way; the others keep their meaning and only gain and lose extra columns and indexes.
"""

import random
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from enum import StrEnum

from applier.demo.simulator import column_type as of
from applier.demo.simulator.alteration import convert
from applier.demo.simulator.blueprint import LAB_SCHEMA, ORDERS
from applier.demo.simulator.catalogue import Catalogue, TableState
from applier.demo.simulator.column_type import TypeClass, UpstreamType
from applier.demo.simulator.operation import (
    AddColumn,
    AddIndex,
    AlterTable,
    Clause,
    CreateSchema,
    CreateTable,
    CreateTableLike,
    CreateView,
    Ddl,
    DropColumn,
    DropIndex,
    DropSchema,
    DropTable,
    DropView,
    ModifyColumn,
    RenameColumn,
    RenameIndex,
    RenameTable,
    SetComment,
    SetDefault,
    TruncateTable,
)
from applier.demo.simulator.schema import Table, UpstreamColumn, UpstreamIndex, column, column_with_default, index, primary, unique
from applier.demo.simulator.value_pool import random_value
from applier.model.events import TableName

LAB_NAMES = ("t1", "t2", "t3", "T4", "t 5", "t`6")
_EXTRA = "extra_"
_EXTRA_TYPES: tuple[UpstreamType, ...] = (
    of.integer("INT"),
    of.integer("BIGINT", unsigned=True),
    of.varchar(30),
    of.decimal(12, 3),
    of.datetime(),
    of.enum("x", "y", "z"),
    of.set_of("p", "q", "r"),
    of.real("DOUBLE"),
    of.varbinary(20),
    of.char(8),
    of.date(),
    of.bit(9),
)
_TYPES_WITHOUT_DEFAULT = frozenset({TypeClass.TEXT, TypeClass.BLOB, TypeClass.JSON})


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
    ALTER_MANY = "alter_many"
    """Several clauses in one statement: a multi-schema change."""


# Alterations are the everyday DDLs; what they leave behind (indexes, extra columns) is the material of the next ones.
_WEIGHTS = {SimulatedDdlKind.ALTER: 5, SimulatedDdlKind.ALTER_MANY: 2}


@dataclass(slots=True)
class Evolution:
    """Chooses DDLs that are legal in the catalogue's present state; the caller executes them."""

    rng: random.Random
    kinds: Collection[SimulatedDdlKind]
    _serial: int = 0
    _pending: list[Ddl] = field(default_factory=list)

    def next(self, catalogue: Catalogue) -> tuple[Ddl, ...]:
        """Return the DDLs of one commit_ts, in their order; () if the chosen kind is not possible now."""
        if self._pending:
            return (self._pending.pop(),)
        kinds = sorted(self.kinds)
        kind = self.rng.choices(kinds, [_WEIGHTS.get(kind, 1) for kind in kinds])[0]
        return tuple(_MAKERS[kind](self, catalogue))

    # Tables

    def _lab(self, catalogue: Catalogue) -> list[TableState]:
        return [state for state in catalogue if state.table.name.schema.startswith(LAB_SCHEMA)]

    def _free_names(self, catalogue: Catalogue, schema: str = LAB_SCHEMA) -> list[TableName]:
        taken = {(name.schema, name.table.casefold()) for name in [*catalogue.tables, *catalogue.views]}
        return [TableName(schema, name) for name in LAB_NAMES if (schema, name.casefold()) not in taken]

    def new_table(self, name: TableName) -> Table:
        """Define a table with some columns of any kind, a key of one or two columns, and perhaps a unique index."""
        keys = [column("id", self.rng.choice((of.integer("BIGINT"), of.integer("INT", unsigned=True), of.varchar(40))), null=False)]
        if self.rng.random() < 0.3:
            keys.append(column("part", of.integer("SMALLINT"), null=False))
        others = [self._extra_column() for _ in range(self.rng.randint(1, 4))]
        columns = [*keys, *others]
        if self.rng.random() < 0.3:
            self.rng.shuffle(columns)
        indexes: list[UpstreamIndex] = [primary(*(key.name for key in keys))]
        if self.rng.random() < 0.4:
            columns.append(column("tag", of.integer("INT")))
            indexes.append(unique("one_tag", "tag"))
        return Table(name=name, columns=tuple(columns), indexes=tuple(indexes))

    def _extra_column(self) -> UpstreamColumn:
        self._serial += 1
        name, kind = f"{_EXTRA}{self._serial}", self.rng.choice(_EXTRA_TYPES)
        nullable = self.rng.random() < 0.6
        if self.rng.random() < 0.5 and kind.kind not in _TYPES_WITHOUT_DEFAULT:
            value = random_value(self.rng, column(name, kind, null=False))
            if not (isinstance(value, str) and not value.isprintable()):
                return column_with_default(name, kind, value, null=nullable)
        return column(name, kind, null=nullable)

    def _create(self, catalogue: Catalogue) -> list[Ddl]:
        return [CreateTable(self.new_table(name)) for name in self._free_names(catalogue)[:1]]

    def _create_batch(self, catalogue: Catalogue) -> list[Ddl]:
        names = self._free_names(catalogue)[:2]
        return [CreateTable(self.new_table(name), batch=True) for name in names] if len(names) == 2 else []

    def _like(self, catalogue: Catalogue) -> list[Ddl]:
        models, names = [state.table.name for state in catalogue], self._free_names(catalogue)
        return [CreateTableLike(self.rng.choice(names), self.rng.choice(models))] if models and names else []

    def _pick_lab(self, catalogue: Catalogue, count: int = 1) -> list[TableName]:
        states = self._lab(catalogue)
        return [state.table.name for state in self.rng.sample(states, count)] if len(states) >= count else []

    def _drop(self, catalogue: Catalogue) -> list[Ddl]:
        return [DropTable(name) for name in self._pick_lab(catalogue)]

    def _recreate(self, catalogue: Catalogue) -> list[Ddl]:
        names = self._pick_lab(catalogue)
        self._pending += [CreateTable(self.new_table(name)) for name in names]
        return [DropTable(name) for name in names]

    def _truncate(self, catalogue: Catalogue) -> list[Ddl]:
        return [TruncateTable(name) for name in self._pick_lab(catalogue)]

    def _rename(self, catalogue: Catalogue) -> list[Ddl]:
        names = self._free_names(catalogue)
        return [RenameTable(old, self.rng.choice(names)) for old in self._pick_lab(catalogue) if names and old.schema == LAB_SCHEMA]

    def _chain(self, catalogue: Catalogue) -> list[Ddl]:
        states = [state for state in self._lab(catalogue) if state.table.name.schema == LAB_SCHEMA]
        if len(states) < 2:
            return []
        a, b = (state.table.name for state in self.rng.sample(states, 2))
        spare = TableName(LAB_SCHEMA, "swap_tmp")
        return [RenameTable(a, spare), RenameTable(b, a), RenameTable(spare, b)]

    def _move(self, catalogue: Catalogue) -> list[Ddl]:
        others = sorted(schema for schema in catalogue.schemas if schema.startswith(LAB_SCHEMA) and schema != LAB_SCHEMA)
        for old in self._pick_lab(catalogue):
            target = LAB_SCHEMA if old.schema != LAB_SCHEMA else others[0] if others else ""
            names = self._free_names(catalogue, target) if target else []
            if names:
                return [RenameTable(old, self.rng.choice(names))]
        return []

    # Schemas and views

    def _schema(self, catalogue: Catalogue) -> list[Ddl]:
        others = sorted(schema for schema in catalogue.schemas if schema.startswith(LAB_SCHEMA) and schema != LAB_SCHEMA)
        if not others:
            return [CreateSchema(f"{LAB_SCHEMA}_2")]
        if self.rng.random() < 0.4:
            return [DropSchema(others[0])]
        names = self._free_names(catalogue, others[0])
        return [CreateTable(self.new_table(names[0]))] if names else []

    def _view(self, catalogue: Catalogue) -> list[Ddl]:
        if catalogue.views and self.rng.random() < 0.5:
            return [DropView(self.rng.choice(sorted(catalogue.views)))]
        self._serial += 1
        name = TableName("shop", f"open_orders_{self._serial}")
        return [CreateView(name, ORDERS, ("id", "status"))] if ORDERS in catalogue.tables else []

    # Alterations

    def _alter(self, catalogue: Catalogue) -> list[Ddl]:
        return self._altered(catalogue, 1)

    def _alter_many(self, catalogue: Catalogue) -> list[Ddl]:
        return self._altered(catalogue, self.rng.randint(2, 3))

    def _altered(self, catalogue: Catalogue, count: int) -> list[Ddl]:
        states = list(catalogue)
        if not states:
            return []
        table = self.rng.choice(states).table
        clauses: list[Clause] = []
        used: set[str] = set()
        for _ in range(count):
            clause = self._clause(table, used)
            if clause is not None:
                clauses.append(clause)
        if len(clauses) > 1:  # CREATE INDEX is a statement of its own
            clauses = [replace(clause, create=False) if isinstance(clause, AddIndex) else clause for clause in clauses]
        return [AlterTable(table, tuple(clauses))] if clauses else []

    def _clause(self, table: Table, used: set[str]) -> Clause | None:
        """Return a clause that touches no column or index of the same statement twice."""
        makers: list[Callable[[Table, set[str]], Clause | None]] = [self._add_column, self._drop_column]
        makers += [self._rename_column, self._modify_column, self._set_default, self._add_index, self._drop_index, self._rename_index]
        makers.append(self._comment)
        self.rng.shuffle(makers)
        return next((clause for maker in makers if (clause := maker(table, used)) is not None), None)

    def _extras(self, table: Table, used: set[str]) -> list[UpstreamColumn]:
        return [found for found in table.columns if found.name.startswith(_EXTRA) and found.name not in used]

    def _place(self, table: Table, used: set[str], besides: str = "") -> str | None:
        if self.rng.random() < 0.5:
            return None
        names = [found.name for found in table.columns if found.name not in used | {besides}]
        anchor = self.rng.choice(["", *names])
        used.add(anchor)
        return anchor

    def _add_column(self, table: Table, used: set[str]) -> Clause:
        return AddColumn(self._extra_column(), self._place(table, used))

    def _drop_column(self, table: Table, used: set[str]) -> Clause | None:
        free = [found for found in self._extras(table, used) if found.name not in table.indexed_columns()]
        if not free or len(table.columns) - len(used) < 2:
            return None
        name = self.rng.choice(free).name
        used.add(name)
        return DropColumn(name)

    def _rename_column(self, table: Table, used: set[str]) -> Clause | None:
        free = [found for found in self._extras(table, used) if found.name not in table.indexed_columns()]
        if not free:
            return None
        name = self.rng.choice(free).name
        self._serial += 1
        used.add(name)
        return RenameColumn(name, f"{_EXTRA}{self._serial}", change=self.rng.random() < 0.5)

    def _modify_column(self, table: Table, used: set[str]) -> Clause | None:
        free = [found for found in self._extras(table, used) if found.name not in table.indexed_columns()]
        wider = [(found, kind) for found in free for kind in [_widened(found.type)] if kind is not None]
        if not wider:
            return None
        found, kind = self.rng.choice(wider)
        used.add(found.name)
        modified = replace(found, type=kind, default=convert(found.default, found.type, kind))
        return ModifyColumn(modified, self._place(table, used, found.name))

    def _set_default(self, table: Table, used: set[str]) -> Clause | None:
        free = self._extras(table, used)
        if not free:
            return None
        found = self.rng.choice(free)
        used.add(found.name)
        value = random_value(self.rng, replace(found, nullable=False))
        if self.rng.random() < 0.3 or (isinstance(value, str) and not value.isprintable()):
            return SetDefault(replace(found, has_default=False, default=None))
        return SetDefault(replace(found, has_default=True, default=value))

    def _add_index(self, table: Table, used: set[str]) -> Clause | None:
        free = [found for found in table.columns if found.name not in used and found.type.kind not in _TYPES_WITHOUT_DEFAULT]
        free = [found for found in free if found.type.size <= 120 or found.type.kind not in (TypeClass.STRING, TypeClass.BINARY)]
        if not free:
            return None
        self._serial += 1
        chosen = self.rng.sample(free, min(len(free), self.rng.choice((1, 1, 2))))
        used.update(found.name for found in chosen)
        return AddIndex(index(f"ix_{self._serial}", *(found.name for found in chosen)), create=self.rng.random() < 0.4)

    def _plain_indexes(self, table: Table, used: set[str]) -> list[UpstreamIndex]:
        return [found for found in table.indexes if found.name.startswith("ix_") and found.name not in used]

    def _drop_index(self, table: Table, used: set[str]) -> Clause | None:
        free = self._plain_indexes(table, used)
        if not free:
            return None
        name = self.rng.choice(free).name
        used.add(name)
        return DropIndex(name)

    def _rename_index(self, table: Table, used: set[str]) -> Clause | None:
        free = self._plain_indexes(table, used)
        if not free:
            return None
        name = self.rng.choice(free).name
        self._serial += 1
        used.add(name)
        return RenameIndex(name, f"ix_{self._serial}")

    def _comment(self, _table: Table, _used: set[str]) -> Clause:
        return SetComment(f"it's \\ version {self.rng.randint(1, 99)}")


def _widened(kind: UpstreamType) -> UpstreamType | None:
    """Return a type that holds every value of ``kind``."""
    match kind.kind:
        case TypeClass.INTEGER if kind.size < 64:
            return of.integer("BIGINT")
        case TypeClass.INTEGER if kind.sql == "BIGINT":
            return of.varchar(30)
        case TypeClass.STRING if kind.size < 100 and kind.sql.startswith("VARCHAR"):
            return of.varchar(100)
        case TypeClass.ENUM if len(kind.labels) < 6:
            return of.enum(*kind.labels, f"new{len(kind.labels)}")
        case TypeClass.BINARY if kind.sql == "VARBINARY(20)":
            return of.varbinary(60)
        case _:
            return None


_MAKERS: dict[SimulatedDdlKind, Callable[[Evolution, Catalogue], list[Ddl]]] = {
    SimulatedDdlKind.CREATE_TABLE: Evolution._create,  # noqa: SLF001 - the class's own table of methods
    SimulatedDdlKind.CREATE_TABLES: Evolution._create_batch,  # noqa: SLF001
    SimulatedDdlKind.CREATE_LIKE: Evolution._like,  # noqa: SLF001
    SimulatedDdlKind.DROP_TABLE: Evolution._drop,  # noqa: SLF001
    SimulatedDdlKind.RECREATE_TABLE: Evolution._recreate,  # noqa: SLF001
    SimulatedDdlKind.TRUNCATE_TABLE: Evolution._truncate,  # noqa: SLF001
    SimulatedDdlKind.RENAME_TABLE: Evolution._rename,  # noqa: SLF001
    SimulatedDdlKind.RENAME_CHAIN: Evolution._chain,  # noqa: SLF001
    SimulatedDdlKind.MOVE_TABLE: Evolution._move,  # noqa: SLF001
    SimulatedDdlKind.SCHEMA: Evolution._schema,  # noqa: SLF001
    SimulatedDdlKind.VIEW: Evolution._view,  # noqa: SLF001
    SimulatedDdlKind.ALTER: Evolution._alter,  # noqa: SLF001
    SimulatedDdlKind.ALTER_MANY: Evolution._alter_many,  # noqa: SLF001
}
