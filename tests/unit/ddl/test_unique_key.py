"""The unique keys that a statement makes."""

import pytest

from applier.ddl.stated_keys import UniqueKey, unique_keys_of


def key(name: str, *columns: str) -> UniqueKey:
    return UniqueKey(name, frozenset(columns))


@pytest.mark.parametrize(
    ("query", "keys"),
    [
        ("CREATE TABLE t (A INT UNIQUE, b INT, PRIMARY KEY (b), UNIQUE KEY U (A, b(10) DESC), KEY (b))", ["a", "b", "u a b"]),
        ("CREATE TABLE t (a INT, CONSTRAINT c UNIQUE (a), UNIQUE KEY USING BTREE (a))", ["a", "a"]),
        ("CREATE UNIQUE INDEX u ON t ((lower(a)), b)", ["u b"]),
        ("CREATE INDEX u ON t (a)", []),
        (
            "ALTER TABLE t ADD UNIQUE (a), ADD COLUMN (b INT, UNIQUE v (b)), MODIFY c INT UNIQUE, CHANGE d e INT PRIMARY KEY",
            ["a", "v b", "c", "e"],
        ),
        ("CREATE BLURB UNIQUE KEY u (a)", ["u a"]),
        ("CREATE BLURB UNIQUE KEY u (`a", []),
        ("CREATE TABLE t (a INT COMMENT 'UNIQUE (b)')", []),
    ],
)
def test_unique_keys_are_read_from_elements_columns_and_statements(query: str, keys: list[str]) -> None:
    assert unique_keys_of(query) == [_key(text.split()) for text in keys]


def _key(words: list[str]) -> UniqueKey:
    is_named = words[0] in {"u", "v"}
    return key(words[0] if is_named else "", *words[is_named:])
