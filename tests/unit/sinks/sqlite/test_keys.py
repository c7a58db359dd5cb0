"""Every type of key at its bounds: what our REPLACE has written, our DELETE finds, and nothing else."""

from dataclasses import replace

import pytest

from applier.model.errors import RowRefused
from tests.integration.test_mysql_keys import ARRANGEMENTS, KEYS, Key
from tests.rig.sqlite_file import SHOP_T

# latin1 columns stop at their DDL: SQLite stores UTF-8 only.
STORED = [key for key in KEYS if "varchar" not in key.sql_type or "latin1" not in key.sql_type]


def refused(key: Key) -> int | None:
    """The value that would equal another one: its label is empty, and so is that of no label."""
    labels = key.sql_type.partition("(")[2].split(",")
    places = [place for place, label in enumerate(labels) if label.strip("()") == "''"]
    if not places:
        return None
    return 0 if key.mysql_type == 247 else 1 << places[0]


@pytest.mark.parametrize("key", [key for key in STORED if refused(key) is not None], ids=str)
def test_a_value_that_would_look_like_another_one_is_refused(file, key: Key):
    file.ddl(f"CREATE TABLE t (id INT NOT NULL PRIMARY KEY, v {key.sql_type} NOT NULL)")
    with pytest.raises(RowRefused, match="would equal another one"):
        file.put(SHOP_T, [3, key.mysql_type], (1, refused(key)))


@pytest.mark.parametrize("columns", ARRANGEMENTS.values(), ids=ARRANGEMENTS)
@pytest.mark.parametrize("key", STORED, ids=str)
def test_what_was_written_is_deleted_by_its_key_and_nothing_else_is(file, key: Key, columns: str):
    key = replace(key, values=[value for value in key.values if value != refused(key)])
    parts = f"id INT NOT NULL, v {key.sql_type} NOT NULL, w {key.sql_type} NOT NULL, n INT NULL, UNIQUE KEY k ({columns})"
    file.ddl(f"CREATE TABLE t ({parts})")
    types = {"id": 3, "v": key.mysql_type, "w": key.mysql_type, "n": 3}
    names = columns.split(",")
    rows = [(number, value, value, None) for number, value in enumerate(key.values)]
    keys = [[dict(zip(types, row, strict=True))[name] for name in names] for row in rows]

    def left():
        return [row[0] for row in file.rows(order="id")]

    def delete(chosen):
        file.delete(SHOP_T, names, [types[name] for name in names], *chosen)

    file.connection.execute("BEGIN")  # one transaction: what lasts is not what is tested
    file.put(SHOP_T, list(types.values()), *rows)
    assert left() == list(range(len(rows)))
    delete(keys)
    assert left() == []
    file.put(SHOP_T, list(types.values()), *rows)
    for number, one in enumerate(keys):
        delete([one])
        assert left() == list(range(number + 1, len(rows))), rows[number]
    file.connection.execute("ROLLBACK")
