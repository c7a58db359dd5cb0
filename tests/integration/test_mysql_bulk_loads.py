"""Bulk loads in the write transaction on real servers: exactly the rows, with the meaning of REPLACE, or nothing at all."""

import time
from collections.abc import Iterator, Sequence
from typing import Any

import pymysql
import pytest
from pymysql.constants import COMMAND
from sqlalchemy import make_url

from applier.model.errors import BulkRefused, BulkUnavailable, RetryableSinkError
from applier.model.events import TableName
from applier.mysql.catalogue import describe
from applier.mysql.session import discard, driver_of
from applier.planner.port import Phase, Statement, WireColumn
from applier.sinks.mysql.dialect import MysqlDialect
from applier.sinks.mysql.session import Purpose, open_session
from applier.sinks.mysql.writer import close_writer_sessions, writer_of
from applier.sinks.port import Writer
from applier.sinks.progress import WriteOutcome, WriteState
from applier.sinks.settings import BulkLoad
from tests.integration.mysql_replica import SHOP, Replica, clean, commit_at, engine, read, replica, rows, run, settings
from tests.integration.tcp_proxy import proxy_to
from tests.rig.database import Database

INT, TEXT, TIMESTAMP, ENUM = (3, 11), (15, 0), (7, 0), (247, 0)
T = f"CREATE TABLE {SHOP}.t (id INT PRIMARY KEY, v VARCHAR(3), UNIQUE KEY (v))"


@pytest.fixture
def allowed(mysql_url: str) -> Iterator[None]:
    """The server takes bulk loads."""
    [(_, before)] = read(mysql_url, "SHOW GLOBAL VARIABLES LIKE 'local_infile'")
    run(mysql_url, "SET GLOBAL local_infile = ON")
    yield
    run(mysql_url, f"SET GLOBAL local_infile = {before}")


@pytest.fixture
def shop(mysql_url: str, least_privileged_url: str, allowed: None) -> Iterator[Replica]:
    clean(mysql_url)
    run(mysql_url, f"CREATE SCHEMA {SHOP}", T)
    with replica(least_privileged_url) as opened:
        yield opened
    clean(mysql_url)


def load(url: str, values: Sequence[tuple[Any, ...]], types: Sequence[tuple[int, int]] = (INT, TEXT), table: str = "t") -> Statement:
    """Render a bulk load as the planner does."""
    with engine(url).connect() as connection:
        [described] = describe(connection, [TableName(SHOP, table)]).values()
    dialect = MysqlDialect()
    lines = dialect.bulk_line([WireColumn(column, *kind) for column, kind in zip(described.columns, types, strict=True)])
    assert lines is not None
    content = lines(list(zip(*values, strict=True)))
    assert content is not None
    [(text, data, number)] = dialect.bulk_loads(described, [column.name for column in described.columns], [(content, len(values))])
    return Statement(Phase.REPLACE, f"{SHOP}.{table}", text, number, 1, 1, data=data)


def write(shop: Replica, *statements: Statement, writer: Writer | None = None) -> WriteOutcome:
    return (writer or shop.sink.writer).write(shop.fence, statements, commit_at(shop.tick()))


def rows_of(url: str) -> list[tuple[Any, ...]]:
    return read(url, f"SELECT id, v FROM {SHOP}.t ORDER BY id")


def test_a_load_replaces_rows_in_the_transaction_of_the_progress(shop: Replica, mysql_url: str) -> None:
    run(mysql_url, f"INSERT INTO {SHOP}.t VALUES (1,'old'),(2,'b')")
    # The row 3 collides with 2 through the other unique key, and with 3 by its own: both are replaced.
    outcome = write(shop, load(mysql_url, [(1, "a"), (3, "b"), (4, None)]))
    assert (outcome.state, outcome.rows, outcome.error) == (WriteState.COMMITTED, 3, None)
    assert rows_of(mysql_url) == [(1, "a"), (3, "b"), (4, None)]


def test_deletes_and_replaces_share_the_transaction_with_a_load(shop: Replica, mysql_url: str) -> None:
    run(mysql_url, f"INSERT INTO {SHOP}.t VALUES (1,'a'),(2,'b')")
    delete, after = (rows(text, shop.ts) for text in (f"DELETE FROM {SHOP}.t WHERE id = 2", f"REPLACE INTO {SHOP}.t VALUES (9,'z')"))
    assert write(shop, delete, load(mysql_url, [(3, "b")]), after).state is WriteState.COMMITTED
    assert rows_of(mysql_url) == [(1, "a"), (3, "b"), (9, "z")]


