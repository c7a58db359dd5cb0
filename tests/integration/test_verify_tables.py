"""`applier verify` between servers: ranges, keys, names, sizes; interrupted runs; rows on their way."""

import threading
from collections.abc import Iterator
from contextlib import closing
from random import Random

import pytest

from applier.model.errors import FatalSinkError
from applier.mysql.literals import text
from applier.verify.comparison import LEAF_ROWS, Patience
from applier.verify.difference import Report, RowState
from tests.integration.mysql_replica import commit_at, replica
from tests.rig.mysql_oracle import connect
from tests.rig.verifying import ComparedTables, Listener, execute_file, read, run, verify, wrong

UP, DOWN = "applier_test_up", "applier_test_down"
TABLES = ComparedTables(lambda name: name._replace(schema=DOWN) if name.schema == UP else None)
HOSTILE = ["a`b", "c.d", "täble %s:x", "e'f\"g", "'; DROP TABLE t; --", "select", "1", "x\\y", "q?%(n)s"]
NUMBERS = "(WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM s WHERE n < {rows}) SELECT n FROM s) q"


@pytest.fixture
def url(mysql_url: str) -> Iterator[str]:
    for schema in (UP, DOWN):
        run(mysql_url, f"DROP DATABASE IF EXISTS {schema}", f"CREATE DATABASE {schema} DEFAULT CHARACTER SET utf8mb4")
    yield mysql_url
    run(mysql_url, f"DROP DATABASE {UP}", f"DROP DATABASE {DOWN}")


def both(url: str, *statements: str) -> None:
    """Run statements in upstream's schema and in the sink's; ``{}`` stands for the schema."""
    for schema in (UP, DOWN):
        run(url, *(statement.replace("{}", schema) for statement in statements))


def compare(url: str, **options) -> Report:
    return verify(url, url, TABLES, **options)


@pytest.mark.parametrize("rows", [0, 1, 2, 99, 100, 101, 250])
@pytest.mark.parametrize("chunk_rows", [1, 100])
def test_each_row_is_compared_exactly_once(url, rows, chunk_rows):
    both(url, "CREATE TABLE {}.t (id INT PRIMARY KEY, v INT)")
    if rows:
        both(url, f"INSERT INTO {{}}.t SELECT n * 7, n FROM {NUMBERS.format(rows=rows)}")
    listener = Listener()
    report = compare(url, chunk_rows=chunk_rows, listener=listener)
    assert wrong(report) == {}
    assert (report.tables[0].upstream.rows, report.tables[0].sink.rows, listener.rows) == (rows, rows, rows)
    assert report.tables[0].ranges == rows // chunk_rows + 1


def test_rows_are_found_in_a_composite_key_whatever_a_range_holds(url):
    key = "a INT NOT NULL, b VARCHAR(10) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL, c DATE NOT NULL"
    both(url, f"CREATE TABLE {{}}.t (v INT, {key}, PRIMARY KEY (a, b, c))")
    both(
        url, f"INSERT INTO {{}}.t SELECT n, n DIV 100, CONCAT('k', n MOD 7), '2020-01-01' + INTERVAL n DAY FROM {NUMBERS.format(rows=900)}"
    )
    run(url, f"DELETE FROM {DOWN}.t WHERE v IN (1, 450, 899)", f"UPDATE {DOWN}.t SET v = -v WHERE v IN (100, 200)")
    run(url, f"INSERT INTO {DOWN}.t VALUES (0, 4, 'k0', '1999-01-01'), (0, 99, 'zz', '2000-01-01')")
    for chunk_rows in (7, 100, 5000):
        assert wrong(compare(url, chunk_rows=chunk_rows)) == {f"{DOWN}.t": (3, 2, 2)}


@pytest.mark.parametrize("collations", [("utf8mb4_general_ci", "utf8mb4_general_ci"), ("utf8mb4_unicode_ci", "utf8mb4_bin")])
def test_keys_that_differ_only_in_case_are_different_rows_and_are_repaired(url, collations, tmp_path):
    for schema, collation in zip((UP, DOWN), collations, strict=True):
        run(url, f"CREATE TABLE {schema}.t (k VARCHAR(20) COLLATE {collation} PRIMARY KEY, v INT)")
    both(url, f"INSERT INTO {{}}.t SELECT CONCAT('key ', n), n FROM {NUMBERS.format(rows=300)}")
    run(url, f"UPDATE {DOWN}.t SET k = 'KEY 5' WHERE k = 'key 5'", f"UPDATE {DOWN}.t SET k = 'éa' WHERE k = 'key 7'")
    assert wrong(compare(url, chunk_rows=10, fix_sql=tmp_path / "fix.sql")) == {f"{DOWN}.t": (2, 2, 0)}
    execute_file(url, tmp_path / "fix.sql")
    assert wrong(compare(url, chunk_rows=10)) == {}


