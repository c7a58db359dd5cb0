"""Collations of MySQL 8: MariaDB's counterparts have the same rules; for keys they count only if the operator says so."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import pytest

from applier.ddl.adaptation import MARIADB_COLLATIONS
from applier.model.errors import FatalSinkError, NeedsOperator
from tests.integration.mysql_replica import read
from tests.rig.clean_server import clean_server
from tests.rig.database import Kind
from tests.rig.ddl_type_feed import SCHEMA, feed_of
from tests.rig.ddl_types import TypeCase
from tests.rig.local_replica import Replica
from tests.rig.mysql_oracle import connect

TABLE = "CREATE TABLE `t` (`id` INT PRIMARY KEY,`v` INT,`w` VARCHAR(20) COLLATE {collation}{key})"


@pytest.fixture
def url(mysql_url: str) -> Iterator[str]:
    clean_server(mysql_url, SCHEMA, "lab_1")
    yield mysql_url
    clean_server(mysql_url, SCHEMA, "lab_1")


def made(collation: str = "utf8mb4_0900_ai_ci", key: str = "") -> TypeCase:
    """A table with rows, and a DDL after them."""
    return TypeCase(number=17, what="", ddl="ALTER TABLE `t` COMMENT = 'x'", before=(TABLE.format(collation=collation, key=key),), after={})


def collation_of_w(url: str) -> str:
    where = f"table_schema = '{SCHEMA}' AND column_name = 'w'"
    ((name,),) = read(url, f"SELECT collation_name FROM information_schema.columns WHERE {where}")
    return str(name)


@pytest.mark.parametrize("collation", MARIADB_COLLATIONS)
def test_a_collation_and_its_counterpart_have_the_same_rules(url: str, database_kind: Kind, collation: str) -> None:
    own = MARIADB_COLLATIONS[collation] if database_kind is Kind.MARIADB else collation
    pairs = (("a", "A"), ("e", "é"), ("a", "a "), ("ss", "ß"), ("", "\u0301"))
    with closing(connect(url)) as connection, connection.cursor() as cursor:
        cursor.execute("SET NAMES utf8mb4")
        equal = []
        for one, other in pairs:
            cursor.execute(f"SELECT CONVERT(%s USING utf8mb4) COLLATE {own} = %s", (one, other))
            equal.append(bool(cursor.fetchone()[0]))
    is_ci, is_ai = collation.endswith("_ci"), "_ai_" in collation
    assert equal == [is_ci, is_ai, False, is_ai, is_ai]


@pytest.mark.on_one_server("mariadb", reason="MySQL has these collations")
def test_rows_without_a_key_of_that_collation_need_no_word_of_the_operator(url: str) -> None:
    Replica(url, feed_of(made())).catch_up()
    assert collation_of_w(url) == "utf8mb4_uca1400_nopad_ai_ci"
    assert read(url, f"SELECT COUNT(*) FROM {SCHEMA}.t") == [(2,)]


@pytest.mark.on_one_server("mariadb", reason="MySQL has these collations")
def test_a_unique_key_of_a_mapped_collation_stops_until_the_operator_maps_it(url: str) -> None:
    replica = Replica(url, feed_of(made(key=" UNIQUE")))
    with pytest.raises(NeedsOperator, match="utf8mb4_uca1400_nopad_ai_ci") as stopped:
        replica.catch_up()
    assert "[ddl.collations]" in stopped.value.remedy
    mapped = replace(replica, collations=(("utf8mb4_0900_ai_ci", "uca1400_nopad_ai_ci"),))
    mapped.catch_up()
    assert read(url, f"SELECT COUNT(*) FROM {SCHEMA}.t") == [(2,)]


def test_the_operators_collation_comes_before_the_default_one_in_tables_and_schemas(url: str) -> None:
    ddl = "ALTER DATABASE `lab_1` COLLATE = utf8mb4_0900_ai_ci"
    case = TypeCase(number=26, what="", ddl=ddl, table="", before=("CREATE DATABASE `lab_1`",), after={})
    Replica(url, feed_of(case), collations=(("utf8mb4_0900_ai_ci", "utf8mb4_unicode_ci"),)).catch_up()
    query = "SELECT default_collation_name FROM information_schema.schemata WHERE schema_name = 'lab_1'"
    assert read(url, query) == [("utf8mb4_unicode_ci",)]


@pytest.mark.on_one_server("mariadb", reason="MySQL has these collations")
def test_a_collation_without_a_counterpart_stops_with_the_setting_that_helps(url: str) -> None:
    replica = Replica(url, feed_of(made("utf8mb4_de_pb_0900_ai_ci")))
    with pytest.raises(FatalSinkError, match="utf8mb4_de_pb_0900_ai_ci") as stopped:
        replica.catch_up()
    assert "[ddl.collations]" in stopped.value.remedy
    replace(replica, collations=(("utf8mb4_de_pb_0900_ai_ci", "utf8mb4_german2_ci"),)).catch_up()
    assert collation_of_w(url) == "utf8mb4_german2_ci"
