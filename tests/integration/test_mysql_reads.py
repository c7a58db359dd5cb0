"""What a READ reads of a row of the sink, written back, is stored byte by byte as it was: for all types, with hostile values."""

from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import Connection

from applier.model.events import TableName
from applier.mysql.catalogue import describe
from applier.mysql.session import driver_of, execute_text
from applier.planner.port import TableDescription
from applier.sinks.mysql.dialect import MysqlDialect
from applier.sinks.mysql.session import Purpose, open_session
from applier.sinks.settings import SinkSettings
from tests.integration.literal_case import CASES, KEYED, Case

SCHEMA = "reads `%s:name"
QUOTED = "`reads ``%s:name`"
DIALECT = MysqlDialect()

MEMBERS = ",".join(f"'m{n}'" for n in range(64))
STORED = [
    ("double", ["'-0'", "0", "-1e-300"]),
    ("float", ["'-0'", "3.4028234663852886e38", "1.1754943508222875e-38"]),
    ("double(12,3)", ["1.005", "-99999999.999"]),
    ("float(7,4)", ["1.2345", "-0.5"]),
    ("int(8) zerofill", ["0", "42", "99999999"]),
    ("decimal(12,3) zerofill", ["7.5"]),
    (f"set({MEMBERS})", ["18446744073709551615", "9223372036854775808", "1", "0"]),
    ("enum('','a','it''s')", ["1", "2", "3"]),
    ("varchar(300) CHARACTER SET latin1", ["x'" + bytes(range(256)).hex() + "'"]),
    ("varchar(30) CHARACTER SET gbk", ["_gbk x'C4E3BAC3'", "_gbk x'A2E3815C'"]),
    ("char(30) CHARACTER SET utf16", ["_utf16 x'D83DDE00'", "'a''\\\\'"]),
    ("varchar(30) CHARACTER SET ucs2", ["_ucs2 x'00E90027'"]),
    ("mediumtext CHARACTER SET utf8mb3", ["_utf8mb3 x'E697A5'", "REPEAT('é\\'', 30000)"]),
    ("char(10) COLLATE utf8mb4_general_ci", ["'trailing  '", "''"]),
    ("varchar(10) COLLATE utf8mb4_general_ci", ["'trailing  '", "' '"]),
    ("longblob", ["REPEAT(x'00FF27', 100000)"]),
    ("json", ['\'{"a": [1.0, 1e100, "\\\\u0000", null, 18446744073709551615]}\'', "'\"it''s\"'"]),
    ("time", ["'-838:59:59'", "'00:00:00'"]),
    ("geometry", ["ST_GeomFromText('POINT(1 2)')", "ST_GeomFromText('LINESTRING(0 0,1 1)', 4326)"]),
]
"""Types and values as the server's own expressions: what upstream's protocol cannot bring, but a sink's row may hold."""


@pytest.fixture(scope="module")
def session(mysql_url: str) -> Iterator[Connection]:
    connection = open_session(SinkSettings(url=mysql_url), Purpose.WRITE)
    run(connection, f"DROP DATABASE IF EXISTS {QUOTED}")
    run(connection, f"CREATE DATABASE {QUOTED} DEFAULT CHARACTER SET utf8mb4")
    yield connection
    run(connection, f"DROP DATABASE {QUOTED}")
    connection.close()


def run(connection: Connection, statement: str) -> list[Any]:
    with driver_of(connection).cursor() as cursor:
        cursor.execute(statement)
        return list(cursor.fetchall())


def described(connection: Connection, name: str = "t") -> TableDescription:
    table = TableName(SCHEMA, name)
    return describe(connection, [table])[table.fold()]


def make(connection: Connection, sql_type: str) -> None:
    """Make the tables `t` and `kept`, empty and alike."""
    for name in ("t", "kept"):
        run(connection, f"DROP TABLE IF EXISTS {QUOTED}.{name}")
        run(connection, f"CREATE TABLE {QUOTED}.{name} (id int NOT NULL PRIMARY KEY, `v ``x` {sql_type} NULL DEFAULT NULL)")


def check(connection: Connection) -> None:
    """Read all rows of `t`, write them back, and compare the stored bytes with a copy."""
    table = described(connection)
    run(connection, f"INSERT INTO {QUOTED}.kept SELECT * FROM {QUOTED}.t")
    ids = sorted(number for (number,) in run(connection, f"SELECT id FROM {QUOTED}.t"))
    found = [
        row for text, _ in DIALECT.reads(table, ["id"], [[str(one)] for one in [*ids, 999]], ["v `x"]) for row in run(connection, text)
    ]
    assert sorted(number for number, _ in found) == list(range(len(ids)))
    for number, value in found:
        literal = DIALECT.read_literal(value)
        assert literal is not None
        ((text, _),) = DIALECT.replaces(table, ["id", "v `x"], [f"({ids[number]},{literal})"])
        _, warnings = execute_text(connection, text)
        assert [row for row in run(connection, "SHOW WARNINGS") if row[1] not in {1287, 3778, 3719}] == [] or warnings == 0
    # CHECKSUM TABLE is over the bytes of the rows.
    (one,), (other,) = (run(connection, f"CHECKSUM TABLE {QUOTED}.{name}") for name in ("t", "kept"))
    assert one[1] == other[1]


def make_with(session: Connection, sql_type: str, values: list[str]) -> None:
    make(session, sql_type)
    for number, value in enumerate(values):
        run(session, f"INSERT INTO {QUOTED}.t VALUES ({number},{value})")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.sql_type[:40])
