"""Every DDL type that TiCDC replicates, on SQLite: the file's schema afterwards, or the error that stops the replica."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from applier.ddl.table_draft import ColumnDefinition, IndexDefinition
from applier.model.errors import ApplierError
from applier.model.events import TableName
from applier.sinks.sqlite.catalogue import find_objects, read_definition
from applier.sinks.sqlite.names import index_name, quote, stored_name
from tests.rig.ddl_type_feed import SCHEMA, feed_of
from tests.rig.ddl_types import CASES, VIEW, Shown, Stops, TypeCase
from tests.rig.local_replica import sqlite_replica


@pytest.mark.parametrize("case", CASES, ids=str)
def test_d13_a_ddl_of_every_type_is_translated_or_refused_by_name(tmp_path: Path, case: TypeCase) -> None:
    replica = sqlite_replica(tmp_path, feed_of(case))
    expected = case.expected("sqlite")
    if isinstance(expected, Stops):
        with pytest.raises(ApplierError, match=expected.words) as stopped:
            replica.catch_up()
        assert stopped.value.remedy
        assert case.ddl in str(stopped.value)
        return
    replica.catch_up()
    with closing(sqlite3.connect(tmp_path / "replica.db")) as connection:
        assert {name: shown(connection, name) for name in expected} == expected


def shown(connection: sqlite3.Connection, name: str) -> Shown | str | None:
    """Describe a table as the file shows it."""
    schema, _, table = name.rpartition(".")
    entry = find_objects(connection).get(TableName(schema or SCHEMA, table).fold())
    if entry is None:
        return None
    if entry.is_view:
        return VIEW
    definition = read_definition(connection, entry)
    assert definition is not None
    present = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'index'")}
    keys = [f"PRIMARY({','.join(part.column for part in definition.primary_key)})"] if definition.primary_key else []
    for index in sorted(definition.indexes, key=lambda index: index.name):
        assert index_name(definition.name, index.name) in present
        keys.append(_key(index))
    ((rows,),) = connection.execute(f"SELECT COUNT(*) FROM {quote(stored_name(entry.name))}").fetchall()
    return Shown(columns=", ".join(map(_column, definition.columns)), keys=", ".join(keys), rows=rows)


def _column(column: ColumnDefinition) -> str:
    default = "" if column.default is None else f"={column.default.text}"
    return f"{column.name} {column.type}{'' if column.nullable else '!'}{default}"


def _key(index: IndexDefinition) -> str:
    return f"{'u:' if index.unique else ''}{index.name}({','.join(part.column or part.expression for part in index.parts)})"
