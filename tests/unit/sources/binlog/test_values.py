"""Values whose bytes no server is needed for: character sets whose characters do not lead back, and numbers at their edges."""

import pytest

from applier.mysql.charset_text import texts
from applier.sources.binlog.table_map import ColumnCode, charset_of
from applier.sources.binlog.value.format import value_format


@pytest.mark.parametrize(
    ("charset", "stored", "text"),
    [
        ("latin1", b"\x80\x81\xff", "€\x81ÿ"),
        ("cp932", "①纊日".encode("cp932").replace(b"\xed\x40", b"\xfa\x5c"), "①纊日"),
        ("cp932", b"\xed\x40", "\udced@"),
        ("swe7", b"@a~", "Éaü"),
        ("eucjpms", b"a\xad\xa1\xc6\xfc\x8e\xb1\xf5\xa1", "a①日ｱ\ue000"),
        ("eucjpms", b"\xad\xf0", "\udcad\udcf0"),
        ("big5", b"\xa1\x5a", "\udca1Z"),
        ("utf16", b"\xd8\x3d\xde\x00", "😀"),
        ("utf16", b"\xd8\x3d", "\udcd8="),
        ("ascii", b"a\xe9", "a\udce9"),
        ("utf8mb4", b"a\x00\xff", "a\x00\udcff"),
        ("greek", b"\xa1\xd2", "\udca1\udcd2"),
    ],
)
def test_text_that_does_not_lead_back_to_its_bytes_stays_bytes(charset, stored, text):
    assert texts(charset)([stored, b"", stored]) == [text, "", text]


@pytest.mark.parametrize(("charset", "stored"), [("sjis", b"C:\\\\x"), ("swe7", b"\x7f")])
def test_ascii_that_a_server_would_change_is_refused(charset, stored):
    with pytest.raises(ValueError, match="a character that a server changes"):
        texts(charset)([stored])


def test_collations_of_both_servers_are_known():
    assert [charset_of(number) for number in (8, 33, 45, 63, 255, 248, 1069, 2309, 309)] == [
        "latin1", "utf8mb3", "utf8mb4", "binary", "utf8mb4", "gb18030", "utf8mb4", "utf8mb4", "utf8mb4"
    ]  # fmt: skip
    assert (charset_of(0), charset_of(999_999)) == (None, None)


@pytest.mark.parametrize(
    ("kind", "meta", "stored", "value"),
    [
        (11, 0, (8385959).to_bytes(3, "little"), "838:59:59"),
        (11, 0, (-10203).to_bytes(3, "little", signed=True), "-01:02:03"),
        (12, 0, 99991231235959, "9999-12-31 23:59:59"),
        (7, 0, 2**32 - 1, "2106-02-07 06:28:15"),
        (7, 0, 0, "0000-00-00 00:00:00"),
        (246, 0x0205, bytes.fromhex("800101"), "1.01"),
        (246, 0x0205, bytes.fromhex("7ffefe"), "-1.01"),
        (246, 0x020C, bytes.fromhex("810000000263"), "1000000002.99"),
        (246, 0x020C, bytes.fromhex("7efffffffd9c"), "-1000000002.99"),
        (246, 0x0009, bytes.fromhex("80000007"), "7"),
        (4, 0, 3.140000104904175, 3.14),
        (4, 0, -0.0, -0.0),
    ],
)
def test_values_of_old_and_rare_forms(kind, meta, stored, value):
    read = value_format(ColumnCode(kind, meta, False, ""), is_bytes=False).read
    assert list(map(repr, read([stored]))) == [repr(value)]
