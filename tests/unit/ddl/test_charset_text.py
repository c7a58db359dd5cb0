"""Which texts a character set holds; what is not certain is not held."""

import pytest

from applier.ddl.charset import holder


@pytest.mark.parametrize(
    ("charset", "held", "lacking"),
    [
        ("utf8mb4", "é日😀", ""),
        ("utf8mb3", "é日", "😀"),
        ("ucs2", "é日", "😀"),
        ("ascii", "a~\\", "é"),
        ("latin1", "é€", "日"),
        ("gbk", "日ф", "😀"),
        ("koi8r", "Привет", "é"),
        ("sjis", "a", "日"),
        ("nobody's", "a", "é"),
    ],
)
def test_a_character_set_holds_its_characters(charset: str, held: str, lacking: str) -> None:
    holds = holder(charset)
    assert all(map(holds, held))
    assert not any(map(holds, lacking))


def test_where_ascii_has_other_letters_nothing_is_certain() -> None:
    assert not holder("swe7")("a")
