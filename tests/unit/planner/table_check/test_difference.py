"""What the sink's table has that upstream's lacks."""

import pytest

from applier.model.events import UNKNOWN_KEYS, FoldedName, Shape, TableName
from applier.planner.table_check import (
    Acceptance,
    DifferenceKind,
    FoldingColumn,
    SinkTable,
    UniqueIndex,
    check_pattern,
    differences_of,
    extra_unique_index,
    unique_index_difference,
)
from applier.sources.column_flags import Flag, shape_of

ORDERS = TableName("shop", "orders")
PK = int(Flag.HANDLE_KEY | Flag.PRIMARY_KEY)
U = int(Flag.UNIQUE_KEY)


def shape(**flags: int) -> Shape:
    return shape_of("shop", "orders", tuple((name, 15, bits) for name, bits in flags.items()))


def extra(of: Shape, *columns: str) -> bool:
    index = UniqueIndex("u", columns)
    return extra_unique_index(of, [index]) == index


def test_a_plain_table_with_transactions_has_no_difference() -> None:
    assert differences_of(SinkTable(name=ORDERS, engine="InnoDB")) == ()
    assert differences_of(SinkTable(name=ORDERS, kind="SYSTEM VERSIONED")) == ()


@pytest.mark.parametrize(
    ("table", "kind", "what"),
    [
        (SinkTable(name=ORDERS, kind="VIEW"), DifferenceKind.VIEW, "view"),
        (SinkTable(name=ORDERS, kind="SEQUENCE"), DifferenceKind.VIEW, "sequence"),
        (SinkTable(name=ORDERS, engine="MyISAM", has_transactions=False), DifferenceKind.ENGINE, "engine MyISAM"),
        (SinkTable(name=ORDERS, triggers=("audit",)), DifferenceKind.TRIGGER, "trigger audit"),
        (SinkTable(name=ORDERS, shows_triggers=False), DifferenceKind.TRIGGER, "unknown triggers"),
        (
            SinkTable(name=ORDERS, folding=(FoldingColumn("code", "utf8mb4_general_ci"),)),
            DifferenceKind.COLLATION,
            "collation utf8mb4_general_ci of key column code",
        ),
    ],
)
def test_each_difference_is_named_with_its_harm_and_its_remedy(table: SinkTable, kind: DifferenceKind, what: str) -> None:
    (difference,) = differences_of(table)
    assert (difference.kind, difference.what) == (kind, what)
    assert difference.harm
    assert difference.remedy


def test_trailing_spaces_of_keys_matter_where_upstream_has_no_new_collations() -> None:
    table = SinkTable(name=ORDERS, padding=(FoldingColumn("code", "utf8mb4_bin"),))
    assert differences_of(table) == ()
    (difference,) = differences_of(table, new_collations=False)
    assert (difference.kind, difference.collation) == (DifferenceKind.COLLATION, "")
    assert "NO PAD" in difference.remedy


def test_no_remedy_changes_the_character_set_of_a_column() -> None:
    gbk = FoldingColumn("code", "gbk_chinese_ci")
    (difference,) = differences_of(SinkTable(name=ORDERS, folding=(gbk,)))
    assert ("character set gbk" in difference.remedy, "utf8mb4" in difference.remedy) == (True, False)
    (padding,) = differences_of(SinkTable(name=ORDERS, padding=(FoldingColumn("code", "gbk_bin"),)), new_collations=False)
    assert ("gbk_nopad_bin" in padding.remedy, "utf8mb4" in padding.remedy) == (True, False)


def test_a_unique_index_of_an_expression_that_the_sink_computes_otherwise_keeps_its_name_without_unique() -> None:
    (difference,) = differences_of(SinkTable(name=ORDERS, unportable_indexes=("low",)))
    assert (difference.kind, difference.what) == (DifferenceKind.GENERATED, "unique index low of an expression")
    assert "DROP INDEX low, ADD INDEX low (…)" in difference.remedy


