"""Which values a column of the sink holds exactly."""

import pytest

from applier.model.errors import RowRefused
from applier.verify.holding import require_certainty, require_held
from tests.unit.verify.pairs import BOTH, column_pair, pair_columns, side_column

HELD = [
    ("bigint", "tinyint", -128),
    ("bigint", "tinyint unsigned", 255),
    ("bit(8)", "bit(3)", 7),
    ("year", "year", 0),
    ("decimal(20,4)", "decimal(6,2)", "-9999.9900"),
    ("decimal(65,30)", "decimal(65,30)", "-" + "9" * 35 + "." + "9" * 30),
    ("float", "float", 3.4028235e38),
    ("varchar(9)", "varchar(3)", "語語語"),
    ("tinytext", "tinytext", "é" * 127),
    ("blob", "varbinary(3)", b"\xff\0\xff"),
    ("json", "longtext", "{}"),
    ("datetime", "datetime", "0000-00-00 00:00:00"),
]
NOT_HELD = [
    ("bigint", "tinyint", -129),
    ("bigint", "tinyint unsigned", -1),
    ("bit(8)", "bit(3)", 8),
    ("int", "year", 1900),
    ("decimal(20,4)", "decimal(6,2)", "1.001"),
    ("decimal(20,4)", "decimal(6,2)", "10000"),
    ("decimal(65,0)", "decimal(40,0)", "1" + "0" * 40),
    ("decimal(20,4)", "decimal(6,2) unsigned", "-1"),
    ("double", "float", 3.5e38),
    ("double", "double unsigned", -1.0),
    ("varchar(9)", "varchar(3)", "語語語語"),
    ("tinytext", "tinytext", "é" * 128),
    ("blob", "varbinary(3)", b"1234"),
    ("int", "int", None),
]


def pair(upstream, sink, charset="utf8mb4"):
    return column_pair(upstream, sink, charset=charset)


@pytest.mark.parametrize(("upstream", "sink", "value"), HELD)
def test_a_value_that_fits_is_held(upstream, sink, value):
    require_held(pair(upstream, sink), value)


@pytest.mark.parametrize(("upstream", "sink", "value"), NOT_HELD)
def test_a_value_that_a_server_would_refuse_cut_or_round_is_not_held(upstream, sink, value):
    with pytest.raises(RowRefused, match="cannot hold a value") as refused:
        require_held(pair(upstream, sink), value)
    assert str(value) not in str(refused.value) or value is None


@pytest.mark.parametrize(
    ("charset", "held", "lacking"),
    [("latin1", "é€\x81", "語"), ("ascii", "a", "é"), ("utf8mb3", "語", "😀"), ("gbk", "語", "é€😀"), ("utf8mb4", "😀", "\udcff")],
)
def test_a_character_set_holds_the_characters_that_it_has(charset, held, lacking):
    require_held(pair("varchar(9)", "varchar(9)", charset), held)
    with pytest.raises(RowRefused, match="lacks a character"):
        require_held(pair("varchar(9)", "varchar(9)", charset), lacking)


def test_of_a_character_set_that_is_not_known_here_the_strict_session_decides():
    found = pair("varchar(9)", "varchar(9)", "koi8r")
    require_held(found, "語")
    require_certainty(found, "abc")
    with pytest.raises(RowRefused):
        require_certainty(found, "ж")


def test_a_type_that_is_not_known_is_not_judged():
    unknown = pair_columns(side_column("c", "int"), side_column("c", "int"), BOTH)
    assert unknown is not None
    require_held(unknown, 5)
