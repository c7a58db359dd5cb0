"""Which tables foreign keys join."""

from applier.model.events import FoldedName
from applier.planner.ordered_rows import KeyGroups, KeyLink
from applier.planner.table_check import Acceptance, DifferenceKind


def named(*tables):
    return frozenset(FoldedName("shop", table) for table in tables)


def link(child, parent, on_delete="RESTRICT", on_update="RESTRICT"):
    return KeyLink(f"of_{child}", FoldedName("shop", child), FoldedName("shop", parent), on_delete, on_update)


def group(table, *links, accept=()):
    patterns = {f"shop.{name}": (DifferenceKind.FOREIGN_KEY,) for name in accept}
    return KeyGroups(links, Acceptance(patterns)).group(FoldedName("shop", table))


def test_a_group_is_closed_over_all_keys_if_one_of_them_acts():
    links = [link("item", "order", "CASCADE"), link("order", "customer"), link("bill", "item"), link("visit", "page")]
    for table in ("item", "order", "customer", "bill"):
        assert group(table, *links) == named("item", "order", "customer", "bill")
    assert group("visit", *links) == group("page", *links) == group("alone", *links) == frozenset()


def test_each_action_counts_and_no_other_rule():
    for rule in ("CASCADE", "SET NULL", "SET DEFAULT", "cascade"):
        assert group("a", link("a", "b", on_update=rule)) == group("a", link("a", "b", on_delete=rule)) == named("a", "b")
    for rule in ("RESTRICT", "NO ACTION"):
        assert group("a", link("a", "b", rule, rule)) == frozenset()


def test_a_table_may_reference_itself():
    assert group("folder", link("folder", "folder", "CASCADE")) == named("folder")


def test_a_key_counts_unless_the_operator_accepts_both_of_its_tables():
    key = link("a", "b", "CASCADE")
    assert group("a", key, accept=("a",)) == named("a", "b")
    assert group("a", key, accept=("a", "b")) == frozenset()


def test_ten_thousand_tables_in_a_row_are_one_group():
    links = [link(f"t{number}", f"t{number + 1}", "CASCADE") for number in range(10_000)]
    assert len(group("t5000", *links)) == 10_001
