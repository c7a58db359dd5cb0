"""Routes: which name a table has in the sink, and what the names say about whole schemas."""

import pytest

from applier.model.events import TableName
from applier.selection import PatternError, Route, TableFilter, TableSelection

ORDERS = TableName("shop", "Orders")


def selection(*routes, tables=()):
    return TableSelection(TableFilter.parse(tables), tuple(Route.parse(*route) for route in routes))


@pytest.mark.parametrize(
    ("routes", "name"),
    [
        ([("shop.*", "archive.{table}")], "archive.Orders"),
        ([("*.*", "copy_{schema}.{table}_v2")], "copy_shop.Orders_v2"),
        ([("shop.orders", "archive.all_orders")], "archive.all_orders"),
        ([("shop.orders", "a.b"), ("shop.*", "c.d")], "a.b"),
        ([("crm.*", "a.b")], "shop.Orders"),
        ([("shop.*", "`odd.schema`.`{x}`{table}")], "odd.schema.{x}Orders"),
        ([("shop.*", "{schema}-{table}.{table}")], "shop-Orders.Orders"),
    ],
)
def test_the_first_route_that_matches_names_the_table(routes, name):
    assert str(selection(*routes).name(ORDERS)) == name


@pytest.mark.parametrize("to", ["archive", "archive.", ".orders", "archive.{name}", "a.b.c", "archive.{table", "{schema}.`a", ""])
def test_a_name_that_cannot_be_read_is_refused(to):
    with pytest.raises(PatternError, match="is not a name for tables") as caught:
        Route.parse("shop.*", to)
    assert "{table}" in caught.value.remedy


@pytest.mark.parametrize(
    ("routes", "tables", "schema", "is_apart"),
    [
        ([], [], "shop", True),
        ([("shop.*", "archive.{table}")], ["shop.*"], "archive", True),
        ([("shop.*", "archive.{table}")], [], "archive", False),  # upstream may have a schema archive
        ([("shop.*", "archive.{table}"), ("archive.*", "old.{table}")], [], "archive", True),
        ([("*.*", "copy_{schema}.{table}")], [], "copy_shop", True),
        ([("*.*", "copy.{schema}_{table}")], [], "copy", False),
        ([("shop.*", "archive.{table}"), ("crm.*", "archive.crm_{table}")], ["shop.*", "crm.*"], "archive", False),
        ([("shop.a", "other.a")], [], "shop", False),  # one of its tables lies elsewhere
        ([("crm.a", "shop.crm_a")], [], "shop", False),
        ([("crm.a", "hr.a")], [], "shop", True),
        ([("shop.a", "archive.x"), ("shop.*", "archive.{table}")], ["shop.*"], "archive", False),
        ([("shop.*", "{schema}_{table}.x")], [], "shop", False),
    ],
)
def test_whether_a_schema_lies_apart_in_the_sink(routes, tables, schema, is_apart):
    chosen = selection(*routes, tables=tables)
    assert chosen.schema_name("shop") == schema
    assert chosen.is_apart("shop") is is_apart
