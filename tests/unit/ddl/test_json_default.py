"""What old rows get in a new JSON column: the words that MariaDB needs for it, and where nothing is missing."""

import pytest

from applier.ddl.old_values import with_json_defaults


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("ALTER TABLE t ADD j JSON NOT NULL AFTER a", "ALTER TABLE t ADD j JSON NOT NULL /*M! DEFAULT 'null' */ AFTER a"),
        (
            "ALTER TABLE t ADD (a INT NOT NULL, `j` json not null comment 'x', k JSON NULL)",
            "ALTER TABLE t ADD (a INT NOT NULL, `j` json not null /*M! DEFAULT 'null' */ comment 'x', k JSON NULL)",
        ),
        ("ALTER TABLE t ADD j JSON NOT NULL DEFAULT ('{}')", None),
        ("ALTER TABLE t ADD j JSON DEFAULT NULL", None),
        ("ALTER TABLE t ADD j JSON AS (k) STORED NOT NULL", None),
        ("ALTER TABLE t MODIFY j JSON NOT NULL", None),
        ("CREATE TABLE t (j JSON NOT NULL)", None),
        ("ALTER TABLE t ADD (", None),
        ("no statement '", None),
    ],
)
def test_a_new_json_column_without_a_default_gets_one_for_mariadb(query, wanted):
    assert with_json_defaults(query) == (wanted or query)
