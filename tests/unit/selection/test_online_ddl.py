"""Tables of gh-ost and pt-online-schema-change: what is left out, and which RENAME stands for an ALTER TABLE."""

import pytest

from applier.ddl.copied_table import copied_table, refuse_other_columns, with_alters_of_copy
from applier.model.errors import NeedsOperator
from applier.model.events import DdlEvent, FoldedName, TableMove, TableName
from applier.model.position import Ts
from applier.selection import OnlineDdl, OnlineDdlMode, PatternError, Route, TableFilter, TableSelection, select_ddl

FILTERED, ALWAYS, OFF = OnlineDdlMode.FILTERED, OnlineDdlMode.ALWAYS, OnlineDdlMode.OFF
SESSION = (("sql_mode", "STRICT_ALL_TABLES"), ("timestamp", "1600000000.0"), ("server", "mysql"))
GH_OST = [
    "create /* gh-ost */ table `shop`.`_orders_ghc` (id bigint primary key)",
    "create /* gh-ost */ table `shop`.`_orders_gho` like `shop`.`orders`",
    "alter /* gh-ost */ table `shop`.`_orders_gho` add column note varchar(20), drop index `i`",
    "alter /* gh-ost */ table `shop`.`_orders_gho` AUTO_INCREMENT=17",
    "create /* gh-ost */ table `shop`.`_orders_del` (id int auto_increment primary key) comment='ghost-cut-over-sentry'",
    "drop /* gh-ost */ table if exists `shop`.`_orders_del`",
]
SWAP = "rename /* gh-ost */ table `shop`.`orders` to `shop`.`_orders_del`, `shop`.`_orders_gho` to `shop`.`orders`"
PT_OSC = [
    "CREATE TABLE `shop`.`_orders_new` (`id` int NOT NULL, `n` int, PRIMARY KEY (`id`)) ENGINE=InnoDB",
    "ALTER TABLE `shop`.`_orders_new` ADD COLUMN note VARCHAR(20)",
]
PT_SWAP = "RENAME TABLE `shop`.`orders` TO `shop`.`_orders_old`, `shop`.`_orders_new` TO `shop`.`orders`"


def ddl(query, ts=100, table="orders", session=SESSION):
    return DdlEvent(commit_ts=Ts(ts), schema="shop", table=table, query=query, ddl_type=5, session=session)


def history(*queries):
    return [ddl(query, ts, "") for ts, query in enumerate(queries, 1)]


def selection(mode=FILTERED, tables=("shop.orders",), routes=()):
    return TableSelection(TableFilter.parse(tables), tuple(Route.parse(*one) for one in routes), online=OnlineDdl.parse(mode))


def cut_over(swap=SWAP, **options):
    return select_ddl(ddl(swap), selection(**options))


def alter_of(swap, *queries, **options):
    found = cut_over(swap, **options)
    return with_alters_of_copy(found, copied_table(found, history(*queries)))


@pytest.mark.parametrize("options", [{}, {"mode": ALWAYS}, {"mode": ALWAYS, "tables": ()}, {"tables": ("shop.*", "!shop._*")}])
def test_the_cut_over_of_gh_ost_is_the_alter_of_its_copy(options):
    found = alter_of(SWAP, *GH_OST, **options)
    assert found.query == "ALTER TABLE `shop`.`orders` add column note varchar(20), drop index `i`"
    assert (found.name, found.left_out, found.refusal) == (("shop", "orders"), "", None)
    # The rows were copied: no server has converted them by an ALTER TABLE.
    assert dict(found.session) == dict(SESSION) | {"server": "copied"}


def test_the_cut_over_of_pt_online_schema_change_is_the_alter_of_its_copy():
    assert alter_of(PT_SWAP, *PT_OSC).query == "ALTER TABLE `shop`.`orders` ADD COLUMN note VARCHAR(20)"


def test_a_copy_with_other_columns_than_the_table_is_refused():
    found = cut_over(PT_SWAP)
    copied = copied_table(found, history(*PT_OSC))
    refuse_other_columns(found, copied, ["ID", "n"])
    with pytest.raises(NeedsOperator, match="columns of the copy differ"):
        refuse_other_columns(found, copied, ["id"])


def test_an_attempt_that_was_dropped_and_begun_again_counts_from_its_last_beginning():
    again = ["drop table if exists `shop`.`_orders_gho`", GH_OST[1], "alter table `shop`.`_orders_gho` add column other int"]
    assert alter_of(SWAP, *GH_OST, *again).query == "ALTER TABLE `shop`.`orders` add column other int"


