"""`applier verify` of an SQLite sink: what the sink stores for a value equals what the server has, and nothing else does."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from applier.model.events import DdlEvent, TableName
from applier.model.position import Ts
from applier.planner.port import TableDescription
from applier.sinks.sqlite.catalogue import describe
from applier.sinks.sqlite.dialect import SqliteDialect
from applier.sinks.sqlite.schema_change import apply_ddl
from applier.verify.difference import RowState
from tests.integration.literal_case import BIN, LATIN, Case
from tests.integration.test_verify_types import EVERY_CASE, changes, fill
from tests.rig.verifying import of_schemas, run, verify, wrong

SCHEMA = "applier_test_types"
DIALECT = SqliteDialect()


@pytest.fixture
def upstream(mysql_url: str) -> Iterator[str]:
    run(mysql_url, f"DROP DATABASE IF EXISTS {SCHEMA}", f"CREATE DATABASE {SCHEMA} DEFAULT CHARACTER SET utf8mb4")
    yield mysql_url
    run(mysql_url, f"DROP DATABASE {SCHEMA}")


class Sink:
    """A file as the SQLite sink makes it: its DDL translator and its literals."""

    def __init__(self, path: Path) -> None:
        self.url = f"sqlite:///{path}"
        self.connection = sqlite3.connect(path, isolation_level=None)

    def ddl(self, table: str, query: str) -> None:
        self.connection.execute("BEGIN")
        apply_ddl(self.connection, DdlEvent(commit_ts=Ts(5), schema=SCHEMA, table=table, query=query, ddl_type=3), "UTC")
        self.connection.execute("COMMIT")

    def table(self, name: str) -> TableDescription:
        return describe(self.connection, [TableName(SCHEMA, name)])[TableName(SCHEMA, name).fold()]

    def write(self, name: str, case: Case, values: list[object]) -> None:
        """Store values as rows 0, 1, …, as a segment would."""
        table = self.table(name)
        literal = DIALECT.literal(table.columns[1], case.mysql_type, is_bytes=case.is_bytes)
        rows = [f"({at},{literal(value)})" for at, value in enumerate(values)]
        for statement, _ in DIALECT.replaces(table, ["id", "v"], rows):
            self.connection.execute(statement)


@pytest.fixture
def sink(tmp_path: Path) -> Iterator[Sink]:
    made = Sink(tmp_path / "replica.db")
    with closing(made.connection):
        yield made


def cases() -> dict[str, Case]:
    return {f"t{at}": case for at, case in enumerate(EVERY_CASE)}


def test_every_type_and_value_is_equal_where_it_is_equal_and_every_change_is_found_and_repaired(upstream, sink, tmp_path):
    fill(upstream, cases())
    for name, case in cases().items():
        sink.ddl(name, f"CREATE TABLE {SCHEMA}.{name} (id INT NOT NULL PRIMARY KEY, v {case.sql_type} NULL DEFAULT NULL)")
        sink.write(name, case, [*case.values, None])
    assert wrong(verify(upstream, sink.url, of_schemas(SCHEMA))) == {}
    for name, case in cases().items():
        sink.write(name, case, [*case.values[1:], None, case.values[0]])
    report = verify(upstream, sink.url, of_schemas(SCHEMA), fix_sql=tmp_path / "fix.sql")
    found = {table.name.table: (table.count(RowState.DIFFERENT), set(table.columns)) for table in report.tables}
    assert found == {name: (changes(case), {"v"}) for name, case in cases().items()}
    sink.connection.executescript((tmp_path / "fix.sql").read_bytes().decode())
    assert wrong(verify(upstream, sink.url, of_schemas(SCHEMA))) == {}


@pytest.mark.parametrize(
    "key",
    ["BIGINT UNSIGNED", "BIGINT", "DECIMAL(12,3)", "TIME(2)", "DATETIME(3)", f"VARCHAR(20) {BIN}", f"VARCHAR(20) {LATIN}", "VARBINARY(9)"],
)
def test_rows_are_found_by_keys_of_every_kind(upstream, sink, key):
    values = {
        "BIGINT UNSIGNED": ["0", "1", "9223372036854775807", "9223372036854775808", "10000000000000000000", "18446744073709551615"],
        "BIGINT": ["-9223372036854775808", "-10", "-9", "0", "9", "10", "9223372036854775807"],
        "DECIMAL(12,3)": ["-10.000", "-9.500", "0.000", "9.000", "10.000", "100000000.001"],
        "TIME(2)": ["'-838:59:59.00'", "'-00:00:01.00'", "'00:00:00.00'", "'09:00:00.50'", "'838:59:59.00'"],
        "DATETIME(3)": ["'0000-00-00 00:00:00.000'", "'1999-12-31 23:59:59.999'", "'2020-01-01 00:00:00.000'"],
        "VARBINARY(9)": ["x''", "x'00'", "x'61'", "x'6100'", "x'ff'"],
    }.get(key, ["''", "'A'", "'B'", "'a'", "'aa'", "'é'", "'z'"])
    run(upstream, f"CREATE TABLE {SCHEMA}.t (k {key} NOT NULL, v INT, PRIMARY KEY (k))")
    sink.ddl("t", f"CREATE TABLE {SCHEMA}.t (k {key} NOT NULL, v INT, PRIMARY KEY (k))")
    for value in values:
        run(upstream, f"INSERT INTO {SCHEMA}.t VALUES ({value}, 1)")
        stored = f"'{value}'" if key.startswith("DECIMAL") or (key == "BIGINT UNSIGNED" and int(value) >= 2**63) else value
        sink.connection.execute(f'INSERT INTO "{SCHEMA}.t" VALUES ({stored}, 1)')
    for chunk_rows in (1, 2, 100):
        report = verify(upstream, sink.url, of_schemas(SCHEMA), chunk_rows=chunk_rows)
        assert (wrong(report), report.tables[0].upstream.rows) == ({}, len(values))
    sink.connection.execute(f'UPDATE "{SCHEMA}.t" SET v = 2')
    for chunk_rows in (1, 2, 100):
        assert wrong(verify(upstream, sink.url, of_schemas(SCHEMA), chunk_rows=chunk_rows)) == {f"{SCHEMA}.t": (0, 0, len(values))}


def test_a_file_that_is_not_there_is_not_created(upstream, tmp_path):
    with pytest.raises(Exception, match="there is no database file yet"):
        verify(upstream, f"sqlite:///{tmp_path}/absent.db", of_schemas(SCHEMA))
    assert not (tmp_path / "absent.db").exists()
