"""What the flags of a column say."""

from applier.model.events import KnownKeys
from applier.sources.column_flags import Flag, column_of, flags_of, keys_of, shape_of

PRIMARY = int(Flag.HANDLE_KEY | Flag.PRIMARY_KEY)


def test_only_string_types_with_the_binary_flag_hold_bytes() -> None:
    assert column_of("a", 15, Flag.BINARY).is_bytes
    assert not column_of("a", 15, 0).is_bytes
    assert not column_of("a", 8, Flag.BINARY).is_bytes


def test_a_column_is_read_under_what_the_planner_has_corrected() -> None:
    assert flags_of(column_of("a", 15, int(Flag.NULLABLE))._replace(is_bytes=True)) == Flag.NULLABLE | Flag.BINARY
    assert flags_of(column_of("a", 8, int(Flag.UNSIGNED))) == Flag.UNSIGNED


def test_keys_are_named_in_the_order_of_their_folded_names() -> None:
    columns = (("b", 3, PRIMARY), ("A", 3, PRIMARY), ("u", 15, int(Flag.UNIQUE_KEY)), ("v", 15, int(Flag.UNIQUE_KEY | Flag.NULLABLE)))
    assert keys_of(columns) == KnownKeys(handle=("A", "b"), primary=("b", "A"), unique=("u", "v"), identifying=("b", "A", "u"))
    assert keys_of(columns, shows_unique=False).unique is None


def test_a_table_without_a_flagged_key_has_none() -> None:
    shape = shape_of("s", "t", (("n", 3, int(Flag.NULLABLE)),))
    assert (shape.keys.handle, shape.has_unknown_key) == ((), False)
