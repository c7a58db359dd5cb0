from applier.sinks.mysql.table_text import MARIADB, MYSQL, TIDB, TableText
from applier.sinks.table_pair import pair_tables
from applier.sinks.table_reader import Scope
from tests.unit.verify.pairs import BOTH, side_column, side_table, table_pair

ID = side_column("id", "int")


def text_of(*columns, key=("id",), kinds=BOTH, is_upstream=True):
    return TableText(table_pair(*columns, key=key, kinds=kinds), kinds[0], is_upstream=is_upstream)


def test_a_value_of_any_characters_has_its_length_before_it_and_a_large_one_is_digested():
    text = text_of(ID, side_column("v", "varchar(9)"), side_column("b", "blob"))
    assert text.row_digest == "SHA2(CONCAT_WS(',',`id`,LENGTH(CAST(`v` AS BINARY)),CAST(`v` AS BINARY),SHA2(`b`,256)),256)"


def test_a_nullable_column_says_whether_it_is_null():
    assert text_of(ID, side_column("v", "int", nullable=True)).row_digest == "SHA2(CONCAT_WS(',',ISNULL(`v`),`id`,`v`),256)"


def test_text_of_another_character_set_is_converted():
    assert "CONVERT(`v` USING utf8mb4)" in text_of(ID, side_column("v", "char(9)", charset="gbk")).row_digest


def test_zerofill_and_bits_are_written_as_numbers():
    text = text_of(ID, side_column("z", "int zerofill"), side_column("b", "bit(3)"), side_column("y", "year"))
    assert text.row_digest == "SHA2(CONCAT_WS(',',`id`,`z`+0,`b`+0,`y`+0),256)"


def test_the_narrower_side_is_filled_up():
    wide = [ID, side_column("n", "decimal(12,4)"), side_column("t", "datetime(3)"), side_column("d", "datetime")]
    narrow = [ID, side_column("n", "decimal(10,2)"), side_column("t", "datetime"), side_column("d", "date")]
    pair = pair_tables(side_table(*narrow), side_table(*wide), BOTH)
    upstream, sink = (TableText(pair, kind, is_upstream=kind is MYSQL).row_digest for kind in BOTH)
    assert upstream == "SHA2(CONCAT_WS(',',`id`,CAST(`n` AS DECIMAL(65,4)),CONCAT(`t`,'.000'),CONCAT(`d`,' 00:00:00')),256)"
    assert sink == "SHA2(CONCAT_WS(',',`id`,`n`,`t`,`d`),256)"


def test_tidb_prints_a_vector_and_others_its_bytes():
    for kinds, expression in (((TIDB, MARIADB), "VEC_AS_TEXT(`v`)"), ((MYSQL, MARIADB), "HEX(`v`)")):
        assert f"SHA2({expression},256)" in text_of(ID, side_column("v", "vector(3)"), kinds=kinds).row_digest


def test_a_range_of_a_composite_key_is_one_that_an_index_serves():
    text = text_of(side_column("a", "int"), side_column("b", "varbinary(9)"), key=("a", "b"))
    assert text.condition(Scope((b"1", b"x"), (b"7", b"'"))) == (
        "(`a` >= 1 AND (`a` > 1 OR (`a` = 1 AND `b` > x'78'))) AND (`a` <= 7 AND (`a` < 7 OR (`a` = 7 AND `b` <= x'27')))"
    )


def test_parts_are_bits_of_the_digest_of_the_key():
    text = text_of(ID, side_column("v", "int"))
    assert text.condition(Scope().part(8, 3, 255)) == "CRC32(CONCAT_WS(',',`id`)) >> 24 IN (3,255)"
    assert text.checksums(Scope(low=(b"5",)), 12).endswith("FROM `shop`.`t` WHERE `id` > 5 GROUP BY part")


def test_bounds_are_compared_in_the_collation_of_the_column():
    column = side_column("id", "varchar(9)", charset="utf8mb4", collation="utf8mb4_bin")
    assert text_of(column).is_above((b"b'",), (b"a",)) == (
        "SELECT CONVERT('b\\'' USING utf8mb4) COLLATE utf8mb4_bin > CONVERT('a' USING utf8mb4) COLLATE utf8mb4_bin"
    )


def test_names_are_quoted_wherever_they_stand():
    text = text_of(side_column("a`b", "int"), key=("a`b",))
    assert "`a``b`" in text.rows([(b"1",)])
    assert "a`b" not in text.rows([(b"1",)]).replace("`a``b`", "")
