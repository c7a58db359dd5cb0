from applier.model.events import ColumnShape, Flag, FoldedName, Shape, TableName


def test_names_are_compared_without_regard_to_case() -> None:
    assert TableName("Shop", "ORDERS").fold() == TableName("shop", "Orders").fold() == FoldedName("shop", "orders")
    assert str(TableName("Shop", "ORDERS")) == "Shop.ORDERS"
    assert str(FoldedName("shop", "")) == "shop"


def test_a_schema_covers_its_tables_and_no_others() -> None:
    assert FoldedName("s", "a").is_covered(frozenset({FoldedName("s", "")}))
    assert FoldedName("s", "a").is_covered(frozenset({FoldedName("s", "a")}))
    assert not FoldedName("r", "a").is_covered(frozenset({FoldedName("s", ""), FoldedName("s", "a")}))


def test_the_handle_key_is_sorted_by_folded_name() -> None:
    key = Flag.HANDLE_KEY
    shape = Shape("s", "t", (ColumnShape("b", 8, key), ColumnShape("x", 8, 0), ColumnShape("A", 8, key | Flag.UNSIGNED)))
    assert [column.name for column in shape.handle_key] == ["A", "b"]


def test_only_string_types_with_the_binary_flag_hold_bytes() -> None:
    assert ColumnShape("a", 15, Flag.BINARY).is_bytes
    assert not ColumnShape("a", 15, 0).is_bytes
    assert not ColumnShape("a", 8, Flag.BINARY).is_bytes
