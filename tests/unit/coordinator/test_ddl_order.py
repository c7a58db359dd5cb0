"""DDLs of one commit_ts: the order of the topic's lowest partition, and names between topics."""

import pytest

from applier.coordinator import barriers as ddl_order
from applier.model.errors import NeedsOperator
from applier.model.position import Stream
from tests.timeline.scenario import OTHER, P0, P1, Scenario, ddl, folded, resolved

RENAME = "RENAME TABLE `S`.`{}` TO `S`.`{}`"


def rename(old, new):
    return ddl(3, RENAME.format(old, new), new)


def run(*topics, names):
    """Put one list of DDLs at ts 3 into each topic, and return the queries in the order in which they run."""
    streams = [Stream(f"t{i}", 0) for i in range(len(topics))]
    s = Scenario(*streams)
    for stream, ddls in zip(streams, topics, strict=True):
        s.write(stream, *ddls, resolved(4))
    s.names = folded(*names)
    return [step[2] for step in s.turn() if step[0] == "ddl"]


def refusal(*topics, names):
    with pytest.raises(NeedsOperator) as stop:
        run(*topics, names=names)
    assert stop.value.facts["kind"] == "ddl_order"
    return stop.value.message


def test_within_a_topic_the_lowest_partition_gives_the_order():
    chain = [rename("a", "x"), rename("b", "a"), rename("x", "b")]
    s = Scenario(P0, P1).write(P1, chain[2], chain[0], chain[1], resolved(4)).write(P0, *chain, chain[0], resolved(4))
    assert [step[2] for step in s.turn()[:3]] == [d.query for d in chain]


def test_a_partition_that_holds_none_of_them_gives_no_order():
    chain = [rename("a", "x"), rename("b", "a")]
    s = Scenario(P0, P1).write(P0, resolved(4)).write(P1, *chain, resolved(4))
    assert [step[2] for step in s.turn()[:2]] == [d.query for d in chain]


def test_between_topics_a_name_must_be_free_before_it_is_taken():
    assert run([rename("b", "a")], [rename("a", "x")], names="ab") == [RENAME.format("a", "x"), RENAME.format("b", "a")]


def test_between_topics_a_name_must_exist_before_it_is_used():
    create, like = ddl(3, "CREATE TABLE `b` (`i` INT)", "b"), ddl(3, "CREATE TABLE `c` LIKE `b`", "c")
    assert run([like], [create], names="") == [create.query, like.query]


def test_the_whole_order_is_searched_before_the_first_one_runs():
    assert run([rename("b", "d"), rename("a", "b")], [rename("d", "a")], names="ab") == [
        RENAME.format("b", "d"),
        RENAME.format("a", "b"),
        RENAME.format("d", "a"),
    ]


def test_no_possible_order_is_the_operators_decision():
    assert "no order is possible" in refusal([rename("a", "b")], [rename("b", "a")], names="ab")


def test_several_orders_with_different_results_are_the_operators_decision():
    drop = ddl(3, "DROP TABLE IF EXISTS `a`")
    assert "several orders" in refusal([drop], [rename("b", "a")], names="b")


def test_several_orders_with_one_result_are_any_of_them():
    truncates = [ddl(3, "TRUNCATE TABLE `a`")], [rename("b", "x"), ddl(3, "CREATE TABLE IF NOT EXISTS `a` (`i` INT)", "z")]
    assert len(run(*truncates, names="ab")) == 3


def test_a_statement_that_is_not_understood_cannot_be_ordered_by_names():
    assert "cannot be parsed" in refusal([ddl(3, "FROB")], [rename("b", "c")], names="ab")


def test_topics_that_share_no_names_are_not_asked_for_names():
    s = Scenario(P0, OTHER).write(P0, rename("a", "x"), resolved(4)).write(OTHER, rename("b", "y"), resolved(4))
    assert len(s.turn()) == 3
    assert not hasattr(s, "asked")


def test_names_are_asked_for_once_and_only_of_entangled_topics():
    third = Stream("third", 0)
    s = Scenario(P0, OTHER, third).write(P0, rename("b", "a"), resolved(4)).write(OTHER, rename("a", "x"), resolved(4))
    s.write(third, rename("m", "n"), resolved(4))
    s.names = folded("a", "b")
    assert len(s.turn()) == 4
    assert {name.table for name in s.asked} == {"a", "b", "x"}


def test_a_hundred_independent_topics_need_no_search():
    assert len(run(*[[ddl(3, f"CREATE TABLE `c{i}` (`i` INT)", f"c{i}")] for i in range(100)], names="")) == 100


def test_three_topics_are_entangled_through_the_one_in_the_middle():
    ran = run([rename("a", "b")], [rename("c", "d")], [rename("b", "c")], names="abc")
    assert ran == [RENAME.format("c", "d"), RENAME.format("b", "c"), RENAME.format("a", "b")]


def test_a_ddl_that_two_topics_hold_runs_once():
    assert run([rename("a", "x"), rename("b", "a")], [rename("a", "x")], names="ab") == [RENAME.format("a", "x"), RENAME.format("b", "a")]


def test_a_search_that_grows_without_bound_is_given_up(monkeypatch):
    monkeypatch.setattr(ddl_order, "MAX_SEARCHED", 1)
    with pytest.raises(NeedsOperator, match="too many"):
        run([rename("b", "y")], [ddl(3, "TRUNCATE TABLE `b`"), rename("a", "x")], names="ab")


@pytest.mark.parametrize(
    ("first", "second", "names", "expected"),
    [
        ("DROP TABLE `a`", "CREATE TABLE `a` (`i` INT)", "a", 0),
        ("CREATE TABLE `a` (`i` INT)", "DROP TABLE `a`", "a", 1),
        ("CREATE TABLE `a` (`i` INT)", "ALTER TABLE `a` COMMENT = 'x'", "", 0),
        ("CREATE TABLE `a` (`i` INT)", "CREATE DATABASE `S`", "", 1),
        ("RENAME TABLE `Q`.`a` TO `S`.`a`", "CREATE DATABASE `S`", "", None),
        ("CREATE DATABASE `S`", "DROP DATABASE `S`", "", 0),
        ("CREATE TABLE `a` (`i` INT)", "CREATE TABLE `a` (`i` INT)", "", None),
        ("CREATE DATABASE `S`", "CREATE DATABASE `S`", "", None),
        ("DROP DATABASE `S`", "TRUNCATE TABLE `a`", "a", 1),
        ("CREATE OR REPLACE VIEW `a` AS SELECT 1", "DROP VIEW `a`", "", 0),
        ("CREATE DATABASE IF NOT EXISTS `S`", "DROP DATABASE IF EXISTS `S`", "a", None),
        ("ALTER DATABASE `S` COLLATE utf8mb4_bin", "DROP DATABASE `S`", "a", 0),
        ("ALTER TABLE `a` EXCHANGE PARTITION `p` WITH TABLE `b`", "TRUNCATE TABLE `b`", "ab", None),
    ],
)
def test_what_each_statement_needs_and_leaves(first, second, names, expected):
    """``expected`` is the index of the statement that runs first; None: not decidable."""
    topics = [ddl(3, first)], [ddl(3, second, "z")]
    if expected is None:
        refusal(*topics, names=names)
    else:
        assert run(*topics, names=names)[0] == (first, second)[expected]