@pytest.mark.parametrize(
    ("table", "types", "value"),
    [
        ("id INT PRIMARY KEY, v VARCHAR(3)", (INT, TEXT), "long"),
        ("id INT PRIMARY KEY, v VARCHAR(3)", (INT, TEXT), "abc  "),
        ("id INT PRIMARY KEY, v TINYTEXT", (INT, TEXT), "abc" * 100),
        ("id INT PRIMARY KEY, v VARBINARY(3)", (INT, (15, 1)), b"abc "),
        ("id INT PRIMARY KEY, v BIT(3)", (INT, (16, 0)), 8),
        ("id INT PRIMARY KEY, v YEAR", (INT, (13, 0)), 1900),
        ("id INT PRIMARY KEY, v VARCHAR(3) CHARACTER SET latin1", (INT, TEXT), "日"),
        ("id INT PRIMARY KEY, v TINYINT", (INT, (3, 0)), 300),
        ("id INT PRIMARY KEY, v DECIMAL(5,2)", (INT, (246, 0)), "1.005"),
        ("id INT PRIMARY KEY, v DECIMAL(5,2)", (INT, (246, 0)), "word"),
        ("id INT PRIMARY KEY, v DATETIME", (INT, (12, 0)), "word"),
        ("id INT PRIMARY KEY, v INT UNSIGNED", (INT, (3, 0)), -1),
        ("id INT PRIMARY KEY, v INT CHECK (v < 5)", (INT, (3, 0)), 5),
    ],
)
def test_a_row_that_would_be_altered_or_is_refused_rolls_everything_back(
    shop: Replica, mysql_url: str, table: str, types: Sequence[tuple[int, int]], value: Any
) -> None:
    run(mysql_url, f"CREATE TABLE {SHOP}.other ({table})")
    before = rows(f"REPLACE INTO {SHOP}.t VALUES (1,'a')", shop.ts)
    rest: Any = {TEXT: "a", (15, 1): b"a", (16, 0): 1, (13, 0): 2000, (3, 0): 1, (246, 0): "1.00", (12, 0): "2020-01-01 00:00:00"}[types[1]]
    outcome = write(shop, before, load(mysql_url, [(1, rest), (2, value), (3, rest)], types, "other"))
    assert outcome.state is WriteState.FAILED
    assert type(outcome.error) is BulkRefused
    assert outcome.error.facts["table"] == f"{SHOP}.other"
    assert "word" not in str(outcome.error)
    assert (rows_of(mysql_url), read(mysql_url, f"SELECT * FROM {SHOP}.other")) == ([], [])
    assert write(shop, load(mysql_url, [(3, "b")])).state is WriteState.COMMITTED


def test_ordinal_0_of_an_enum_is_as_harmless_as_in_a_replace(shop: Replica, mysql_url: str) -> None:
    run(mysql_url, f"CREATE TABLE {SHOP}.e (id INT PRIMARY KEY, e ENUM('a','0'))")
    assert write(shop, load(mysql_url, [(1, 0), (2, 2), (3, 1), (4, None)], (INT, ENUM), "e")).state is WriteState.COMMITTED
    assert read(mysql_url, f"SELECT id, e + 0 FROM {SHOP}.e ORDER BY id") == [(1, 0), (2, 2), (3, 1), (4, None)]


def test_a_value_that_would_be_cut_is_not_hidden_by_more_warnings_than_a_server_counts(shop: Replica, mysql_url: str) -> None:
    run(mysql_url, f"CREATE TABLE {SHOP}.e (id INT PRIMARY KEY, e ENUM('a'), v VARCHAR(3))")
    harmless: list[tuple[Any, ...]] = [(number, 0, "a") for number in range(65_535)]
    outcome = write(shop, load(mysql_url, [*harmless, (65_535, 1, "long")], (INT, ENUM, TEXT), "e"))
    assert type(outcome.error) is BulkRefused
    assert read(mysql_url, f"SELECT COUNT(*) FROM {SHOP}.e") == [(0,)]


@pytest.mark.parametrize("announced", [2, 4])
def test_a_load_of_another_number_of_rows_is_rolled_back(shop: Replica, mysql_url: str, announced: int) -> None:
    outcome = write(shop, load(mysql_url, [(1, "a"), (2, "b"), (3, "c")])._replace(rows=announced))
    assert type(outcome.error) is BulkRefused
    assert outcome.error.facts["loaded"] == 3
    assert rows_of(mysql_url) == []


def test_a_line_that_is_cut_off_is_rolled_back(shop: Replica, mysql_url: str) -> None:
    statement = load(mysql_url, [(1, "a"), (2, "b")])
    outcome = write(shop, statement._replace(data=statement.data[: statement.data.rindex(b"\x1f")]))
    assert type(outcome.error) is BulkRefused
    assert rows_of(mysql_url) == []


