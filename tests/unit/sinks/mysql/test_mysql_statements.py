"""Statements of the dialect, and where they are cut."""

from collections.abc import Iterable, Sequence

import pytest

from applier.model.errors import FatalSinkError
from applier.mysql import keyed_statements as cutting
from applier.planner.port import ColumnDescription, TableDescription
from applier.sinks.mysql.dialect import MysqlDialect, quote_identifier

TABLE = TableDescription(schema="sh`op", table="orders", columns=(), unique_keys=())
HEAD = "REPLACE INTO `sh``op`.`orders` (`id`,`na``me`) VALUES "


def replaces(rows: Iterable[str], **limits: int) -> list[tuple[str, int]]:
    return list(MysqlDialect(**limits).replaces(TABLE, ["id", "na`me"], rows))


def deletes(columns: Sequence[str], rows: Iterable[Sequence[str]], **limits: int) -> list[tuple[str, int]]:
    return list(MysqlDialect(**limits).deletes(TABLE, columns, rows))


def test_names_are_quoted_and_their_backticks_doubled() -> None:
    assert quote_identifier("a`b") == "`a``b`"


def test_rows_are_replaced_many_at_once() -> None:
    assert replaces(["(1,'a')", "(2,'b')"]) == [(HEAD + "(1,'a'),(2,'b')", 2)]


def test_statements_are_cut_by_rows() -> None:
    assert [rows for _, rows in replaces(["(1,2)"] * 7, max_rows=3)] == [3, 3, 1]


@pytest.mark.parametrize("filler", ["x", "é", "😀"])
def test_statements_are_cut_by_bytes_as_the_server_counts_them(filler: str) -> None:
    statements = replaces([f"({row},'{filler * 10}')" for row in range(40)], max_packet_bytes=300)
    assert len(statements) > 1
    assert sum(rows for _, rows in statements) == 40
    assert all(len(text.encode()) + 1 <= 300 for text, _ in statements)


def test_a_statement_is_as_large_as_the_packet_allows() -> None:
    row = "(1,'abcdefghij')"
    size = len((HEAD + row + "," + row).encode()) + 2
    assert [rows for _, rows in replaces([row] * 2, max_packet_bytes=size)] == [2]
    assert [rows for _, rows in replaces([row] * 2, max_packet_bytes=size - 1)] == [1, 1]


def test_statements_stay_near_the_target_even_if_packets_may_be_larger(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cutting, "TARGET_BYTES", 100)
    large = "(1,'" + "x" * 200 + "')"
    assert [rows for _, rows in replaces(["(1,2)", large, "(1,2)", "(1,2)"])] == [1, 1, 2]


def test_a_row_larger_than_a_packet_stops_after_the_rows_before_it() -> None:
    statements = MysqlDialect(max_packet_bytes=120).replaces(TABLE, ["id", "na`me"], ["(1,2)", "(2,'" + "x" * 100 + "')"])
    assert next(statements) == (HEAD + "(1,2)", 1)
    with pytest.raises(FatalSinkError, match="max_allowed_packet") as caught:
        next(statements)
    assert caught.value.facts["table"] == "sh`op.orders"
    assert caught.value.facts["max_packet_bytes"] == 120


def test_a_single_key_is_looked_up_in_a_list() -> None:
    assert deletes(["id"], [["1"], ["2"]]) == [("DELETE FROM `sh``op`.`orders` WHERE `id` IN (1,2)", 2)]


def test_keys_of_several_columns_are_looked_up_as_rows() -> None:
    assert deletes(["a", "b"], [["1", "'x'"], ["2", "'y'"]]) == [("DELETE FROM `sh``op`.`orders` WHERE (`a`,`b`) IN ((1,'x'),(2,'y'))", 2)]


def test_keys_with_a_null_part_are_compared_null_safe_and_the_order_is_kept() -> None:
    rows = [["1", "2"], ["NULL", "3"], ["4", "NULL"], ["5", "6"]]
    assert deletes(["a", "b"], rows) == [
        ("DELETE FROM `sh``op`.`orders` WHERE (`a`,`b`) IN ((1,2),(1,2))", 1),
        ("DELETE FROM `sh``op`.`orders` WHERE (`a`<=>NULL AND `b`<=>3) OR (`a`<=>4 AND `b`<=>NULL)", 2),
        ("DELETE FROM `sh``op`.`orders` WHERE (`a`,`b`) IN ((5,6),(5,6))", 1),
    ]


