"""Seeded clauses of ALTER TABLE and CREATE INDEX: only what is legal for the table as it is."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from applier.demo.simulator import column_type as of
from applier.demo.simulator.alteration import convert, converting_types
from applier.demo.simulator.column_type import TypeClass, UpstreamType
from applier.demo.simulator.mysql_text import quote_name
from applier.demo.simulator.operation import (
    AddColumn,
    AddForeignKey,
    AddIndex,
    AlterTable,
    Clause,
    DropColumn,
    DropForeignKey,
    DropIndex,
    ModifyColumn,
    RenameColumn,
    RenameIndex,
    SetComment,
    SetDefault,
)
from applier.demo.simulator.schema import Table, UpstreamColumn, UpstreamIndex, index
from applier.demo.simulator.table_factory import EXTRA_PREFIX, PARENT, TYPES_WITHOUT_DEFAULT, TableFactory, random_value

_UNNAMED_SHARE = 0.3


@dataclass(frozen=True, slots=True)
class AlterClauses:
    """Draws the clauses of one statement."""

    factory: TableFactory

    def alter(self, table: Table, count: int) -> AlterTable | None:
        """Return an ALTER of up to ``count`` clauses; None if no clause is possible."""
        clauses: list[Clause] = []
        used: set[str] = set()
        for _ in range(count):
            clause = self._clause(table, used)
            if clause is not None:
                clauses.append(clause)
        if len(clauses) > 1:  # CREATE INDEX is a separate statement
            clauses = [replace(clause, create=False) if isinstance(clause, AddIndex) else clause for clause in clauses]
        return AlterTable(table, tuple(clauses)) if clauses else None

    def foreign_key(self, table: Table) -> list[AlterTable]:
        """Return an ADD FOREIGN KEY to the table's own key, or the DROP of the one that is there; [] where there is no column for it."""
        if table.foreign_keys:
            return [AlterTable(table, (DropForeignKey(table.foreign_keys[0]),))]
        if PARENT not in table.position or table.handle is None or len(table.handle.columns) > 1:
            return []
        name = f"fk_{table.last_foreign_key + 1}"
        return [AlterTable(table, (AddForeignKey(name, PARENT, table.handle.columns[0]),))]

    def expression_index(self, table: Table) -> list[AlterTable]:
        """Return an ADD INDEX of an expression, or the DROP of the one that is there; [] where there is no column for it."""
        present = [found.name for found in table.indexes if found.expression]
        if present and self.factory.rng.random() < 0.6:
            return [AlterTable(table, (DropIndex(self.factory.rng.choice(present)),))]
        numbers = [found.name for found in table.columns if found.type.kind is TypeClass.INTEGER and found.generation is None]
        if not numbers:
            return []
        column = self.factory.rng.choice(numbers)
        made = UpstreamIndex(
            name=free_index_name(table, "expression_index"), columns=(column,), named=False, expression=f"{quote_name(column)} % 7"
        )
        return [AlterTable(table, (AddIndex(made),))]

    def _clause(self, table: Table, used: set[str]) -> Clause | None:
        """Return a clause that touches no column or index of the same statement twice."""
        makers: list[Callable[[Table, set[str]], Clause | None]] = [self._add_column, self._drop_column]
        makers += [self._rename_column, self._modify_column, self._set_default, self._add_index, self._drop_index, self._rename_index]
        makers.append(self._comment)
        self.factory.rng.shuffle(makers)
        return next((clause for maker in makers if (clause := maker(table, used)) is not None), None)

    def _extras(self, table: Table, used: set[str]) -> list[UpstreamColumn]:
        return [found for found in table.columns if found.name.startswith(EXTRA_PREFIX) and found.name not in used]

    def _place(self, table: Table, used: set[str], besides: str = "") -> str | None:
        if self.factory.rng.random() < 0.5:
            return None
        names = [found.name for found in table.columns if found.name not in used | {besides}]
        anchor = self.factory.rng.choice(["", *names])
        # MySQL finds no anchor that the same statement drops or renames.
        used.add(anchor)
        return anchor

    def _add_column(self, table: Table, used: set[str]) -> Clause:
        return AddColumn(self.factory.extra_column(), self._place(table, used))

    def _drop_column(self, table: Table, used: set[str]) -> Clause | None:
        free = [found for found in self._extras(table, used) if found.name not in table.indexed_columns()]
        if not free or len(table.columns) - len(used) < 2:
            return None
        name = self.factory.rng.choice(free).name
        used.add(name)
        return DropColumn(name)

    def _rename_column(self, table: Table, used: set[str]) -> Clause | None:
        free = [found for found in self._extras(table, used) if found.name not in table.indexed_columns()]
        if not free:
            return None
        name = self.factory.rng.choice(free).name
        serial = self.factory.serial()
        used.add(name)
        return RenameColumn(name, f"{EXTRA_PREFIX}{serial}", change=self.factory.rng.random() < 0.5)

    def _modify_column(self, table: Table, used: set[str]) -> Clause | None:
        free = [found for found in self._extras(table, used) if found.name not in table.indexed_columns()]
        wider = [(found, kind) for found in free for kind in [_widened(found.type), *converting_types(found.type)] if kind is not None]
        if not wider:
            return None
        found, kind = self.factory.rng.choice(wider)
        used.add(found.name)
        modified = replace(found, type=kind, default=convert(found.default, found.type, kind))
        return ModifyColumn(modified, self._place(table, used, found.name))

    def _set_default(self, table: Table, used: set[str]) -> Clause | None:
        free = self._extras(table, used)
        if not free:
            return None
        found = self.factory.rng.choice(free)
        used.add(found.name)
        value = random_value(self.factory.rng, replace(found, nullable=False))
        if self.factory.rng.random() < 0.3 or (isinstance(value, str) and not value.isprintable()):
            return SetDefault(replace(found, has_default=False, default=None))
        return SetDefault(replace(found, has_default=True, default=value))

    def _add_index(self, table: Table, used: set[str]) -> Clause | None:
        free = [found for found in table.columns if found.name not in used and found.type.kind not in TYPES_WITHOUT_DEFAULT]
        # InnoDB takes 3,072 bytes per index, and a character of utf8mb4 up to 4.
        free = [found for found in free if found.type.size <= 120 or found.type.kind not in (TypeClass.STRING, TypeClass.BINARY)]
        if not free:
            return None
        chosen = [found.name for found in self.factory.rng.sample(free, min(len(free), self.factory.rng.choice((1, 1, 2))))]
        used.update(chosen)
        if self.factory.rng.random() < _UNNAMED_SHARE:
            return AddIndex(UpstreamIndex(name=free_index_name(table, chosen[0]), columns=tuple(chosen), named=False))
        return AddIndex(index(f"ix_{self.factory.serial()}", *chosen), create=self.factory.rng.random() < 0.4)

    def _plain_indexes(self, table: Table, used: set[str]) -> list[UpstreamIndex]:
        return [
            found for found in table.indexes if not found.unique and found.name not in used and _is_added(found) and not found.expression
        ]

    def _drop_index(self, table: Table, used: set[str]) -> Clause | None:
        free = self._plain_indexes(table, used)
        if not free:
            return None
        name = self.factory.rng.choice(free).name
        used.add(name)
        return DropIndex(name)

    def _rename_index(self, table: Table, used: set[str]) -> Clause | None:
        free = self._plain_indexes(table, used)
        if not free:
            return None
        name = self.factory.rng.choice(free).name
        serial = self.factory.serial()
        used.add(name)
        return RenameIndex(name, f"ix_{serial}")

    def _comment(self, _table: Table, _used: set[str]) -> Clause:
        return SetComment(f"it's \\ version {self.factory.rng.randint(1, 99)}")


def _is_added(found: UpstreamIndex) -> bool:
    """Return whether a DDL has added the index: original indexes of a table stay."""
    return found.name.startswith("ix_") or not found.named


def free_index_name(table: Table, column: str) -> str:
    """Return the name that TiDB gives to an unnamed index: that of its first column, with a number if it is taken."""
    taken = {found.name.casefold() for found in table.indexes}
    names = (column, *(f"{column}_{number}" for number in range(2, len(taken) + 3)))
    return next(name for name in names if name.casefold() not in taken)


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
