"""Reads what the table check compares: a table's kind, its engine, its triggers, and the collations of its unique keys.

The number of statements does not depend on the number of tables. Errors of the database come out as SQLAlchemy's.
"""

from collections.abc import Collection
from typing import Final

from sqlalchemy import Connection, text

from applier.ddl.generated import unportable_columns
from applier.model.events import FoldedName, TableName
from applier.mysql.catalogue import known_of, read_structures, unportable_unique_indexes
from applier.mysql.grants import TriggerVisibility
from applier.mysql.structure import TableStructure
from applier.planner.table_check import FoldingColumn, SinkTable

_ENGINES: Final = text("SELECT ENGINE FROM information_schema.ENGINES WHERE TRANSACTIONS = 'YES'")
_LABELS: Final = frozenset({"enum", "set"})
"""Types whose values are numbers, although their labels have a collation."""


def examine(connection: Connection, tables: Collection[TableName]) -> dict[FoldedName, SinkTable]:
    """Examine the tables that exist, views and the like too."""
    structures = read_structures(connection, tables)
    if not structures:
        return {}
    engines = frozenset(str(engine).casefold() for engine in connection.scalars(_ENGINES))
    # information_schema.TRIGGERS is empty for a user without TRIGGER: "no triggers" would be a guess.
    visibility = TriggerVisibility.of(connection)
    names = {name.fold(): name for name in tables}
    return {
        folded: _examined(names[folded], structure, engines, shows_triggers=visibility.shows(names[folded]))
        for folded, structure in structures.items()
    }


def _examined(name: TableName, structure: TableStructure, engines: frozenset[str], *, shows_triggers: bool) -> SinkTable:
    unique = {part.column.casefold() for index in structure.indexes if index.unique for part in index.parts if part.column is not None}
    # Other columns may have any collation: only a unique index makes two rows one.
    keys = [
        FoldingColumn(column.name, column.collation)
        for column in structure.columns
        if column.collation and column.name.casefold() in unique and column.data_type not in _LABELS
    ]
    return SinkTable(
        name=name,
        kind=structure.kind.upper(),
        engine=structure.engine,
        has_transactions=structure.engine.casefold() in engines,
        triggers=tuple(sorted(trigger.name for trigger in structure.triggers)),
        shows_triggers=shows_triggers,
        folding=tuple(key for key in keys if _folds(key.collation)),
        unportable=tuple(unportable_columns(known_of(structure))),
        unportable_indexes=tuple(unportable_unique_indexes(structure)),
        padding=tuple(key for key in keys if not _folds(key.collation) and _pads(key.collation)),
    )


def _folds(collation: str) -> bool:
    """Return whether a collation may treat texts as equal that differ in more than trailing spaces: all but the binary ones may."""
    return collation != "binary" and not collation.endswith("_bin")


def _pads(collation: str) -> bool:
    """Return whether a binary collation ignores trailing spaces: all do but ``binary``, ``utf8mb4_0900_bin`` and MariaDB's ``nopad``."""
    return collation not in {"binary", "utf8mb4_0900_bin"} and "_nopad_" not in collation
