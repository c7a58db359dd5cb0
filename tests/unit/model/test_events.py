from applier.model.events import ColumnShape, FoldedName, KnownKeys, Shape, TableName


def test_names_are_compared_without_regard_to_case() -> None:
    assert TableName("Shop", "ORDERS").fold() == TableName("shop", "Orders").fold() == FoldedName("shop", "orders")
    assert str(TableName("Shop", "ORDERS")) == "Shop.ORDERS"
    assert str(FoldedName("shop", "")) == "shop"


def test_a_schema_covers_its_tables_and_no_others() -> None:
    assert FoldedName("s", "a").is_covered(frozenset({FoldedName("s", "")}))
    assert FoldedName("s", "a").is_covered(frozenset({FoldedName("s", "a")}))
    assert not FoldedName("r", "a").is_covered(frozenset({FoldedName("s", ""), FoldedName("s", "a")}))


def test_the_handle_key_is_sorted_by_folded_name() -> None:
    shape = Shape("s", "t", (ColumnShape("b", 8), ColumnShape("x", 8), ColumnShape("A", 8)), KnownKeys(handle=("A", "b")))
    assert [column.name for column in shape.handle_key] == ["A", "b"]


def test_a_key_that_the_format_does_not_tell_is_not_the_absence_of_one() -> None:
    unknown, keyless = (Shape("s", "t", (ColumnShape("a", 8),), keys) for keys in (KnownKeys(), KnownKeys(handle=())))
    assert (unknown.handle_key, unknown.has_unknown_key) == ((), True)
    assert (keyless.handle_key, keyless.has_unknown_key) == ((), False)