def test_a_missing_table_is_a_matter_of_this_load(shop: Replica, mysql_url: str) -> None:
    statement = load(mysql_url, [(1, "a")])
    run(mysql_url, f"DROP TABLE {SHOP}.t")
    assert type(write(shop, statement).error) is BulkRefused


def test_a_lock_wait_within_a_load_is_retryable(shop: Replica, mysql_url: str) -> None:
    statement = load(mysql_url, [(0, "z"), (1, "a")])
    with engine(mysql_url).begin() as blocker:
        blocker.exec_driver_sql(f"INSERT INTO {SHOP}.t (id) VALUES (1)")
        outcome = write(shop, statement)
    assert isinstance(outcome.error, RetryableSinkError)
    assert outcome.error.facts["code"] == 1205
    assert write(shop, statement).state is WriteState.COMMITTED


def test_a_server_that_takes_no_loads_is_known_and_refuses_them(mysql_url: str, least_privileged_url: str, shop: Replica) -> None:
    assert shop.sink.bulk
    statement = load(mysql_url, [(1, "a")])
    run(mysql_url, "SET GLOBAL local_infile = OFF")
    try:
        outcome = write(shop, statement)
        assert type(outcome.error) is BulkUnavailable
        assert outcome.error.facts["code"] in {1148, 3948, 4166}
        assert shop.sink.bulk  # asked once
        with replica(least_privileged_url, name="other") as other:
            assert not other.sink.bulk
    finally:
        run(mysql_url, "SET GLOBAL local_infile = ON")


def test_a_cluster_that_commits_a_load_in_parts_gets_none(mysql_url: str, least_privileged_url: str, shop: Replica) -> None:
    found = read(mysql_url, "SHOW GLOBAL VARIABLES LIKE 'wsrep_load_data_splitting'")  # MariaDB's alone
    for name, before in found:
        assert before == "OFF"
        run(mysql_url, f"SET GLOBAL {name} = ON")
    try:
        with replica(least_privileged_url, name="other") as other:
            assert other.sink.bulk is (not found)
    finally:
        for name, before in found:
            run(mysql_url, f"SET GLOBAL {name} = {before}")


def test_a_session_without_bulk_loads_is_not_able_to_load(shop: Replica, mysql_url: str, least_privileged_url: str) -> None:
    off = settings(least_privileged_url, bulk_load=BulkLoad.OFF)
    outcome = write(shop, load(mysql_url, [(1, "a")]), writer=writer_of(off))
    assert type(outcome.error) is BulkUnavailable
    with replica(least_privileged_url, name="other", bulk_load=BulkLoad.OFF) as other:
        assert not other.sink.bulk
    close_writer_sessions()


@pytest.fixture
def half_loaded(shop: Replica, mysql_url: str, least_privileged_url: str) -> Iterator[pymysql.Connection]:
    """A session in the middle of a load, whose first rows the server has written."""
    statement = load(mysql_url, [(number, None) for number in range(20_000)])
    connection = open_session(settings(least_privileged_url), Purpose.WRITE)
    driver = driver_of(connection)
    driver.query("BEGIN")
    driver._execute_command(COMMAND.COM_QUERY, statement.text)
    driver._read_packet()
    driver.write_packet(statement.data[: statement.data.index(b"\x1e", 100_000) + 1])
    deadline = time.monotonic() + 20
    while not _dirty_rows(mysql_url) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert _dirty_rows(mysql_url)
    yield driver
    discard(connection)


def test_a_load_whose_connection_breaks_in_the_middle_leaves_nothing(
    shop: Replica, mysql_url: str, half_loaded: pymysql.Connection
) -> None:
    half_loaded._force_close()  # what SIGKILL of the writer does
    # Waits for the locks of the rows: the server has rolled back when it has them.
    assert write(shop, load(mysql_url, [(1, "a")])).state is WriteState.COMMITTED
    assert rows_of(mysql_url) == [(1, "a")]


def test_a_load_whose_server_is_killed_in_the_middle_leaves_nothing(
    database: Database, mysql_url: str, half_loaded: pymysql.Connection
) -> None:
    database.crash()
    half_loaded._force_close()
    assert rows_of(mysql_url) == []


def _dirty_rows(url: str) -> int:
    with engine(url).connect().execution_options(isolation_level="READ UNCOMMITTED") as connection:
        return int(connection.exec_driver_sql(f"SELECT COUNT(*) FROM {SHOP}.t").scalar_one())


