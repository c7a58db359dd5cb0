"""Upstream's unique keys and collations are asked of TiDB, under the names that the tables have in the sink."""

import pytest

from applier.model.errors import SourceError
from applier.model.events import FoldedName
from applier.selection import EVERYTHING, TableSelection
from applier.upstream.catalogue import TidbCatalogue, tables_of
from applier.upstream.settings import UpstreamSettings
from tests.rig.tidb import tidb_server

ORDERS = FoldedName("shop", "orders")
TABLES = [("Shop", "Orders"), ("shop", "lines"), ("log", "visits")]
PARTS = [
    ("Shop", "Orders", "PRIMARY", "Id"),
    ("Shop", "Orders", "one_Code", "code"),
    ("Shop", "Orders", "one_Code", "Region"),
    ("Shop", "Orders", "of_expression", None),
]
COLUMNS = [
    ("Shop", "Orders", "Id", None, "auto_increment"),
    ("Shop", "Orders", "code", "utf8mb4_bin", ""),
    ("Shop", "Orders", "Region", "utf8mb4_general_ci", "STORED GENERATED"),
    ("Shop", "Orders", "seen", None, "DEFAULT_GENERATED"),
    ("Shop", "Orders", "day", None, "VIRTUAL GENERATED"),
]


def answers(sql, _snapshot):
    if "information_schema.TABLES" in sql:
        return TABLES, ["TABLE_SCHEMA", "TABLE_NAME"]
    if "information_schema.STATISTICS" in sql:
        return PARTS, ["TABLE_SCHEMA", "TABLE_NAME", "INDEX_NAME", "COLUMN_NAME"]
    if "information_schema.COLUMNS" in sql:
        return COLUMNS, ["TABLE_SCHEMA", "TABLE_NAME", "COLUMN_NAME", "COLLATION_NAME", "EXTRA"]
    return None


@pytest.fixture(scope="module")
def upstream():
    with tidb_server() as server:
        server.answers = answers
        yield server


def test_the_keys_of_a_table_are_asked(upstream):
    catalogue = TidbCatalogue(UpstreamSettings(url=upstream.url), EVERYTHING)
    found = catalogue.definitions([ORDERS, FoldedName("shop", "gone")])
    assert list(found) == [ORDERS]
    assert found[ORDERS].unique_keys == {
        "primary": frozenset({"id"}),
        "one_code": frozenset({"code", "region"}),
        "of_expression": frozenset(),
    }
    assert found[ORDERS].collations == {"code": "utf8mb4_bin", "region": "utf8mb4_general_ci"}
    assert found[ORDERS].plain_columns == {"id", "code", "seen"}
    catalogue.check_names([ORDERS])
    assert not catalogue.is_left_out(ORDERS)


def test_the_answer_is_forgotten_after_a_ddl(upstream):
    catalogue = TidbCatalogue(UpstreamSettings(url=upstream.url), EVERYTHING)
    catalogue.definitions([ORDERS])
    upstream.asked.clear()
    catalogue.definitions([ORDERS])
    assert not any("information_schema.TABLES" in asked.sql for asked in upstream.asked)
    catalogue.forget()
    catalogue.definitions([ORDERS])
    assert any("information_schema.TABLES" in asked.sql for asked in upstream.asked)


def test_an_upstream_that_does_not_answer_is_an_error_of_the_source():
    with pytest.raises(SourceError):
        TidbCatalogue(UpstreamSettings(url="mysql+pymysql://u@127.0.0.1:1/"), EVERYTHING).definitions([ORDERS])


def test_without_source_upstream_nothing_is_asked():
    assert tables_of(None, TableSelection()) is None
