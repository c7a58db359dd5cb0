"""What a READ reads of a row of the file, written back, is stored as it was: storage class and bytes."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from math import inf

import pytest

from applier.planner.port import TableDescription
from applier.sinks.sqlite.dialect import SqliteDialect
from tests.builders.planning import sink_column

DIALECT = SqliteDialect()
TABLE = TableDescription(
    schema="shop",
    table="t",
    columns=(sink_column("a"), sink_column("b"), sink_column('v "x')),
    unique_keys=(("a", "b"),),
    primary_key=("a", "b"),
)
VALUES = [
    "CAST(x'610062' AS TEXT)",
    "CAST(x'fffe27' AS TEXT)",
    "'it''s \\ é😀'",
    "''",
    "x''",
    "x'0027ff'",
    "9223372036854775807",
    "-9223372036854775808",
    "'18446744073709551615'",
    "0.1",
    "-0.0",
    "5e-324",
    "1.7976931348623157e308",
    "-1.0/3",
    "9e999",
    "1.0",
    "NULL",
]


@pytest.fixture
def file() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute('CREATE TABLE "shop.t" (a INTEGER, b TEXT, "v ""x" ANY, PRIMARY KEY (a, b)) STRICT')
        yield connection


def test_every_storage_class_is_read_and_written_back_as_it_is(file: sqlite3.Connection) -> None:
    for number, value in enumerate(VALUES):
        file.execute(f"INSERT INTO \"shop.t\" VALUES ({number}, 'k''', {value})")
    before = kept(file)
    keys = [[str(number), "'k'''"] for number in range(len(VALUES))]
    ((text, rows),) = DIALECT.reads(TABLE, ["a", "b"], [*keys, ["99", "'k'''"], ["0", "'K'''"]], ['v "x'])
    assert rows == len(VALUES) + 2
    found = file.execute(text).fetchall()
    assert sorted(number for number, _ in found) == list(range(len(VALUES)))
    for number, value in found:
        literal = DIALECT.read_literal(value)
        for statement, _ in DIALECT.replaces(TABLE, ["a", "b", 'v "x'], [f"({number},'k''',{literal})"]):
            file.execute(statement)
    assert kept(file) == before


def kept(file: sqlite3.Connection) -> list[tuple[object, ...]]:
    rows = file.execute(
        'SELECT a, typeof("v ""x"), CASE typeof("v ""x") WHEN \'real\' THEN "v ""x" ELSE hex("v ""x") END FROM "shop.t" ORDER BY a'
    )
    # repr tells -0.0 from 0.0.
    return [(number, kind, repr(value)) for number, kind, value in rows]


def test_a_key_that_is_null_is_found_and_no_keys_are_no_statement(file: sqlite3.Connection) -> None:
    file.execute('CREATE TABLE "shop.n" (a INTEGER, "v ""x" REAL) STRICT')
    file.execute('INSERT INTO "shop.n" VALUES (NULL, 9e999)')
    table = TableDescription(schema="shop", table="n", columns=(sink_column("a"), sink_column('v "x')), unique_keys=())
    ((text, _),) = DIALECT.reads(table, ["a"], [["NULL"]], ['v "x'])
    assert file.execute(text).fetchall() == [(0, inf)]
    assert list(DIALECT.reads(table, ["a"], [], ['v "x'])) == []
