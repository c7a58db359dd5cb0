"""A table's definition while one ALTER is applied to it, clause by clause; pure.

Columns are objects, so that indexes follow a renamed column and two columns may exchange their names in one statement.
References name the columns as they were before the statement, or, where there is no such column, as the statement made them.
"""

from dataclasses import dataclass, replace

from applier.ddl.remedy import BY_HAND
from applier.ddl.renamed_columns import with_new_names
from applier.ddl.table import PRIMARY, ColumnDefinition, Default, IndexDefinition, IndexPart, TableDefinition
from applier.model.errors import NeedsOperator


@dataclass(slots=True, eq=False)
class DraftColumn:
    """A column of the draft; ``source`` is its name before the statement, '' if the statement adds it."""

    definition: ColumnDefinition
    source: str = ""
    charset: str = ""
    """The character set that the statement gives it; '' if it names none."""


@dataclass(slots=True, eq=False)
class _DraftPart:
    column: DraftColumn | None
    part: IndexPart


@dataclass(slots=True, eq=False)
class _DraftIndex:
    name: str
    unique: bool
    parts: list[_DraftPart]


@dataclass(frozen=True, slots=True)
class Position:
    """Where a column goes: first, or after the column ``after``."""

    after: str = ""


class TableDraft:
    """The definition of one table, open to change. Whatever does not fit raises NeedsOperator."""

    def __init__(self, table: TableDefinition) -> None:
        self._table = table
        self.found: list[str] = []
        """Columns that an IF NOT EXISTS has found."""
        self.columns = [DraftColumn(column, column.name) for column in table.columns]
        self._indexes = [self._draft_index(index) for index in table.indexes]
        self._primary = self._draft_index(IndexDefinition(PRIMARY, table.primary_key, unique=True))

    def freeze(self) -> TableDefinition:
        """Return the definition as it is now; NeedsOperator if two columns or indexes have one name."""
        # The columns of a primary key are NOT NULL, whatever their definitions say (manual, "CREATE TABLE").
        for part in self._primary.parts:
            if part.column is not None:
                part.column.definition = replace(part.column.definition, nullable=False)
        names = [column.definition.name.casefold() for column in self.columns]
        indexes = [index.name.casefold() for index in self._indexes]
        for found in (names, indexes):
            if len(set(found)) != len(found):
                raise self._misfit("two columns or indexes would have the same name", max(found, key=found.count))
        return replace(
            self._table,
            columns=tuple(column.definition for column in self.columns),
            primary_key=tuple(map(_frozen_part, self._primary.parts)),
            indexes=tuple(IndexDefinition(i.name, tuple(map(_frozen_part, i.parts)), unique=i.unique) for i in self._indexes),
        )

    # Columns

    def find(self, name: str) -> DraftColumn | None:
        """Find a column by its name before the statement, else by its name now."""
        folded = name.casefold()
        # By the old name first: RENAME COLUMN a TO b, RENAME COLUMN b TO a exchanges the two.
        by_source = (column for column in self.columns if column.source.casefold() == folded)
        return next(by_source, None) or self._named(name)

    def _named(self, name: str) -> DraftColumn | None:
        folded = name.casefold()
        return next((column for column in self.columns if column.definition.name.casefold() == folded), None)

    def add_column(self, definition: ColumnDefinition, position: Position | None) -> None:
        """Add a column at a position (None: as the last)."""
        self._place(DraftColumn(definition), position)

    def modify_column(self, name: str, definition: ColumnDefinition, position: Position | None) -> None:
        """Give a column another definition, and another place if one is named."""
        column = self._existing(name)
        self._rename_in_expressions(column.definition.name, definition.name)
        column.definition = definition
        if position is not None:
            self.columns.remove(column)
            self._place(column, position)

    def rename_column(self, old: str, new: str) -> None:
        """Rename a column."""
        column = self._existing(old)
        self._rename_in_expressions(column.definition.name, new)
        column.definition = replace(column.definition, name=new)

    def _rename_in_expressions(self, old: str, new: str) -> None:
        """MariaDB renames a column also where a generated column names it; MySQL and TiDB refuse to rename it."""
        names = {old.casefold(): new}
        for column in self.columns:
            if column.definition.generated and old != new:
                column.definition = replace(column.definition, generated=with_new_names(column.definition.generated, names))

    def set_default(self, name: str, default: Default | None) -> None:
        """Set or drop a default; existing rows keep what they have."""
        column = self._existing(name)
        column.definition = replace(column.definition, default=default)

    def drop_column(self, name: str) -> None:
        """Drop a column, also out of its indexes; an index without columns goes with it."""
        column = self._existing(name)
        self.columns.remove(column)
        # MySQL refuses it too (error 1090): so upstream's table has other columns than ours.
        if not self.columns:
            raise self._misfit("a table cannot lose its only column", name)
        for index in (*self._indexes, self._primary):
            index.parts = [part for part in index.parts if part.column is not column]
        # MySQL drops an index with its last column (manual, "ALTER TABLE").
        self._indexes = [index for index in self._indexes if index.parts]

    def _place(self, column: DraftColumn, position: Position | None) -> None:
        if position is None:
            self.columns.append(column)
        elif not position.after:
            self.columns.insert(0, column)
        else:
            self.columns.insert(self.columns.index(self._existing(position.after)) + 1, column)

    def _existing(self, name: str) -> DraftColumn:
        column = self.find(name)
        if column is None:
            raise self._misfit("the sink's table has no such column", name)
        return column

    # Indexes

    def has_index(self, name: str) -> bool:
        """Return whether there is an index of that name."""
        return self._index(name) is not None

    def has_same_index(self, index: IndexDefinition) -> bool:
        """Return whether there is an index of that name, with the same parts."""
        found = self._index(index.name)
        if found is None or found.unique != index.unique:
            return False
        wanted = self._draft_index(index).parts
        return [(one.column, one.part) for one in found.parts] == [(one.column, one.part) for one in wanted]

    def add_index(self, index: IndexDefinition) -> None:
        """Add an index; without a name it gets the one that TiDB gives it."""
        self._indexes.append(self._draft_index(replace(index, name=index.name or self._anonymous_name(index.parts))))

    def drop_index(self, name: str) -> None:
        """Drop an index, the primary key if it is called PRIMARY."""
        if name.casefold() == PRIMARY.casefold():
            self.drop_primary_key()
            return
        self._indexes.remove(self._existing_index(name))

    def rename_index(self, old: str, new: str) -> None:
        """Rename an index."""
        self._existing_index(old).name = new

    def add_primary_key(self, parts: tuple[IndexPart, ...]) -> None:
        """Add the primary key; its columns are NOT NULL from then on, also without it."""
        if self._primary.parts:
            raise self._misfit("the sink's table has a primary key already", PRIMARY)
        self._primary = self._draft_index(IndexDefinition(PRIMARY, parts, unique=True))

    def drop_primary_key(self) -> None:
        """Drop the primary key; its columns stay NOT NULL."""
        if not self._primary.parts:
            raise self._misfit("the sink's table has no primary key", PRIMARY)
        self._primary = _DraftIndex(PRIMARY, unique=True, parts=[])

    def covers(self, columns: tuple[str, ...]) -> bool:
        """Return whether an index begins with these columns (then a foreign key needs no other)."""
        wanted = [name.casefold() for name in columns]
        return any(
            # TiDB and MySQL make no index for a foreign key if one begins with its columns, in their order.
            [part.column.definition.name.casefold() for part in index.parts[: len(wanted)] if part.column is not None] == wanted
            for index in (self._primary, *self._indexes)
        )

    def _draft_index(self, index: IndexDefinition) -> _DraftIndex:
        return _DraftIndex(index.name, index.unique, [_DraftPart(self._part_column(part), part) for part in index.parts])

    def _part_column(self, part: IndexPart) -> DraftColumn | None:
        if part.expression:
            return None
        column = self._named(part.column)
        if column is None:
            raise self._misfit("an index names a column that the sink's table does not have", part.column)
        return column

    def _index(self, name: str) -> _DraftIndex | None:
        folded = name.casefold()
        return next((index for index in self._indexes if index.name.casefold() == folded), None)

    def _existing_index(self, name: str) -> _DraftIndex:
        index = self._index(name)
        if index is None:
            raise self._misfit("the sink's table has no such index", name)
        return index

    def _anonymous_name(self, parts: tuple[IndexPart, ...]) -> str:
        """Name an index after its first column, with _2, _3 … after it where that is taken (TiDB, GetName4AnonymousIndex)."""
        base = "expression_index" if any(part.expression for part in parts) else parts[0].column
        # PRIMARY is no name for another index.
        name, number = base, 2
        while self.has_index(name) or name.casefold() == PRIMARY.casefold():
            name, number = f"{base}_{number}", number + 1
        return name

    def _misfit(self, message: str, name: str) -> NeedsOperator:
        return NeedsOperator(
            message,
            remedy=f"The sink's schema has drifted from upstream's. {BY_HAND}",
            table=str(self._table.name),
            name=name,
        )


def _frozen_part(part: _DraftPart) -> IndexPart:
    return part.part if part.column is None else replace(part.part, column=part.column.definition.name)
