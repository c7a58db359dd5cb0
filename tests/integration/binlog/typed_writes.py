"""What an application does with rows of every type on a primary: each column inserted, updated and deleted, in each form of row image."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tests.integration.binlog.binlog_types import GROUPS, ColumnCase, group_of, keys_of

IMAGES = ("FULL", "MINIMAL", "NOBLOB")
WHOLE = "FULL"
"""The one in which a change of the key carries the whole row: the others are refused there."""
LATER = "WHERE id % 7 = 3"
FEW_KEYS = 6
"""Rows of a table whose key has the type: longer keys than this many values show nothing more."""


@dataclass(frozen=True)
class TypedTable:
    """A table ``name`` and the statements that make its rows; ``compared``: the expressions whose results must be equal."""

    name: str
    create: str
    statements: Sequence[str]
    compared: Sequence[str]
    order: str = "id"


def tables_of(servers: frozenset[str], schema: str) -> Iterator[tuple[str, TypedTable]]:
    """Yield each table with the row image in which it is written. ``servers``: those that must have the types."""
    for image in IMAGES:
        for group in GROUPS:
            if columns := group_of(group, servers):
                yield image, _group_table(f"{group}_{image.lower()}".replace(" ", "_"), schema, columns, image)
    for number, case in enumerate(keys_of(servers)):
        image = IMAGES[number % len(IMAGES)]
        yield image, _key_table(f"key_{number}", schema, case, image)


def _group_table(name: str, schema: str, columns: Sequence[ColumnCase], image: str) -> TypedTable:
    table = f"`{schema}`.`{name}`"
    written = [(*case.literals, "NULL") for case in columns]
    rows = max(map(len, written)) + 2

    def value(row: int, place: int) -> str:
        return written[place][row % len(written[place])]

    def all_values(row: int) -> str:
        return ",".join(value(row, place) for place in range(len(columns)))

    statements = [f"INSERT INTO {table} VALUES ({row},{all_values(row)})" for row in range(rows)]
    # One column alone, and all of them: of a minimal image, the bitmaps differ.
    for row in range(rows):
        changed = range(len(columns)) if row % 2 else (row // 2 % len(columns),)
        statements.append(f"UPDATE {table} SET {','.join(f'c{place} = {value(row + 1, place)}' for place in changed)} WHERE id = {row}")
    statements += [f"UPDATE {table} SET id = id + 1000 {LATER}"] if image == WHOLE else []
    statements += [f"DELETE FROM {table} WHERE id % 5 = 4"]
    return TypedTable(
        name,
        f"CREATE TABLE {table} (id INT PRIMARY KEY, {', '.join(f'c{place} {case.sql} NULL' for place, case in enumerate(columns))})",
        statements,
        [case.compared.format(f"c{place}") for place, case in enumerate(columns)],
    )


def _key_table(name: str, schema: str, case: ColumnCase, image: str) -> TypedTable:
    table, values = f"`{schema}`.`{name}`", case.literals[:FEW_KEYS]
    statements = [f"REPLACE INTO {table} VALUES ({value},{number})" for number, value in enumerate(values)]
    statements += [
        f"UPDATE {table} SET id = id + 100 WHERE id % 2 = 1",
        f"DELETE FROM {table} WHERE id = 0",
        *([f"UPDATE {table} SET v = {values[0]} WHERE id = 101"] if image == WHOLE else []),
        f"DELETE FROM {table} WHERE id = 2",
    ]
    create = f"CREATE TABLE {table} (v {case.sql} NOT NULL, id INT NOT NULL, PRIMARY KEY (v))"
    return TypedTable(name, create, statements, [case.compared.format("v")])
