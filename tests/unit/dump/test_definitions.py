"""What a dump defines is made as DDLs: chosen, routed, and in an order in which each finds what it needs."""

import pytest

from applier.dump.definitions import Definitions
from applier.dump.statements import piece_of
from applier.model.errors import ConfigError, FatalSinkError, NeedsOperator
from applier.model.events import FoldedName, TableName
from applier.model.position import Ts
from applier.planner.port import ColumnDescription, TableDescription
from tests.rig.selected import selection_of


class Made:
    """A sink that remembers what it is told to make."""

    def __init__(self):
        self.queries, self.names = [], set()

    def load_ddl(self, identity, ddl):
        if "SELECT * FROM a" in ddl.query and "a" not in self.names:
            raise FatalSinkError("there is no view a")
        self.names.add(ddl.table)
        self.queries.append((identity.ts, str(ddl.name), ddl.query))

    def describe(self, _tables):
        column = ColumnDescription(name="g", sql_type="int", nullable=True)
        return {FoldedName("shop", "t"): TableDescription(schema="shop", table="t", columns=(column,), unique_keys=())}


def definitions(**selected):
    return Definitions(sink=Made(), selection=selection_of(**selected), policies={}, start_ts=Ts(7), zone="+00:00", to_log=None)


def made(found, *texts, schema="shop"):
    for text in texts:
        found.make(piece_of(text.encode()), schema)
    found.finish()
    return found.sink.queries


def test_a_schema_that_the_dump_does_not_define_is_made_before_its_first_table():
    tables = "CREATE TABLE t (a INT)", "CREATE TABLE u (a INT)"
    assert [name for _, name, _ in made(definitions(), *tables)] == ["shop", "shop.t", "shop.u"]
    assert [name for _, name, _ in made(definitions(), "CREATE DATABASE shop", "CREATE TABLE t (a INT)")] == ["shop", "shop.t"]


def test_what_the_filter_leaves_out_is_not_made_and_has_no_rows():
    found = definitions(tables=["shop.t"])
    assert [name for _, name, _ in made(found, "CREATE TABLE t (a INT)", "CREATE TABLE u (a INT)", "CREATE SEQUENCE t")] == [
        "shop",
        "shop.t",
    ]
    assert (found.has(TableName("shop", "u")), found.left_out) == (False, ["sequence t"])


def test_views_are_made_last_each_behind_those_that_it_reads():
    views = ["CREATE VIEW b AS SELECT 1", "CREATE VIEW b AS SELECT * FROM a", "CREATE VIEW a AS SELECT 1"]
    assert [name for _, name, _ in made(definitions(), *views, "CREATE TABLE t (a INT)")] == ["shop", "shop.t", "shop.a", "shop.b"]


def test_a_view_that_cannot_be_made_at_all_stops():
    with pytest.raises(FatalSinkError, match="no view a"):
        made(definitions(), "CREATE VIEW b AS SELECT * FROM a")


def test_a_table_without_a_schema_is_refused():
    with pytest.raises(ConfigError, match="to which schema"):
        made(definitions(), "CREATE TABLE t (a INT)", schema="")


def test_a_stored_column_whose_values_a_dump_lacks_is_refused():
    with pytest.raises(NeedsOperator, match="the dump has no values of it"):
        made(definitions(), "CREATE TABLE t (a INT, g INT GENERATED ALWAYS AS (a + 1) STORED)")
