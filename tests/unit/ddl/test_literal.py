"""Literals of MySQL."""

import pytest

from applier.ddl.tokens import Cursor, DdlSyntaxError, quote_text


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("5", "number", "5"),
        ("1.5e-3 x", "number", "1.5e-3"),
        (".5,", "number", ".5"),
        ("'it''s'", "string", "it's"),
        (r"'\0\b\n\r\t\Z\%\_\x'", "string", "\0\b\n\r\t\x1a\\%\\_x"),
        ('"a""b"', "string", 'a"b'),
        ("_utf8mb4 'x'", "string", "x"),
        ("n'x'", "string", "x"),
        ("x'4A'", "bytes", "4a"),
        ("0x4ab", "bytes", "04ab"),
        ("b''", "bytes", "00"),
        ("_binary 0b11", "bytes", "03"),
    ],
)
def test_a_literal_is_read_where_one_may_stand(text: str, kind: str, value: str) -> None:
    literal = Cursor(text).literal()
    assert (literal.kind, literal.text) == (kind, value)


@pytest.mark.parametrize("text", ["", "a", "5a", "`5`", "n 'x'", "_utf8mb4", "_utf8mb4 5", "(", "0xg"])
def test_what_is_none_stays_a_name_or_a_mark(text: str) -> None:
    assert Cursor(text).literal_ahead() is None
    with pytest.raises(DdlSyntaxError):
        Cursor(text).literal()


def test_a_literal_ends_with_the_part_that_holds_it() -> None:
    cursor = Cursor("1.5 x")
    assert cursor.part(0, 0).literal_ahead() is None
    assert cursor.literal().text == "1.5"
    assert cursor.keyword() == "X"


@pytest.mark.parametrize("text", ["it's", "a\\b", "\0\n\r\x1a", "*/", ""])
def test_a_text_that_is_quoted_is_read_back(text: str) -> None:
    assert Cursor(quote_text(text)).string() == text
    assert "*/" not in quote_text(text)
