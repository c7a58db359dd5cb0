"""`applier verify` between servers: every type and value is equal when it is equal, and different when it is different."""

from collections.abc import Iterator
from itertools import pairwise

import pytest

from applier.model.events import TableName
from applier.mysql.catalogue import describe
from applier.mysql.session import execute_text
from applier.planner.port import WireColumn
from applier.sinks.mysql.dialect import MysqlDialect
from applier.sinks.mysql.session import Purpose, open_session
from applier.sinks.settings import SinkSettings
from applier.verify.difference import RowState
from tests.integration.literal_case import CASES, KEYED, Case, exact_row
from tests.rig.database import Databases, Kind
from tests.rig.verifying import execute_file, of_schemas, read, run, verify, wrong

SCHEMA = "applier_test_types"
DIALECT = MysqlDialect()
LABELS = ",".join(f"'m{at}'" for at in range(64))
EVERY_CASE = [
    *CASES,
    Case(f"set({LABELS})", 248, 0, [0, 1, 2**62, 2**63, 2**64 - 1]),
    Case("int(9) zerofill", 3, 129, [0, 7, 123456789]),
    Case("double(10,2)", 5, 1, [0.0, 1.5, -12345678.25]),
    Case("bit(1)", 16, 129, [0, 1]),
    Case("longtext", 251, 0, ["x" * 3_000_000, "x" * 2_999_999 + "y"]),
    Case("longblob", 251, 1, [b"\0" * 3_000_000, b"\0" * 2_999_999 + b"\1"]),
]
MARIADB, MYSQL = Kind.MARIADB, Kind.MYSQL


@pytest.fixture(params=[(MARIADB, MYSQL), (MYSQL, MARIADB)], ids=["MariaDB to MySQL", "MySQL to MariaDB"])
def sides(request: pytest.FixtureRequest, databases: Databases) -> Iterator[tuple[str, str]]:
    """Upstream and sink: one server of each kind, with an empty schema."""
    urls = tuple(databases.plain(kind).url for kind in request.param)
    for url in urls:
        run(url, f"DROP DATABASE IF EXISTS {SCHEMA}", f"CREATE DATABASE {SCHEMA} DEFAULT CHARACTER SET utf8mb4")
    yield urls
    for url in urls:
        run(url, f"DROP DATABASE {SCHEMA}")


def fill(url: str, cases: dict[str, Case]) -> None:
    """Make a table for each case, with a row for each value and one for NULL."""
    session = open_session(SinkSettings(url=url), Purpose.WRITE)
    try:
        for name, case in cases.items():
            execute_text(session, f"CREATE TABLE {SCHEMA}.{name} (id INT NOT NULL PRIMARY KEY, v {case.sql_type} NULL DEFAULT NULL)")
            table = describe(session, [TableName(SCHEMA, name)])[TableName(SCHEMA, name).fold()]
            columns = [WireColumn(table.columns[0], 3), WireColumn(table.columns[1], case.mysql_type, case.is_bytes)]
            rows = map(exact_row(DIALECT, columns), enumerate([*case.values, None]))
            for text, _ in DIALECT.replaces(table, ["id", "v"], rows):
                execute_text(session, text)
        session.commit()
    finally:
        session.close()


def test_every_type_and_value_is_equal_where_it_is_equal_and_every_change_is_found_and_repaired(sides, tmp_path):
    upstream, sink = sides
    cases = {f"t{at}": case for at, case in enumerate(EVERY_CASE)}
    for url in sides:
        fill(url, cases)
    assert wrong(verify(upstream, sink, of_schemas(SCHEMA))) == {}
    # Each value takes the place of its neighbour, and NULL that of the last one: the smallest changes that the pools have.
    for name, case in cases.items():
        run(sink, f"DELETE FROM {SCHEMA}.{name}", *shifted(sink, name, case))
    report = verify(upstream, sink, of_schemas(SCHEMA), fix_sql=tmp_path / "fix.sql")
    found = {table.name.table: (table.count(RowState.DIFFERENT), set(table.columns)) for table in report.tables}
    assert found == {name: (changes(case), {"v"}) for name, case in cases.items()}
    execute_file(sink, tmp_path / "fix.sql")
    assert wrong(verify(upstream, sink, of_schemas(SCHEMA))) == {}


