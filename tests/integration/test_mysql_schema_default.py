"""A schema that the sink has already gets upstream's default, or stops the applier."""

from collections.abc import Iterator

import pytest

from applier.model.errors import NeedsOperator
from applier.sinks.ledger_entry import DdlState
from tests.integration.mysql_replica import SHOP, Replica, read, replica, run

ON_BOB = f"REPLACE INTO {SHOP}.t (name) VALUES ('bob'), ('Bob')"


@pytest.fixture
def shop(url: str, least_privileged_url: str) -> Iterator[Replica]:
    with replica(least_privileged_url) as opened:
        yield opened


def default(url: str) -> str:
    return str(read(url, f"SELECT DEFAULT_COLLATION_NAME FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = '{SHOP}'")[0][0])


@pytest.mark.parametrize("condition", ["", "IF NOT EXISTS "])
@pytest.mark.parametrize("before", ["utf8mb4 COLLATE utf8mb4_general_ci", "latin1 COLLATE latin1_swedish_ci"])
def test_an_empty_schema_gets_upstreams_default(shop: Replica, url: str, condition: str, before: str) -> None:
    run(url, f"CREATE SCHEMA {SHOP} CHARACTER SET {before}")
    shop.ddl(f"CREATE DATABASE {condition}{SHOP}")
    shop.ddl("CREATE TABLE t (name VARCHAR(10) PRIMARY KEY)", "t")
    shop.write(ON_BOB)
    assert default(url) == "utf8mb4_bin"
    assert read(url, f"SELECT COUNT(*) FROM {SHOP}.t") == [(2,)]


def test_a_schema_that_says_its_collation_keeps_it(shop: Replica, url: str) -> None:
    run(url, f"CREATE SCHEMA {SHOP} CHARACTER SET utf8mb4 COLLATE utf8mb4_bin")
    shop.ddl(f"CREATE DATABASE {SHOP} CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci")
    assert default(url) == "utf8mb4_unicode_ci"


@pytest.mark.parametrize("condition", ["", "IF NOT EXISTS "])
def test_a_schema_with_tables_and_another_default_stops_until_it_is_corrected(shop: Replica, url: str, condition: str) -> None:
    run(url, f"CREATE SCHEMA {SHOP} CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci", f"CREATE TABLE {SHOP}.x (id INT PRIMARY KEY)")
    with pytest.raises(NeedsOperator, match="collation differs from upstream's") as caught:
        shop.ddl(f"CREATE DATABASE {condition}{SHOP}")
    assert caught.value.facts["schema"] == SHOP
    assert default(url) == "utf8mb4_general_ci"
    with pytest.raises(NeedsOperator, match="collation differs from upstream's"):
        shop.sink.settle(shop.sink.raise_epoch().fence)
    change = caught.value.remedy.partition("in the sink: ")[2].partition(";")[0]
    run(url, change)
    shop.fence = shop.sink.settle(shop.sink.raise_epoch().fence)
    assert [entry.state for entry in shop.sink.bookkeeping.ledger()] == [DdlState.DONE]


def test_a_schema_with_tables_and_upstreams_default_is_taken(shop: Replica, url: str) -> None:
    run(url, f"CREATE SCHEMA {SHOP} CHARACTER SET utf8mb4 COLLATE utf8mb4_bin", f"CREATE TABLE {SHOP}.x (id INT PRIMARY KEY)")
    shop.ddl(f"CREATE DATABASE {SHOP}")
    assert [entry.state for entry in shop.sink.bookkeeping.ledger()] == [DdlState.DONE]


def test_a_new_schema_and_its_tables_and_columns_have_tidbs_defaults(shop: Replica, url: str) -> None:
    shop.ddl(f"CREATE DATABASE {SHOP}")
    shop.ddl(
        "CREATE TABLE t (a CHAR(3), b CHAR(3) CHARACTER SET latin1, c CHAR(3) CHARACTER SET utf8mb4, d CHAR(3) CHARACTER SET utf8 BINARY)",
        "t",
    )
    shop.ddl("ALTER TABLE t ADD e CHAR(3) CHARSET ascii, ADD f CHAR(3) CHARACTER SET utf8", "t")
    shop.ddl(f"ALTER DATABASE {SHOP} CHARACTER SET latin1")
    shop.ddl("CREATE TABLE u (a CHAR(3))", "u")
    found = read(
        url, f"SELECT COLLATION_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = '{SHOP}' ORDER BY TABLE_NAME, COLUMN_NAME"
    )
    spelled = [name.replace("utf8_", "utf8mb3_") for (name,) in found]
    # TiDB stores any character in latin1.
    assert spelled == ["utf8mb4_bin", "utf8mb4_bin", "utf8mb4_bin", "utf8mb3_bin", "ascii_bin", "utf8mb3_bin", "utf8mb4_bin"]