def test_a_key_of_several_columns_that_stands_alone_is_written_twice_because_mariadb_scans_the_table_for_one() -> None:
    assert deletes(["a", "b"], [["1", "2"]]) == [("DELETE FROM `sh``op`.`orders` WHERE (`a`,`b`) IN ((1,2),(1,2))", 1)]


@pytest.mark.parametrize("is_set", [False, True], ids=["enum", "set"])
def test_labels_in_a_compound_key_stand_apart_because_mysql_misses_ordinals_in_a_list_and_mariadb_scans_for_labels(*, is_set: bool) -> None:
    ordinals = ColumnDescription(name="e", sql_type="", nullable=False, labels=("1", "x"), is_set=is_set)
    table = TableDescription(schema="s", table="t", columns=(ordinals,), unique_keys=())
    dialect = MysqlDialect()
    assert list(dialect.deletes(table, ["e", "id"], [["2", "1"], ["1", "2"]])) == [
        ("DELETE FROM `s`.`t` WHERE (`e`<=>'x' AND `id`<=>1) OR (`e`<=>'1' AND `id`<=>2)", 2)
    ]
    assert list(dialect.deletes(table, ["e"], [["2"], ["1"]])) == [("DELETE FROM `s`.`t` WHERE `e` IN ('x','1')", 2)]


def test_a_replace_raises_no_more_warnings_than_the_session_shows() -> None:
    def rows_of(enums: int, **limits: int) -> list[int]:
        columns = tuple(ColumnDescription(name=f"e{n}", sql_type="", nullable=True, labels=("x",)) for n in range(enums))
        table = TableDescription(schema="s", table="t", columns=columns, unique_keys=())
        return [rows for _, rows in MysqlDialect(**limits).replaces(table, ["id"], ["(0)"] * 1000)]

    assert rows_of(3) == [1000]
    assert rows_of(1, max_warnings=1024) == [1000]
    assert rows_of(3, max_warnings=1024) == [341, 341, 318]
    assert rows_of(2, max_warnings=0) == [1] * 1000


def test_text_beyond_ascii_in_a_compound_key_stands_apart_because_mariadb_misses_it_in_a_list() -> None:
    assert deletes(["a", "b"], [["1", "'é'"]]) == [("DELETE FROM `sh``op`.`orders` WHERE (`a`<=>1 AND `b`<=>'é')", 1)]
    assert deletes(["b"], [["'é'"], ["'e'"]]) == [("DELETE FROM `sh``op`.`orders` WHERE `b` IN ('é','e')", 2)]


def test_hexadecimal_text_stands_apart_and_bytes_do_not() -> None:
    raw = TableDescription(
        schema="s", table="t", columns=(ColumnDescription(name="a", sql_type="blob", nullable=False, binary=True),), unique_keys=()
    )
    assert list(MysqlDialect().deletes(raw, ["a"], [["x'00'"], ["x'01'"]])) == [("DELETE FROM `s`.`t` WHERE `a` IN (x'00',x'01')", 2)]
    assert list(MysqlDialect().deletes(raw, ["b"], [["'b'"], ["x'ff'"]])) == [
        ("DELETE FROM `s`.`t` WHERE `b` IN ('b')", 1),
        ("DELETE FROM `s`.`t` WHERE (`b`<=>x'ff')", 1),
    ]


def test_the_text_null_is_not_null() -> None:
    assert deletes(["a"], [["'NULL'"]]) == [("DELETE FROM `sh``op`.`orders` WHERE `a` IN ('NULL')", 1)]


def test_lists_of_keys_stay_below_the_length_from_which_servers_rewrite_them() -> None:
    assert [rows for _, rows in deletes(["id"], (["1"] for _ in range(1200)), max_rows=10_000)] == [500, 500, 200]


def test_deletes_are_cut_by_bytes() -> None:
    statements = deletes(["id"], ([f"'{'x' * 20}'"] for _ in range(30)), max_packet_bytes=200)
    assert sum(rows for _, rows in statements) == 30
    assert all(len(text) + 1 <= 200 for text, _ in statements)
    with pytest.raises(FatalSinkError):
        deletes(["a", "b"], [["1", f"'{'x' * 80}'"]], max_packet_bytes=200)


def test_without_rows_there_is_no_statement() -> None:
    assert replaces([]) == []
    assert deletes(["id"], []) == []
