"""Migrations from zero give exactly sql/schema_sqlite.sql; repeated ones change nothing."""

import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Connection, NullPool, create_engine, text

from applier.database.carried_files import read_text
from applier.model.errors import FatalSinkError
from applier.sinks.bookkeeping import migration
from applier.sinks.bookkeeping.bookkeeping import Bookkeeping
from applier.sinks.sqlite.bookkeeping import DIALECT

BOOKS = Bookkeeping("replica", DIALECT)


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[Connection]:
    engine = create_engine(f"sqlite:///{tmp_path}/replica.db", poolclass=NullPool)
    with engine.begin() as connection:
        yield connection


def definitions(rows: list[str]) -> list[str]:
    return sorted(re.sub(r"\s+|\"|CONSTRAINT \w+_pkc ", "", row) for row in rows)


def test_migrations_from_zero_give_exactly_the_schema(connection: Connection, tmp_path: Path) -> None:
    assert migration.upgrade(connection, BOOKS) == ("0001", "0002", "0003", "0004", "0006", "0007", "0008", "0009", "0010", "0011")
    listing = "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL"
    with sqlite3.connect(tmp_path / "present.db") as present:
        present.executescript(read_text("sql/schema_sqlite.sql"))
        expected = [row[0] for row in present.execute(listing)]
    present.close()
    assert definitions(list(connection.execute(text(listing)).scalars())) == definitions(expected)


def test_a_second_migration_changes_nothing(connection: Connection) -> None:
    migration.upgrade(connection, BOOKS)
    assert migration.upgrade(connection, BOOKS) == ()
    migration.check(connection, BOOKS)


def test_a_migration_that_died_half_way_is_completed(connection: Connection) -> None:
    connection.execute(text("CREATE TABLE applier_progress (name TEXT PRIMARY KEY)"))
    assert migration.upgrade(connection, BOOKS) == ("0001", "0002", "0003", "0004", "0006", "0007", "0008", "0009", "0010", "0011")


def test_missing_tables_are_named_with_the_command_that_makes_them(connection: Connection) -> None:
    with pytest.raises(FatalSinkError, match="applier migrate"):
        migration.check(connection, BOOKS)


def test_tables_of_a_newer_applier_are_left_alone(connection: Connection) -> None:
    migration.upgrade(connection, BOOKS)
    connection.execute(text("UPDATE applier_schema_version SET version_num = '9999'"))
    with pytest.raises(FatalSinkError, match="newer"):
        migration.upgrade(connection, BOOKS)