def test_a_load_whose_session_is_killed_is_retryable(shop: Replica, mysql_url: str, least_privileged_url: str) -> None:
    url = make_url(least_privileged_url)
    statement = load(mysql_url, [(number, None) for number in range(50_000)])
    with proxy_to(url.host or "127.0.0.1", url.port or 3306) as proxy:
        writer = writer_of(settings(url.set(host="127.0.0.1", port=proxy.port).render_as_string(hide_password=False)))

        def statements() -> Iterator[Statement]:
            yield statement
            for (session,) in read(
                mysql_url,
                "SELECT id FROM information_schema.innodb_trx t JOIN information_schema.processlist p ON id = trx_mysql_thread_id",
            ):
                run(mysql_url, f"KILL {session}")
            yield statement

        outcome = writer.write(shop.fence, statements(), commit_at(shop.tick()))
    assert isinstance(outcome.error, RetryableSinkError)
    assert rows_of(mysql_url) == []
    close_writer_sessions()


SAME = {
    "a foreign key that is not checked": "CREATE TABLE {0}.p (id INT PRIMARY KEY);"
    "ALTER TABLE {0}.t ADD FOREIGN KEY (id) REFERENCES {0}.p (id)",
    "partitions": "ALTER TABLE {0}.t DROP KEY v; ALTER TABLE {0}.t PARTITION BY HASH (id) PARTITIONS 3",
    "a trigger": "CREATE TABLE {0}.seen (n INT AUTO_INCREMENT PRIMARY KEY, what VARCHAR(99));"
    "CREATE TRIGGER {0}.b BEFORE DELETE ON {0}.t FOR EACH ROW INSERT INTO {0}.seen (what) VALUES (CONCAT('-', OLD.id, OLD.v));"
    "CREATE TRIGGER {0}.a AFTER INSERT ON {0}.t FOR EACH ROW INSERT INTO {0}.seen (what) VALUES (CONCAT('+', NEW.id, NEW.v))",
    "no transaction": "ALTER TABLE {0}.t ENGINE = MyISAM",
}


@pytest.mark.parametrize("ddl", SAME.values(), ids=SAME)
def test_what_surrounds_a_table_means_the_same_for_a_load(shop: Replica, mysql_url: str, ddl: str) -> None:
    found = []
    for by_load in (False, True):
        run(mysql_url, f"DROP TABLE IF EXISTS {SHOP}.t, {SHOP}.p, {SHOP}.seen", T, *(part.format(SHOP) for part in ddl.split(";")))
        run(mysql_url, "SET foreign_key_checks = 0", f"INSERT INTO {SHOP}.t VALUES (1,'a'),(2,'b'),(3,'c')")
        values = [(1, "x"), (4, "b"), (5, "e"), (3, "c")]
        text = ",".join(map(str, values))
        statement = load(mysql_url, values) if by_load else rows(f"REPLACE INTO {SHOP}.t (id, v) VALUES {text}", shop.ts)
        outcome = shop.sink.writer.write(shop.fence, [statement], commit_at(shop.tick()))
        assert outcome.error is None
        shop.fence = shop.sink.load().fence  # type: ignore[union-attr]  # begun by the fixture
        seen = read(mysql_url, f"SELECT what FROM {SHOP}.seen ORDER BY n") if "seen" in ddl else []
        found.append((rows_of(mysql_url), seen))
    assert found[0] == found[1]


def test_a_view_is_loaded_as_its_table(shop: Replica, mysql_url: str) -> None:
    run(mysql_url, f"CREATE VIEW {SHOP}.w AS SELECT id, v FROM {SHOP}.t")
    assert write(shop, load(mysql_url, [(1, "a"), (2, None)], table="w")).error is None
    assert rows_of(mysql_url) == [(1, "a"), (2, None)]


@pytest.mark.parametrize("zone", ["UTC", "+05:00", "-11:30"])
def test_a_timestamp_is_read_in_the_sessions_time_zone(shop: Replica, mysql_url: str, least_privileged_url: str, zone: str) -> None:
    run(mysql_url, f"CREATE TABLE {SHOP}.z (id INT PRIMARY KEY, ts TIMESTAMP(6) NULL)")
    values = [(1, "2021-02-03 04:05:06.000007"), (2, "0000-00-00 00:00:00.000000"), (3, None)]
    writer = writer_of(settings(least_privileged_url, time_zone=zone))
    assert write(shop, load(mysql_url, values, (INT, TIMESTAMP), "z"), writer=writer).error is None
    offset = 0 if zone == "UTC" else (5 * 3600 if zone == "+05:00" else -11.5 * 3600)
    [(seconds,)] = read(mysql_url, f"SELECT UNIX_TIMESTAMP(ts) FROM {SHOP}.z WHERE id = 1")
    assert float(seconds) == pytest.approx(1612325106.000007 - offset, abs=1e-6)
    close_writer_sessions()
