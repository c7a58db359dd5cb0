"""What a MODIFY makes of old rows in SQLite: the cases that the servers' test has too (``integration/test_old_values.py``)."""

import pytest

from applier.model.errors import NeedsOperator
from applier.sinks.sqlite.stored_value import Stored
from tests.builders.conversions import CONVERSIONS, CONVERSIONS_TO_CHARSETS, NARROWED, STOP
from tests.rig.sqlite_file import SqliteFile


def stored(old: str, value: str) -> Stored:
    """Return a value as the file stores it."""
    if value == "NULL":
        return None
    if value.startswith("X'"):
        return bytes.fromhex(value[2:-1])
    if value.startswith("REPEAT"):
        return "é" * 128
    if value.startswith("'"):
        return value[1:-1].encode() if "BINARY" in old else value[1:-1]
    if old in {"FLOAT", "DOUBLE"}:
        return float(value)
    return value if old.startswith("DECIMAL") or int(value) >= 2**63 else int(value)


@pytest.mark.parametrize(("old", "new", "value", "expected"), [*CONVERSIONS, *NARROWED])
def test_each_value_becomes_what_it_is_on_the_servers_or_stops(file: SqliteFile, old: str, new: str, value: str, expected: str) -> None:
    file.ddl_zone = "+08:00"
    file.ddl(f"CREATE TABLE t (id INT PRIMARY KEY, c {old})")
    file.insert("shop.t", (1, stored(old, value)))
    try:
        file.ddl(f"ALTER TABLE t MODIFY COLUMN c {new}")
    except NeedsOperator:
        assert expected == STOP
        assert file.rows() == [(1, stored(old, value))]
    else:
        assert str(file.rows()[0][1]) == expected


@pytest.mark.parametrize(("old", "charset", "value", "expected"), CONVERSIONS_TO_CHARSETS)
def test_texts_are_converted_to_a_character_set_that_holds_them(
    file: SqliteFile, old: str, charset: str, value: str, expected: str
) -> None:
    file.ddl(f"CREATE TABLE t (id INT PRIMARY KEY, c {old})")
    file.insert("shop.t", (1, stored(old, value)))
    try:
        file.ddl(f"ALTER TABLE t CONVERT TO CHARACTER SET {charset}")
    except NeedsOperator:
        assert expected == STOP
        assert file.rows() == [(1, stored(old, value))]
    else:
        assert str(file.rows()[0][1]) == expected


def test_a_text_of_another_character_set_grows_where_all_is_converted(file: SqliteFile) -> None:
    file.ddl("CREATE TABLE t (id INT PRIMARY KEY, c TEXT CHARACTER SET gbk, d VARCHAR(9) CHARACTER SET gbk)")
    file.insert("shop.t", (1, "日" * 30_000, "日"))
    file.ddl("ALTER TABLE t CONVERT TO CHARACTER SET utf8mb4")
    assert (file.types()["c"], file.types()["d"]) == ("mediumtext", "varchar(9)")
    assert file.rows() == [(1, "日" * 30_000, "日")]


def test_the_fraction_of_the_time_of_a_new_column_is_not_known(file: SqliteFile) -> None:
    file.ddl("CREATE TABLE t (id INT PRIMARY KEY)")
    file.ddl("ALTER TABLE t ADD b DATETIME(3) DEFAULT CURRENT_TIMESTAMP(3)")
    file.insert("shop.t", (1, None))
    with pytest.raises(NeedsOperator, match="fraction of a second"):
        file.ddl("ALTER TABLE t ADD at DATETIME(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6)")