@pytest.mark.parametrize(
    ("queries", "why"),
    [
        (GH_OST[2:], "begun before the replica"),
        (GH_OST[:2], "need not be a copy"),
        ([*GH_OST, "drop table `shop`.`_orders_gho`"], "not known"),
        ([*GH_OST, "truncate table `shop`.`_orders_gho`"], "not known"),
        ([*GH_OST, "create index k on `shop`.`_orders_gho` (note)"], "not known"),
        ([*GH_OST, "rename table `shop`.`_orders_gho` to `shop`.`x`"], "not known"),
        ([GH_OST[1].replace("`orders`", "`others`"), GH_OST[2]], "not known"),
        ([*GH_OST, "alter table `shop`.`_orders_gho` drop column note"], "several statements"),
        ([*GH_OST, "alter table `shop`.`_orders_gho` engine = innodb"], "several statements"),
        ([*GH_OST, "create what of `_orders_gho`"], "not known"),
    ],
)
def test_a_cut_over_whose_alter_is_not_known_stops_by_name(queries, why):
    with pytest.raises(NeedsOperator, match=why) as stopped:
        alter_of(SWAP, *queries)
    assert stopped.value.facts["table"] == "shop.orders"
    assert "applier ddl skip" in stopped.value.remedy


def test_several_alters_of_a_copy_are_one_where_none_names_what_another_changes():
    more = "alter table `shop`.`_orders_gho` add column other int, add key (n)"
    found = alter_of(SWAP, *GH_OST, more)
    assert found.query.endswith("add column note varchar(20), drop index `i`, add column other int, add key (n)")


def test_a_copy_that_is_only_rebuilt_is_rebuilt():
    assert alter_of(SWAP, GH_OST[1], "alter table `shop`.`_orders_gho` engine=innodb").query == "ALTER TABLE `shop`.`orders` engine=innodb"


def test_a_route_gives_the_alter_the_sinks_name():
    routes = [("shop.*", "archive.{table}_v2")]
    found = alter_of(SWAP, *GH_OST, routes=routes)
    assert found.query.startswith("ALTER TABLE `archive`.`orders_v2` add column")
    assert found.name == TableName("archive", "orders_v2")
    with pytest.raises(NeedsOperator, match="foreign key"):
        alter_of(SWAP, GH_OST[1], "alter table shop._orders_gho add foreign key (n) references shop.parents (id)", routes=routes)


def test_the_table_stays_where_it_is_and_its_copy_is_gone():
    orders, copy = FoldedName("shop", "orders"), FoldedName("shop", "_orders_gho")
    assert cut_over().moves == (TableMove(orders, orders, orders), TableMove(copy, None, None))


@pytest.mark.parametrize(
    ("swap", "options"),
    [
        (SWAP, {"mode": OFF}),
        (SWAP.replace("_orders_del", "gone"), {}),
        (SWAP.replace("_orders_gho", "other"), {}),
        ("rename table shop._orders_gho to shop.orders", {}),
        ("rename table shop.orders to shop._orders_gho, shop._orders_del to shop.orders", {}),
        (SWAP, {"tables": ("shop.orders", "shop._orders_del")}),
    ],
)
def test_another_rename_stops_by_name_as_without_these_tools(swap, options):
    found = cut_over(swap, **options)
    assert found.cut_over is None
    assert found.refusal is not None


def test_a_test_on_a_replica_is_named_when_it_takes_its_cut_over_back():
    found = cut_over("rename /* gh-ost */ table shop.orders to shop._orders_gho, shop._orders_del to shop.orders")
    assert "takes the cut-over of an online schema change back" in found.refusal.why


def test_a_filter_that_takes_the_copy_in_has_the_tables_as_upstream_has_them():
    found = cut_over(tables=("shop.*",))
    assert (found.cut_over, found.refusal, found.left_out, found.query) == (None, None, "", SWAP)


@pytest.mark.parametrize("query", GH_OST)
def test_statements_about_tables_of_the_tools_are_left_out_with_the_reason(query):
    assert select_ddl(ddl(query, table="_x"), selection(ALWAYS, ())).left_out == "source.online_ddl excludes it"
    assert select_ddl(ddl(query, table="_x"), selection()).left_out == "source.tables excludes it"


@pytest.mark.parametrize("name", ["_orders_gho", "_orders_new", "_orders_ghc", "_orders_ghk", "_orders_del", "_orders_old"])
def test_rows_of_these_tables_are_left_out_always_or_by_the_filter(name):
    table = TableName("shop", name)
    assert not selection(ALWAYS, ()).has(table)
    assert selection(FILTERED, ()).has(table)
    assert not selection().has(table)


LONG = "a_table_with_a_name_that_is_as_long_as_a_name_may_be_in_mysql_64"


@pytest.mark.parametrize(
    ("copy", "leftover", "table"),
    [
        ("__orders_new", "__orders_old", "orders"),
        ("_orders_gho", "_orders_20261123165900_del", "Orders"),
        (f"_{LONG[:59]}_gho", f"_{LONG[:59]}_del", LONG),
        (f"_{LONG[:59]}_new", f"_{LONG[:59]}_old", LONG),
    ],
)
def test_names_that_the_tools_change_are_known(copy, leftover, table):
    swap = f"rename table shop.{table} to shop.{leftover}, shop.{copy} to shop.{table}"
    assert cut_over(swap, tables=(f"shop.{table}",)).cut_over.copy == ("shop", copy)


def test_a_rule_has_one_group():
    with pytest.raises(PatternError, match="exactly one group"):
        OnlineDdl.parse(FILTERED, ["^_.+_gho$"])
    with pytest.raises(PatternError, match="cannot be read"):
        OnlineDdl.parse(FILTERED, ["^_(.+_gho$"])
