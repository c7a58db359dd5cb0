"""TiDB's table-filter syntax: the cases of TiDB's manual ("Table Filter") and of its own parser's rules."""

import pytest

from applier.model.events import TableName
from applier.selection import PatternError, TableFilter
from applier.selection.table_filter import SchemaPart


def has(rules, table):
    return TableFilter.parse(rules).has(TableName(*table.split(".", 1)))


@pytest.mark.parametrize(
    ("rules", "table", "is_in"),
    [
        ([], "a.b", True),
        (["shop.orders"], "shop.orders", True),
        (["shop.orders"], "shop.orders2", False),
        (["shop.orders"], "SHOP.Orders", True),
        (["SHOP.ORDERS"], "shop.orders", True),
        (["shop.*"], "shop.anything", True),
        (["shop.*"], "shop2.anything", False),
        (["*.*", "!shop.log_*"], "shop.log_1", False),
        (["*.*", "!shop.log_*"], "shop.orders", True),
        (["*.*", "!shop.log_*", "shop.log_2"], "shop.log_2", True),
        (["shop.t?"], "shop.t1", True),
        (["shop.t?"], "shop.t", False),
        (["shop.t[0-3]"], "shop.t2", True),
        (["shop.t[0-3]"], "shop.t4", False),
        (["shop.t[!0-3]"], "shop.t4", True),
        (["shop.t[!0-3]"], "shop.t3", False),
        (["shop.t[^a]"], "shop.t^", True),
        (["shop.t[^a]"], "shop.tb", False),
        (["shop.t[[]"], "shop.t[", True),
        ([r"shop.t[\]x]"], "shop.t]", True),
        ([r"/^db\d{2,}$/./^tbl/"], "db12.tbl_x", True),
        ([r"/^db\d{2,}$/./^tbl/"], "db1.tbl_x", False),
        (["/b/.*"], "abc.x", True),
        ([r"/a\/b/.*"], "a/b.x", True),
        (["`sh.op`.`t-1`"], "sh.op.t-1", False),
        (["shop.`t``-1`"], "shop.t`-1", True),
        (['shop."t""-1"'], 'shop.t"-1', True),
        ([r"shop.t\-1"], "shop.t-1", True),
        ([r"shop.t\*"], "shop.t*", True),
        ([r"shop.t\*"], "shop.tx", False),
        ([r"/^\w+$/.*"], "表.x", False),
        ([r"/^[\w-]+$/.*"], "表.x", False),
        ([r"/^[\w-]+$/.*"], "a-1.x", True),
        ([r"/^É\d$/.*"], "é1.x", True),
        ([r"/^É\d$/.*"], "é٣.x", False),
        ([r"/^[]\d]\W$/.*"], "]表.x", True),
        ([r"/^[a[]\w$/.*"], "[表.x", False),
        (["shop.größe"], "shop.GRÖSSE", False),
        (["shop.größe"], "shop.Größe", True),
        (["# nothing", "", "  shop.* "], "shop.a", True),
        (["!shop.a"], "shop.b", False),
        (["shop.*"], "shop.line\nfeed", True),
    ],
)
def test_the_last_rule_that_matches_counts(rules, table, is_in):
    assert has(rules, table) is is_in


def test_a_quoted_name_may_have_dots():
    assert TableFilter.parse(["`sh.op`.`t-1`"]).has(TableName("sh.op", "t-1"))


@pytest.mark.parametrize(
    ("rule", "problem"),
    [
        ("shop", "no table"),
        ("shop.", "empty name"),
        (".orders", "empty name"),
        ("shop.orders.x", "continues after"),
        ("shop.a-b", "special character"),
        ("shop.a b", "special character"),
        ("shop.[a", "special character"),
        ("shop.`a", "never ends"),
        ('"shop.a', "never ends"),
        ("/shop.a", "never ends"),
        ("/(/.a", "cannot be read"),
        ("shop.[z-a]", "cannot be read"),
        ("/[[:alpha:]]/.a", "cannot be read"),
        (r"shop.a\b", "special character"),
        ("shop.a\\", "special character"),
    ],
)
def test_a_rule_that_cannot_be_read_is_refused(rule, problem):
    with pytest.raises(PatternError, match=problem) as caught:
        TableFilter.parse([rule])
    assert caught.value.remedy


def test_a_file_holds_rules_and_no_further_files():
    files = {"rules.txt": ["# rules", "", "shop.*", "!shop.log"], "more.txt": ["@rules.txt"]}
    read = TableFilter.parse(["@rules.txt", "shop.log_1"], files.__getitem__)
    assert [read.has(TableName("shop", table)) for table in ("a", "log", "log_1")] == [True, False, True]
    with pytest.raises(PatternError, match="file inside of a file"):
        TableFilter.parse(["@more.txt"], files.__getitem__)


@pytest.mark.parametrize(
    ("rules", "part"),
    [
        ([], SchemaPart.ALL),
        (["*.*"], SchemaPart.ALL),
        (["shop.*"], SchemaPart.ALL),
        (["sh*.*"], SchemaPart.ALL),
        (["crm.*"], SchemaPart.NONE),
        (["*.*", "!shop.*"], SchemaPart.NONE),
        (["*.*", "!shop.*", "shop.a"], SchemaPart.SOME),
        (["*.*", "!shop.log_*"], SchemaPart.SOME),
        (["*.*", "!shop.log_*", "shop.*"], SchemaPart.ALL),
        (["shop.a"], SchemaPart.SOME),
        (["*.*", "!crm.a"], SchemaPart.ALL),
    ],
)
def test_how_much_of_a_schema_the_rules_take_in(rules, part):
    assert TableFilter.parse(rules).part_of("Shop") is part
