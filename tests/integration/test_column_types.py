"""No value is altered silently by a column of another type: such a column stops the replica, and a wider one keeps the value."""

from collections.abc import Iterator
from decimal import Decimal

import pytest

from applier.model.errors import NeedsOperator, RowRefused
from tests.builders.handwritten import KEY, ONE, everywhere, log_of, resolved, row
from tests.builders.wire import column
from tests.integration.mysql_replica import read, run
from tests.rig.clean_server import clean_server
from tests.rig.fake_source import FakeSource
from tests.rig.local_replica import Replica

NULLABLE, BINARY = 64, 1


@pytest.fixture
def url(mysql_url: str) -> Iterator[str]:
    clean_server(mysql_url, "shop")
    yield mysql_url
    clean_server(mysql_url, "shop")


def written(url, sql_type, mysql_type, value, flags=NULLABLE):
    """Write one row through the whole pipeline into a column of the sink; return what the sink then holds of it."""
    run(url, "CREATE SCHEMA shop DEFAULT CHARACTER SET utf8mb4", f"CREATE TABLE shop.orders (id INT PRIMARY KEY, c {sql_type})")
    event = row(20, id=column(3, KEY, 1), c=column(mysql_type, flags, value))
    source = FakeSource(log_of(*everywhere(resolved(6)), (ONE, event), *everywhere(resolved(30))))
    Replica(url, source).catch_up(start_ts=5, accept_gap=True)
    ((found,),) = read(url, "SELECT c FROM shop.orders")
    return found


@pytest.mark.parametrize(
    ("sql_type", "mysql_type", "value"),
    [
        ("VARCHAR(20)", 247, 2),
        ("VARCHAR(20)", 248, 3),
        ("VARCHAR(20)", 3, 17),
        ("INT", 247, 2),
        ("ENUM('a','b')", 15, "zz"),
        ("ENUM('a','b')", 3, 2),
        ("SET('a','b')", 15, "a,zz"),
        ("INT", 246, "1.7"),
        ("INT", 5, 1.7),
        ("BIGINT", 4, 1.5),
        ("FLOAT", 3, 16777217),
        ("FLOAT", 9, 16777215),
        ("DOUBLE", 8, 9007199254740993),
        ("FLOAT", 5, 0.1234567890123),
        ("YEAR", 3, 5),
        ("TIME", 3, 5),
        ("DATETIME", 8, 20200101),
        ("DATETIME", 11, "10:00:00"),
        ("BIT(8)", 15, "a"),
    ],
)
def test_a_column_of_another_kind_stops_before_anything_is_written(url, sql_type, mysql_type, value):
    with pytest.raises(NeedsOperator) as caught:
        written(url, sql_type, mysql_type, value)
    expected = {"column": "c", "table": "shop.orders", "topic": "feed", "partition": 0, "offset": 1, "commit_ts": 20}
    assert expected.items() <= caught.value.facts.items()
    assert caught.value.facts["sink_type"].casefold().startswith(sql_type.casefold().partition("(")[0])
    assert read(url, "SELECT * FROM shop.orders") == []


@pytest.mark.parametrize(
    ("sql_type", "mysql_type", "value", "flags"),
    [
        ("TIME", 11, "10:00:00.5", NULLABLE),
        ("DATETIME", 12, "2020-01-01 10:00:00.6", NULLABLE),
        ("DATETIME(3)", 12, "2020-01-01 10:00:00.123456", NULLABLE),
        ("TIMESTAMP NULL", 7, "2020-01-01 10:00:00.6", NULLABLE),
        ("TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP", 7, None, NULLABLE),
        ("CHAR(5)", 15, "a  ", NULLABLE),
        ("BINARY(4)", 15, "ab", NULLABLE | BINARY),
        ("DOUBLE(10,2)", 5, 1.239, NULLABLE),
        ("DECIMAL(10,1)", 246, "1.25", NULLABLE),
        ("TINYINT", 3, 300, NULLABLE),
        ("TINYINT UNSIGNED", 3, -1, NULLABLE),
        ("VARCHAR(3)", 15, "abcd", NULLABLE),
        ("VARCHAR(3)", 15, "a    ", NULLABLE),
        ("VARBINARY(1)", 15, "ab", NULLABLE | BINARY),
        ("VARCHAR(9) CHARACTER SET latin1", 15, "日", NULLABLE),
        ("VARCHAR(9) CHARACTER SET utf8mb3", 15, "😀", NULLABLE),
        ("BIT(4)", 16, 17, NULLABLE),
    ],
)
def test_a_value_that_a_narrower_column_would_alter_is_refused(url, sql_type, mysql_type, value, flags):
    with pytest.raises(RowRefused) as caught:
        written(url, sql_type, mysql_type, value, flags)
    assert {"table": "shop.orders", "commit_ts": 20, "offset": 1}.items() <= caught.value.facts.items()
    assert read(url, "SELECT * FROM shop.orders") == []


@pytest.mark.parametrize(
    ("sql_type", "mysql_type", "value", "expected"),
    [
        ("BIGINT", 3, 17, 17),
        ("BIGINT UNSIGNED", 8, 18446744073709551615, 18446744073709551615),
        ("DECIMAL(20,0)", 8, 9007199254740993, Decimal(9007199254740993)),
        ("DOUBLE", 3, 2147483647, 2147483647.0),
        ("FLOAT", 2, 65535, 65535.0),
        ("DECIMAL(30,10)", 246, "1.25", Decimal("1.2500000000")),
        ("DATETIME(6)", 12, "2020-01-01 10:00:00.6", "2020-01-01 10:00:00.600000"),
        ("DATETIME", 12, "2020-01-01 10:00:00.000", "2020-01-01 10:00:00"),
        ("DATETIME", 10, "2020-01-01", "2020-01-01 00:00:00"),
        ("DATETIME(3)", 7, "2020-01-01 10:00:00.123", "2020-01-01 10:00:00.123000"),
        ("LONGTEXT", 15, "a ", "a "),
        ("VARCHAR(9) CHARACTER SET latin1", 15, "é€", "é€"),
        ("YEAR", 13, 0, 0),
        ("BIGINT UNSIGNED", 16, 18446744073709551615, 18446744073709551615),
    ],
)
def test_a_wider_column_keeps_the_value(url, sql_type, mysql_type, value, expected):
    assert str(written(url, sql_type, mysql_type, value)) == str(expected)
