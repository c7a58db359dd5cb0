"""When the sink's foreign keys are read, and which tables they order."""

from dataclasses import dataclass, field

import pytest

from applier.ddl import touches
from applier.model.errors import NeedsOperator
from applier.model.events import DdlEvent, FoldedName, TableName
from applier.model.position import Offset, Ts
from applier.model.range_report import TableRows
from applier.planner.ordered_rows import KeyLink
from applier.planner.table_check import Acceptance
from applier.replica.sink_tables import SinkKeys


def name(table):
    return FoldedName("shop", table)


def rows(table, *, hides_actions=True, key=("id",)):
    return TableRows(TableName("shop", table), key, 1, Ts(5), Ts(6), Offset(7), hides_actions=hides_actions)


def link(child, parent, rule="CASCADE"):
    return KeyLink("of", name(child), name(parent), rule, "RESTRICT")


@dataclass
class Keys:
    """A sink with foreign keys. ``asked``: for which tables it was asked."""

    links: list[KeyLink] | None
    texts: tuple[DdlEvent, ...] = ()
    asked: list[list[str] | None] = field(default_factory=list)

    def foreign_keys(self, tables=None):
        self.asked.append(None if tables is None else [str(table) for table in tables])
        if self.links is None or tables is None:
            return self.links
        return [one for one in self.links if one.child in {table.fold() for table in tables}]

    def statements(self):
        return self.texts


def ddl(query, table):
    return DdlEvent(commit_ts=Ts(1), schema="shop", table=table, query=query, ddl_type=3)


def keys_of(sink, left_out=()):
    return SinkKeys(sink, sink.statements, Acceptance(), lambda table: table in left_out)


def execute(keys, query, table):
    one = ddl(query, table)
    keys.executed(one, touches(one))


def test_rows_whose_actions_are_in_the_log_ask_nothing():
    sink = Keys([link("child", "parent")])
    assert keys_of(sink).ordered([rows("child", hides_actions=False)]) == frozenset()
    assert sink.asked == []


def test_tables_are_ordered_with_those_that_they_are_joined_to():
    sink = Keys([link("child", "parent")])
    keys = keys_of(sink)
    assert keys.ordered([rows("child"), rows("other")]) == {name("child"), name("parent")}
    assert keys.ordered([rows("other")]) == frozenset()
    assert sink.asked == [None]


def test_a_ddl_has_only_those_keys_read_again_that_it_may_have_changed():
    sink = Keys([link("child", "parent")])
    keys = keys_of(sink)
    keys.ordered([rows("child")])
    execute(keys, "ALTER TABLE other ADD COLUMN n INT", "other")
    keys.ordered([rows("child")])
    assert sink.asked == [None]
    sink.links = [link("child", "man")]
    execute(keys, "RENAME TABLE parent TO man", "man")
    assert keys.ordered([rows("man")]) == {name("child"), name("man")}
    sink.links = [link("child", "man", "RESTRICT")]
    execute(keys, "ALTER TABLE child ADD CONSTRAINT of FOREIGN KEY (m) REFERENCES man (id)", "child")
    assert keys.ordered([rows("man")]) == frozenset()
    assert sink.asked == [None, ["shop.child", "shop.man", "shop.parent"], ["shop.child", "shop.man"]]


def test_all_keys_are_read_again_where_a_schema_or_everything_may_have_changed():
    sink = Keys([link("child", "parent")])
    keys = keys_of(sink)
    for query in ("DROP DATABASE shop", "SOMETHING ELSE"):
        keys.ordered([rows("child")])
        execute(keys, query, "")
    execute(keys, "CREATE DATABASE another", "")
    keys.forget()
    keys.ordered([rows("child")])
    assert sink.asked == [None] * 3


def test_a_sink_that_executes_no_actions_stops_by_the_statements_that_it_has_run():
    create = ddl("CREATE TABLE child (p INT, CONSTRAINT of FOREIGN KEY (p) REFERENCES parent (id) ON DELETE CASCADE)", "child")
    keys = keys_of(Keys(None, (create,)))
    for table in ("child", "parent"):
        with pytest.raises(NeedsOperator, match=r"foreign key of of shop\.child") as caught:
            keys.ordered([rows(table)])
        assert (caught.value.facts["difference"], caught.value.facts["table"]) == ("foreign_key", f"shop.{table}")
    execute(keys, "ALTER TABLE child DROP FOREIGN KEY of", "child")
    assert keys.ordered([rows("child")]) == frozenset()


def test_a_parent_that_is_left_out_stops():
    keys = keys_of(Keys([link("child", "parent"), link("grandchild", "child")]), left_out={name("parent")})
    with pytest.raises(NeedsOperator) as caught:
        keys.ordered([rows("grandchild")])
    assert "include shop.parent in source.tables" in caught.value.remedy


def test_a_parent_that_is_left_out_of_a_key_without_an_action_stops_until_the_sink_has_no_such_key():
    sink = Keys([link("child", "parent"), link("child", "page", "RESTRICT")._replace(name="seen")])
    with pytest.raises(NeedsOperator) as caught:
        keys_of(sink, {name("page")}).ordered([rows("parent")])
    assert caught.value.remedy.startswith("Drop the foreign keys of shop.child that reference shop.page in the sink")
    sink.links.pop()
    assert keys_of(sink, {name("page")}).ordered([rows("parent")])


def test_a_table_without_a_key_may_be_a_child_and_no_parent():
    keys = keys_of(Keys([link("child", "parent")]))
    assert keys.ordered([rows("child", key=())])
    with pytest.raises(NeedsOperator, match="foreign key"):
        keys.ordered([rows("parent", key=())])
    assert keys.ordered([rows("parent", key=())], rekeyed={name("parent")})
