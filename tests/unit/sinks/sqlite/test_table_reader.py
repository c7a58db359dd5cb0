"""What a file holds is compared as it is, also where somebody has written what upstream's type cannot have."""

import pytest

from applier.sinks.mysql.table_text import MYSQL
from applier.sinks.sqlite.table_reader import SQLITE, StoredTable
from applier.sinks.table_pair import pair_tables
from tests.unit.verify.pairs import side_column, side_table


@pytest.mark.parametrize(("sql_type", "value"), [("float", "abc"), ("float", 1e300), ("double", "x"), ("decimal(5,2)", "1.2.3")])
def test_a_value_of_another_kind_equals_nothing_and_stops_nothing(sql_type, value):
    table = side_table(side_column("v", sql_type), key=())
    stored = StoredTable(pair_tables(table, table, (MYSQL, SQLITE)))
    assert stored.values([value]) == (f"stored as {type(value).__name__}: {value!r}".encode(),)