def test_rows_are_found_by_keys_of_every_type(sides):
    upstream, sink = sides
    keyed = {f"k{at}": case for at, case in enumerate(KEYED)}
    for url in sides:
        session = open_session(SinkSettings(url=url), Purpose.WRITE)
        for name, case in keyed.items():
            execute_text(session, f"CREATE TABLE {SCHEMA}.{name} (id INT NOT NULL, v {case.sql_type} NOT NULL, PRIMARY KEY (v))")
            table = describe(session, [TableName(SCHEMA, name)])[TableName(SCHEMA, name).fold()]
            columns = [WireColumn(table.columns[0], 3), WireColumn(table.columns[1], case.mysql_type, case.is_bytes)]
            # Some values are stored as the same number: the later one stays.
            for text, _ in DIALECT.replaces(table, ["id", "v"], map(exact_row(DIALECT, columns), enumerate(case.values))):
                execute_text(session, text)
        session.commit()
        session.close()
    for chunk_rows in (2, 50_000):
        assert wrong(verify(upstream, sink, of_schemas(SCHEMA), chunk_rows=chunk_rows)) == {}
    rows = {name: read(upstream, f"SELECT COUNT(*), MIN(id) FROM {SCHEMA}.{name}")[0] for name in keyed}
    for name, (_, first) in rows.items():
        run(sink, f"UPDATE {SCHEMA}.{name} SET id = id + 1000", f"DELETE FROM {SCHEMA}.{name} WHERE id = {first + 1000}")
    for chunk_rows in (2, 50_000):
        found = wrong(verify(upstream, sink, of_schemas(SCHEMA), chunk_rows=chunk_rows))
        assert found == {f"{SCHEMA}.{name}": (1, 0, count - 1) for name, (count, _) in rows.items()}


def test_documents_are_equal_however_a_server_writes_them(sides):
    upstream, sink = sides
    for url in sides:
        run(url, f"CREATE TABLE {SCHEMA}.j (id INT PRIMARY KEY, v JSON)")
        documents = ['{"b":1,"aa":[1.0,2e2,  null],"c":{}}', "[true,1,18446744073709551615,1e-7]", '"é\\\\u00e9\\\\n"', "-0.5", "null"]
        run(url, *(f"INSERT INTO {SCHEMA}.j VALUES ({at}, '{document}')" for at, document in enumerate(documents)))
    assert read(upstream, f"SELECT v FROM {SCHEMA}.j WHERE id = 0") != read(sink, f"SELECT v FROM {SCHEMA}.j WHERE id = 0")
    assert wrong(verify(upstream, sink, of_schemas(SCHEMA))) == {}
    run(
        sink,
        f"""UPDATE {SCHEMA}.j SET v = '{{"b":1,"aa":[1.0,2e2,null],"c":[]}}' WHERE id = 0""",
        f"UPDATE {SCHEMA}.j SET v = NULL WHERE id = 4",
    )
    assert wrong(verify(upstream, sink, of_schemas(SCHEMA))) == {f"{SCHEMA}.j": (0, 0, 2)}


def shifted(sink: str, name: str, case: Case) -> list[str]:
    """Return the statements that store each value under the number of the one before it."""
    session = open_session(SinkSettings(url=sink), Purpose.CONTROL)
    try:
        table = describe(session, [TableName(SCHEMA, name)])[TableName(SCHEMA, name).fold()]
    finally:
        session.close()
    columns = [WireColumn(table.columns[0], 3), WireColumn(table.columns[1], case.mysql_type, case.is_bytes)]
    rows = map(exact_row(DIALECT, columns), enumerate([*case.values[1:], None, case.values[0]]))
    return [text for text, _ in DIALECT.replaces(table, ["id", "v"], rows)]


def changes(case: Case) -> int:
    """Return how many rows ``shifted`` changes: some values are stored as the same number."""
    stored = [case.stored(value) for value in case.values]
    return sum(one != other for one, other in pairwise([*stored, None, stored[0]]))