def test_all_differences_of_a_table_are_listed() -> None:
    table = SinkTable(name=ORDERS, engine="MyISAM", has_transactions=False, triggers=("a", "b"))
    assert [found.what for found in differences_of(table)] == ["engine MyISAM", "trigger a", "trigger b"]


def test_a_view_has_no_other_differences() -> None:
    assert len(differences_of(SinkTable(name=ORDERS, kind="VIEW", has_transactions=False))) == 1


def test_a_unique_index_whose_columns_are_not_flagged_is_extra() -> None:
    assert extra(shape(id=PK, email=0), "email")
    assert extra(shape(id=PK, email=U, name=0), "email", "name")


def test_a_unique_index_whose_columns_are_all_flagged_is_upstreams() -> None:
    assert not extra(shape(id=PK, email=U), "EMAIL")
    assert not extra(shape(id=PK, email=U, name=U), "name", "email")


def test_an_index_that_holds_a_whole_key_of_upstream_refuses_nothing() -> None:
    assert not extra(shape(id=PK, name=0), "id")
    assert not extra(shape(id=PK, name=0), "ID", "name")
    handle = int(Flag.HANDLE_KEY | Flag.UNIQUE_KEY)
    assert not extra(shape(id=int(Flag.PRIMARY_KEY), code=handle), "id")


def test_a_key_of_fewer_columns_than_upstreams_is_stricter() -> None:
    assert extra(shape(a=PK, b=PK), "a")
    assert not extra(shape(a=PK, b=PK), "b", "a")


def test_an_index_of_what_the_wire_does_not_show_is_taken_for_upstreams() -> None:
    assert not extra(shape(id=PK, name=0))
    assert not extra(shape(id=PK, name=0), "virtual")
    assert not extra(shape(id=PK, name=U), "name", "virtual")
    assert extra(shape(id=PK, name=0), "name", "virtual")


def test_a_row_without_flags_makes_an_index_extra_unless_it_is_the_handle_key() -> None:
    of = shape(id=int(Flag.HANDLE_KEY), email=0)
    assert not extra(of, "id")
    assert extra(of, "email")


def test_a_format_that_names_no_unique_index_leaves_each_to_be_explained() -> None:
    of = shape(id=PK, email=U)
    silent = of._replace(keys=of.keys._replace(unique=None))
    assert extra(silent, "email")
    assert not extra(silent, "id", "email")
    assert extra(of._replace(keys=UNKNOWN_KEYS), "id")
    assert "source.upstream" in unique_index_difference("u", is_told=False).remedy
    assert "source.upstream" not in unique_index_difference("u").remedy


def test_a_unique_index_difference_names_the_index() -> None:
    difference = unique_index_difference("u_email")
    assert difference.kind is DifferenceKind.UNIQUE_INDEX
    assert "u_email" in difference.what
    assert "u_email" in difference.remedy


def test_patterns_accept_kinds_of_tables() -> None:
    accept = Acceptance({"shop.Ord*": (DifferenceKind.TRIGGER,), "*.log_?": (DifferenceKind.ENGINE,), "a[b].c": (DifferenceKind.VIEW,)})
    assert accept.accepts(FoldedName("shop", "orders"), DifferenceKind.TRIGGER)
    assert not accept.accepts(FoldedName("shop", "orders"), DifferenceKind.ENGINE)
    assert not accept.accepts(FoldedName("bank", "orders"), DifferenceKind.TRIGGER)
    assert accept.accepts(FoldedName("bank", "log_1"), DifferenceKind.ENGINE)
    assert not accept.accepts(FoldedName("bank", "log_12"), DifferenceKind.ENGINE)
    assert accept.accepts(FoldedName("a[b]", "c"), DifferenceKind.VIEW)


def test_nothing_is_accepted_unless_it_is_named() -> None:
    assert not any(Acceptance().accepts(ORDERS.fold(), kind) for kind in DifferenceKind)


@pytest.mark.parametrize("pattern", ["orders", ".orders", "shop.", ""])
def test_a_pattern_names_schema_and_table(pattern: str) -> None:
    assert check_pattern(pattern)
    assert not check_pattern("shop.orders")