def test_every_value_of_the_protocol_is_read_and_written_back_as_it_is(session: Connection, case: Case) -> None:
    make(session, case.sql_type)
    table = described(session)
    literal = DIALECT.literal(table.columns[1], case.mysql_type, is_bytes=case.is_bytes)
    for number, value in enumerate([*case.values, None]):
        ((text, _),) = DIALECT.replaces(table, ["id", "v `x"], [f"({number},{literal(value)})"])
        run(session, text)
    check(session)


@pytest.mark.parametrize(("sql_type", "values"), STORED, ids=lambda part: str(part)[:30])
def test_every_value_that_a_sink_may_hold_is_read_and_written_back_as_it_is(session: Connection, sql_type: str, values: list[str]) -> None:
    make_with(session, sql_type, values)
    check(session)


@pytest.mark.on_one_server("mysql", reason="MariaDB 10.11 has no vectors")
def test_vectors_are_read_and_written_back_as_they_are(session: Connection) -> None:
    make_with(session, "vector(3)", ["STRING_TO_VECTOR('[1,2.5,-3e10]')"])
    check(session)


@pytest.mark.on_one_server("mariadb", reason="MySQL has neither type")
@pytest.mark.parametrize(("sql_type", "value"), [("uuid", "'123e4567-e89b-12d3-a456-426655440000'"), ("inet6", "'2001:db8::1'")])
def test_types_of_mariadb_are_read_and_written_back_as_they_are(session: Connection, sql_type: str, value: str) -> None:
    make_with(session, sql_type, [value])
    check(session)


def test_a_value_whose_digits_are_more_than_a_packet_is_no_literal(session: Connection) -> None:
    make(session, "longblob")
    (limit,) = run(session, "SELECT @@max_allowed_packet")[0]
    run(session, f"INSERT INTO {QUOTED}.t VALUES (1,REPEAT('x',{limit} DIV 2 + 1000))")
    ((text, _),) = DIALECT.reads(described(session), ["id"], [["1"]], ["v `x"])
    ((_, value),) = run(session, text)
    assert DIALECT.read_literal(value) is None


@pytest.mark.parametrize("compound", [False, True], ids=["single key", "compound key"])
def test_a_key_reads_its_row_and_no_other(session: Connection, subtests: pytest.Subtests, *, compound: bool) -> None:
    for case in KEYED:
        with subtests.test(str(case)):
            run(session, f"DROP TABLE IF EXISTS {QUOTED}.t")
            key = "v, id" if compound else "v"
            run(session, f"CREATE TABLE {QUOTED}.t (id int NOT NULL, v {case.sql_type} NOT NULL, PRIMARY KEY ({key}))")
            table = described(session)
            literal = DIALECT.literal(table.columns[1], case.mysql_type, is_bytes=case.is_bytes)
            for number, value in enumerate(case.values):
                run(session, f"INSERT INTO {QUOTED}.t VALUES ({number + 100},{literal(value)})")
            columns = key.split(", ")
            keys = [[literal(value), str(number + 100)][: len(columns)] for number, value in enumerate(case.values)]
            for chosen in (keys, *([one] for one in keys)):
                found = [row for text, _ in DIALECT.reads(table, columns, chosen, ["id"]) for row in run(session, text)]
                first = keys.index(chosen[0])
                assert sorted((number, int(value)) for number, value in found) == [(n, n + first + 100) for n in range(len(chosen))]


def test_keys_that_are_null_or_ignore_case_find_their_rows(session: Connection) -> None:
    run(session, f"DROP TABLE IF EXISTS {QUOTED}.t")
    run(session, f"CREATE TABLE {QUOTED}.t (id int NOT NULL, a int NULL, b varchar(9) COLLATE utf8mb4_general_ci NULL)")
    run(session, f"INSERT INTO {QUOTED}.t VALUES (1,NULL,'x'),(2,3,'ÄB'),(3,3,NULL)")
    keys = [["NULL", "'X'"], ["3", "'äb'"], ["3", "NULL"], ["4", "'x'"]]
    found = [row for text, _ in DIALECT.reads(described(session), ["a", "b"], keys, ["id"]) for row in run(session, text)]
    assert sorted(found) == [(0, "1"), (1, "2"), (2, "3")]


def test_reads_are_cut_by_rows_and_by_bytes(session: Connection) -> None:
    run(session, f"DROP TABLE IF EXISTS {QUOTED}.t")
    run(session, f"CREATE TABLE {QUOTED}.t (id varchar(700) PRIMARY KEY, v int)")
    table = described(session)
    for number in range(0, 250, 50):
        run(session, f"INSERT INTO {QUOTED}.t VALUES (CONCAT({number}, REPEAT('x',500)),{number})")
    keys = [[f"'{number}{'x' * 500}'"] for number in range(250)]
    for dialect, least in ((DIALECT, 3), (MysqlDialect(max_packet_bytes=20_000), 25)):
        statements = list(dialect.reads(table, ["id"], keys, ["v"]))
        assert sum(number for _, number in statements) == len(keys)
        assert len(statements) >= least
        assert all(len(text) < dialect.max_packet_bytes for text, _ in statements)
        found = [row for text, _ in statements for row in run(session, text)]
        assert sorted(found) == [(number, str(number)) for number in range(0, 250, 50)]
