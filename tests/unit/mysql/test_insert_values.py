"""Literals as the dumpers write them; what is none is refused."""

import pytest

from applier.mysql.insert_values import LiteralKind, columns_of, rows_of

NUMBER, TEXT, BYTES = LiteralKind


def rows(text):
    return list(rows_of(text, 0))


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (b"NULL", None),
        (b"-0012.50", (NUMBER, b"-0012.50")),
        (b"1.7976931348623157e308", (NUMBER, b"1.7976931348623157e308")),
        (b".5", (NUMBER, b".5")),
        (b"''", (TEXT, b"")),
        (b"'it''s \\'q\\' \"x\"'", (TEXT, b"it's 'q' \"x\"")),
        (b'"a""b \\" it\'s"', (TEXT, b'a"b " it\'s')),
        (b"'\\0\\b\\n\\r\\t\\Z\\\\\\%\\_\\x'", (TEXT, b"\0\b\n\r\t\x1a\\\\%\\_x")),
        (b"'a),(b'", (TEXT, b"a),(b")),
        ("'日本\\\\'".encode(), (TEXT, "日本\\".encode())),
        (b"0x00ff", (BYTES, b"\0\xff")),
        (b"0x", (BYTES, b"")),
        (b"0xfff", (BYTES, b"\x0f\xff")),
        (b"X'C3A9'", (BYTES, b"\xc3\xa9")),
        (b"b'100000001'", (BYTES, b"\x01\x01")),
        (b"_binary '\\0\\'\xff'", (BYTES, b"\0'\xff")),
        (b'_binary "\\Z\xff"', (BYTES, b"\x1a\xff")),
        (b"_binary 0x01", (BYTES, b"\x01")),
        (b'CONVERT("{\\"a\\": 1}" USING UTF8MB4)', (TEXT, b'{"a": 1}')),
    ],
)
def test_each_form_of_a_value_is_read(written, read):
    assert rows(b" (" + written + b" , " + written + b"),\n(" + written + b")\n") == [[read, read], [read]]


def test_columns_may_be_listed():
    assert columns_of(b"t (`a`,`b``(c`, d) VALUES (1)", 1) == (["a", "b`(c", "d"], 26)
    assert columns_of(b"t VALUES\n(1)", 1) == ([], 9)
    with pytest.raises(ValueError, match="no VALUES"):
        columns_of(b"t SELECT 1", 1)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"()",
        b"(1",
        b"(1,)",
        b"(now())",
        b"(1)(2)",
        b"(1) ON DUPLICATE KEY UPDATE a = 1",
        b"(@a)",
        b"(_latin1 'x')",
        b"('x' 'y')",
        b"(1),",
    ],
)
def test_what_is_no_row_of_literals_is_refused(text):
    with pytest.raises(ValueError, match="statement"):
        rows(text)


def test_long_values_with_escapes_and_many_rows_are_read_in_one_go():
    value = b"\\0'' \xff" * 100_000
    assert rows(b"('" + value + b"')," * 1 + b"(1)") == [[(TEXT, b"\0' \xff" * 100_000)], [(NUMBER, b"1")]]
    assert len(rows(b",".join([b"(1,'x')"] * 50_000))) == 50_000