def test_keys_with_odd_characters_divide_the_rows_into_ranges_that_hold_each_once(url):
    both(url, "CREATE TABLE {}.t (k VARCHAR(20) COLLATE utf8mb4_bin PRIMARY KEY)")
    both(
        url, "INSERT INTO {}.t SELECT CONCAT(CHAR(n DIV 8 USING utf8mb4), CHAR(n MOD 8 + 7 USING utf8mb4)) FROM " + NUMBERS.format(rows=900)
    )
    both(url, r"INSERT INTO {}.t VALUES (''), ('\0'), ('\\'), (''''), ('a\tb'), ('😀'), ('%s'), (':x')")
    for chunk_rows in (1, 13):
        report = compare(url, chunk_rows=chunk_rows)
        assert wrong(report) == {}
        assert report.tables[0].upstream.rows == read(url, f"SELECT COUNT(*) FROM {UP}.t")[0][0]


def test_a_table_whose_order_is_not_known_is_compared_by_parts_of_it(url):
    rows = LEAF_ROWS * 3
    both(url, "CREATE TABLE {}.t (k ENUM('b','a') NOT NULL, n INT NOT NULL, v INT, PRIMARY KEY (k, n))")
    both(url, f"INSERT INTO {{}}.t SELECT 1 + n MOD 2, n, n FROM {NUMBERS.format(rows=1000)}")
    both(url, *(f"INSERT INTO {{}}.t SELECT k, n + {at * 1000}, v FROM {{}}.t WHERE n <= 1000" for at in range(1, rows // 1000)))
    run(url, f"UPDATE {DOWN}.t SET v = 0 WHERE n IN (5, 6, 7000)", f"DELETE FROM {DOWN}.t WHERE n = 8000")
    report = compare(url, chunk_rows=100)
    assert wrong(report) == {f"{DOWN}.t": (1, 0, 3)}
    assert report.tables[0].ranges == 1


def test_a_limit_of_differences_ends_the_descent_and_is_named(url):
    both(url, "CREATE TABLE {}.t (id INT PRIMARY KEY, v INT)")
    run(url, f"INSERT INTO {UP}.t SELECT n, n FROM {NUMBERS.format(rows=900)}")
    (table,) = compare(url, most_differences=10, jobs=1).tables
    assert (table.count(RowState.MISSING), table.is_cut, table.is_equal) == (10, True, False)


def test_a_table_without_a_key_is_compared_as_a_whole(url):
    both(url, "CREATE TABLE {}.t (v INT NULL, w VARCHAR(9) NULL)", "INSERT INTO {}.t VALUES (1,'a'),(1,'a'),(2,NULL),(NULL,'2')")
    assert wrong(compare(url)) == {}
    run(url, f"DELETE FROM {DOWN}.t WHERE v = 1", f"INSERT INTO {DOWN}.t VALUES (7,'b'),(7,'b')")
    assert wrong(compare(url)) == {f"{DOWN}.t": "no key"}


def test_two_rows_that_have_swapped_their_values_are_found(url):
    both(url, "CREATE TABLE {}.t (id INT PRIMARY KEY, v INT)", "INSERT INTO {}.t VALUES (11, 25), (12, 26)")
    run(url, f"UPDATE {DOWN}.t SET v = 51 - v")
    assert wrong(compare(url)) == {f"{DOWN}.t": (0, 0, 2)}


def test_values_that_would_look_alike_when_joined_are_different(url):
    both(url, "CREATE TABLE {}.t (id INT PRIMARY KEY, a VARCHAR(20), b VARCHAR(20), c BLOB, d TEXT)")
    run(url, f"INSERT INTO {UP}.t VALUES (1,'x,1','y','',''),(2,NULL,'','',''),(3,'','','a','b'),(4,'1,',',','',''),(5,NULL,'x','','')")
    run(url, f"INSERT INTO {DOWN}.t VALUES (1,'x','1,y','',''),(2,'',NULL,'',''),(3,'','','ab',''),(4,'1',',,','',''),(5,'x',NULL,'','')")
    assert wrong(compare(url)) == {f"{DOWN}.t": (0, 0, 5)}


def test_hostile_names_of_schemas_tables_and_columns_are_only_names(url, tmp_path):
    names = HOSTILE
    columns = ", ".join(f"`{name.replace('`', '``')}` VARCHAR(20)" for name in names)
    for name in names:
        table = name.replace("`", "``")
        both(url, f"CREATE TABLE {{}}.`{table}` (id INT PRIMARY KEY, {columns})", f"INSERT INTO {{}}.`{table}` (id) VALUES (1)")
        run(url, f"UPDATE {DOWN}.`{table}` SET `{table}` = 'x'")
    report = compare(url, fix_sql=tmp_path / "fix.sql")
    assert {table.name.table: dict(table.columns) for table in report.tables} == {name: {name: 1} for name in names}
    execute_file(url, tmp_path / "fix.sql")
    assert wrong(compare(url)) == {}


NARROWER = {
    "s": ("VARCHAR(6)", "VARCHAR(3)", "'abc'", "'abcdef'"),
    "x": ("TEXT CHARACTER SET utf8mb4", "TEXT CHARACTER SET latin1", "'é'", "'語'"),
    "b": ("VARBINARY(6)", "VARBINARY(3)", "x'0102'", "x'01020304'"),
    "i": ("INT", "TINYINT", "100", "1000"),
    "d": ("DECIMAL(10,4)", "DECIMAL(6,2)", "1.25", "1.255"),
    "m": ("DECIMAL(10,4)", "DECIMAL(6,4)", "1.25", "100.25"),
    "n": ("INT NULL", "INT NOT NULL", "1", "NULL"),
    "t": ("DATETIME(3)", "DATETIME", "'2026-01-01 00:00:00'", "'2026-01-01 00:00:00.5'"),
    "e": ("ENUM('a','b')", "ENUM('a')", "'a'", "'b'"),
}
"""Column: its type upstream and in the sink, a value that both hold, and one that only upstream holds."""


def test_a_repair_writes_no_cut_value_and_leaves_out_rows_that_the_sink_cannot_hold(url, tmp_path):
    for schema, at in ((UP, 0), (DOWN, 1)):
        for name, case in NARROWER.items():
            # o: an ENUM of ordinal 0, which upstream may hold, and which no strict session writes.
            run(url, f"CREATE TABLE {schema}.{name} (id INT PRIMARY KEY, {name} {case[at]}, o ENUM('p','q'))")
    for name, (_, _, fits, wide) in NARROWER.items():
        run(url, "SET sql_mode = ''", f"INSERT INTO {UP}.{name} VALUES (1,{fits},'p'), (2,{wide},'p'), (3,{fits},0), (4,{wide},0)")
        run(url, f"INSERT INTO {DOWN}.{name} VALUES (2,{fits},'p')")
    report = compare(url, fix_sql=tmp_path / "fix.sql")
    assert wrong(report) == {f"{DOWN}.{name}": (3, 0, 1) for name in NARROWER}
    assert report.unwritten == 2 * len(NARROWER)
    text = (tmp_path / "fix.sql").read_text()
    assert text.count("-- A row is skipped: ") == 2 * len(NARROWER)
    assert not any(word in text for word in ("abcdef", "語", "01020304", "1000)", "1.255", "100.25", "00.5"))
    execute_file(url, tmp_path / "fix.sql")
    for name in NARROWER:
        # The row that cannot be repaired is as it was: it is not deleted either.
        assert read(url, f"SELECT id, o+0 FROM {DOWN}.{name} ORDER BY id") == [(1, 1), (2, 1), (3, 0)]
    assert wrong(compare(url)) == {f"{DOWN}.{name}": (1, 0, 1) for name in NARROWER}


def test_a_client_that_executes_a_repair_cannot_cut_a_value(url, tmp_path):
    both(url, "CREATE TABLE {}.t (id INT PRIMARY KEY, v VARCHAR(6), at TIMESTAMP)")
    run(url, "SET time_zone = '+00:00'", f"INSERT INTO {UP}.t VALUES (1, 'ábcdef', '2026-01-01 00:00:00')")
    compare(url, fix_sql=tmp_path / "fix.sql")
    run(url, f"ALTER TABLE {DOWN}.t MODIFY v VARCHAR(3)")
    with pytest.raises(Exception, match="Data too long"):
        execute_file(url, tmp_path / "fix.sql")
    run(url, f"ALTER TABLE {DOWN}.t MODIFY v VARCHAR(6)")
    lines = (tmp_path / "fix.sql").read_text()
    (tmp_path / "other.sql").write_text("SET NAMES latin1;\nSET SESSION sql_mode = '', time_zone = '+08:00';\n" + lines)
    execute_file(url, tmp_path / "other.sql")
    assert wrong(compare(url)) == {}


def test_values_in_other_character_sets_are_compared_as_characters(url):
    for schema, charset in ((UP, "latin1"), (DOWN, "utf8mb4")):
        run(url, f"CREATE TABLE {schema}.t (k VARCHAR(9) CHARACTER SET {charset} PRIMARY KEY, v TEXT CHARACTER SET {charset})")
    both(url, "INSERT INTO {}.t VALUES ('é', 'ü€'), ('a', 'b')")
    assert wrong(compare(url)) == {}
    run(url, f"UPDATE {DOWN}.t SET v = 'ü' WHERE k = 'é'")
    assert wrong(compare(url)) == {f"{DOWN}.t": (0, 0, 1)}


def test_wider_types_and_longer_fractions_of_the_sink_hold_the_same_values(url):
    narrow = "i INT, n DECIMAL(10,2), d DATE, t DATETIME(3), s TIME, y INT ZEROFILL, e ENUM('a','b')"
    wide = "i DECIMAL(20,0), n DECIMAL(30,4), d DATETIME, t DATETIME(6), s TIME(2), y INT UNSIGNED, e ENUM('b','a')"
    run(url, f"CREATE TABLE {UP}.t (id INT PRIMARY KEY, {narrow})", f"CREATE TABLE {DOWN}.t ({wide}, id BIGINT PRIMARY KEY)")
    both(url, "INSERT INTO {}.t (id,i,n,d,t) VALUES (1,-5,-1.20,'2020-01-01','2020-01-01 10:00:00.120'),(2,0,0,NULL,NULL)")
    both(url, "UPDATE {}.t SET s = '-10:00:00', y = 7, e = 'b' WHERE id = 1")
    assert wrong(compare(url)) == {}
    run(url, f"UPDATE {DOWN}.t SET n = -1.2001, t = '2020-01-01 10:00:00.120001' WHERE id = 1")
    assert dict(compare(url).tables[0].columns) == {"n": 1, "t": 1}


@pytest.mark.parametrize("seed", range(6))
def test_any_differences_are_found_all_of_them_and_no_others(url, seed, tmp_path):
    random = Random(seed)
    texts = ["", "a", "A", "é", "b ", "zz", "0", "\t", "'", "\\"]
    keys = [(number, text) for number in range(random.choice([3, 40])) for text in random.sample(texts, k=random.randint(1, len(texts)))]
    collation = random.choice(["utf8mb4_bin", "utf8mb4_0900_bin" if "MySQL" in version(url) else "utf8mb4_nopad_bin"])
    order = random.choice(["a, b", "b, a"])
    both(url, f"CREATE TABLE {{}}.t (a INT, b VARCHAR(9) COLLATE {collation}, v INT NULL, w TEXT NULL, PRIMARY KEY ({order}))")
    sides = {key: [random.choice([None, 0, 1]), random.choice(texts)] for key in keys}
    changed = dict(sides)
    for key in random.sample(keys, k=random.randint(0, len(keys))):
        match random.choice(["delete", "change", "move"]):
            case "delete":
                del changed[key]
            case "change":
                changed[key] = [5, sides[key][1]]
            case "move":
                changed[key[0] + 1000, key[1]] = changed.pop(key)
    for schema, rows in ((UP, sides), (DOWN, changed)):
        values = [f"({a}, {literal(b)}, {literal(v)}, {literal(w)})" for (a, b), (v, w) in rows.items()]
        run(url, *(f"INSERT INTO {schema}.t VALUES {value}" for value in values))
    missing, extra = sides.keys() - changed.keys(), changed.keys() - sides.keys()
    different = [key for key in sides.keys() & changed.keys() if sides[key] != changed[key]]
    expected = {f"{DOWN}.t": (len(missing), len(extra), len(different))} if sides != changed else {}
    for chunk_rows in (1, 7, 1000):
        assert wrong(compare(url, chunk_rows=chunk_rows, fix_sql=tmp_path / "fix.sql")) == expected
    if expected:
        execute_file(url, tmp_path / "fix.sql")
    assert wrong(compare(url, chunk_rows=5)) == {}


def literal(value: object) -> str:
    return "NULL" if value is None else str(value) if isinstance(value, int) else text(value)


def version(url: str) -> str:
    return "MariaDB" if "maria" in read(url, "SELECT VERSION()")[0][0].casefold() else "MySQL"


# --- interrupted runs, and limits ----------------------------------------------------------------------------------------


class Interruption(Listener):
    """Ends the run after some ranges, as Ctrl-C does."""

    def __init__(self, after: int) -> None:
        super().__init__()
        self._left = after

    def advance(self, table, rows):
        super().advance(table, rows)
        self._left -= 1
        if self._left == 0:
            raise KeyboardInterrupt


def test_an_interrupted_run_continues_where_it_ended_and_begins_again_at_another_checkpoint(url, tmp_path):
    both(url, "CREATE TABLE {}.t (id INT PRIMARY KEY, v INT)", f"INSERT INTO {{}}.t SELECT n, n FROM {NUMBERS.format(rows=900)}")
    state = tmp_path / "state.json"
    with replica(url) as owned:
        owned.sink.save(owned.fence, commit_at(owned.tick()))
        with pytest.raises(KeyboardInterrupt):
            compare(url, chunk_rows=100, jobs=1, state=state, listener=Interruption(4))
        assert state.stat().st_mode & 0o077 == 0
        report = compare(url, chunk_rows=100, state=state)
        assert (wrong(report), report.tables[0].upstream.rows) == ({}, 900)
        assert 3 <= report.skipped_ranges < 10
        owned.fence = owned.sink.load().fence
        owned.sink.save(owned.fence, commit_at(owned.tick()))
        listener = Listener()
        assert compare(url, chunk_rows=100, state=state, listener=listener).skipped_ranges == 0
        assert listener.said == ["the state file is of another checkpoint of the sink: its ranges are compared again"]


def test_a_query_that_takes_too_long_ends_with_a_remedy(url):
    both(url, "CREATE TABLE {}.t (id INT PRIMARY KEY, v INT)")
    with closing(connect(url)) as other, other.cursor() as cursor:
        cursor.execute(f"LOCK TABLES {UP}.t WRITE")
        with pytest.raises(FatalSinkError, match="ran for too long") as caught:
            compare(url, statement_timeout_s=1)
    assert "--chunk-rows" in caught.value.remedy
    assert wrong(compare(url, statement_timeout_s=60)) == {}


# --- rows on their way ---------------------------------------------------------------------------------------------------


def test_rows_on_their_way_are_waited_for_and_rows_that_never_come_are_reported(url):
    both(url, "CREATE TABLE {}.t (id INT PRIMARY KEY, v INT)", f"INSERT INTO {{}}.t SELECT n, n FROM {NUMBERS.format(rows=90)}")
    run(url, f"INSERT INTO {UP}.t VALUES (1000, 1), (1001, 1)")
    assert wrong(compare(url)) == {f"{DOWN}.t": (2, 0, 0)}
    arrival = threading.Timer(1.0, run, [url, f"INSERT INTO {DOWN}.t VALUES (1000, 1)"])
    arrival.start()
    report = compare(url, patience=Patience(tries=4, wait_s=0.8))
    arrival.join()
    assert wrong(report) == {f"{DOWN}.t": (1, 0, 0)}


def test_a_table_without_a_key_is_waited_for_as_a_whole(url):
    both(url, "CREATE TABLE {}.t (v INT)", "INSERT INTO {}.t VALUES (1)")
    run(url, f"INSERT INTO {UP}.t VALUES (2)")
    arrival = threading.Timer(0.5, run, [url, f"INSERT INTO {DOWN}.t VALUES (2)"])
    arrival.start()
    report = compare(url, patience=Patience(tries=4, wait_s=0.8))
    arrival.join()
    assert (wrong(report), report.tables[0].sink.rows) == ({}, 2)
    run(url, f"INSERT INTO {UP}.t VALUES (3)")
    assert wrong(compare(url, patience=Patience(tries=2, wait_s=0.1))) == {f"{DOWN}.t": "no key"}
