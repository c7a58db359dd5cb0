import pytest

from applier.mysql.catalogue import labels_of


@pytest.mark.parametrize(
    ("column_type", "labels"),
    [
        ("enum('a','b')", ("a", "b")),
        ("set('it''s','b,c','')", ("it's", "b,c", "")),
        (r"enum('c\\d','\0','\n','\r')", ("c\\d", "\0", "\n", "\r")),
        ("enum('é','(\"')", ("é", '("')),
        ("enum('''')", ("'",)),
    ],
)
def test_elements_are_read_as_information_schema_spells_them(column_type: str, labels: tuple[str, ...]) -> None:
    assert labels_of(column_type) == labels
