"""IF [NOT] EXISTS, clause by clause: what has nothing to do goes, and everything else stays as it is."""

import pytest

from applier.ddl.conditions import Present, Resolved, has_conditions, resolved
from applier.ddl.parser import parse

PRESENT = Present(frozenset({"id", "a"}), frozenset({"i", "primary"}), frozenset({"fk"}))


@pytest.mark.parametrize(
    ("query", "left", "columns", "indexes"),
    [
        ("ALTER TABLE t ADD COLUMN IF NOT EXISTS a INT, ADD COLUMN IF NOT EXISTS b INT", "ADD COLUMN IF NOT EXISTS b INT", ("a",), ()),
        ("ALTER TABLE t ADD COLUMN IF NOT EXISTS b INT, ADD COLUMN IF NOT EXISTS A INT", "ADD COLUMN IF NOT EXISTS b INT", ("a",), ()),
        ("ALTER TABLE t ADD COLUMN IF NOT EXISTS (a INT, b INT)", "ADD COLUMN IF NOT EXISTS (b INT)", ("a",), ()),
        ("ALTER TABLE t ADD INDEX IF NOT EXISTS i (a), ADD COLUMN b INT", "ADD COLUMN b INT", (), ("i",)),
        ("ALTER TABLE t DROP COLUMN IF EXISTS gone, DROP COLUMN a", "DROP COLUMN a", (), ()),
        ("ALTER TABLE t DROP INDEX IF EXISTS gone, DROP INDEX IF EXISTS i", "DROP INDEX IF EXISTS i", (), ()),
        ("ALTER TABLE t MODIFY COLUMN IF EXISTS gone INT, MODIFY COLUMN IF EXISTS a BIGINT", "MODIFY COLUMN IF EXISTS a BIGINT", (), ()),
        ("ALTER TABLE t CHANGE COLUMN IF EXISTS gone gone INT, ADD b INT", "ADD b INT", (), ()),
        ("ALTER TABLE t MODIFY IF EXISTS gone INT, CHANGE IF EXISTS gone g INT, DROP COLUMN a", "DROP COLUMN a", (), ()),
        ("ALTER TABLE t DROP FOREIGN KEY IF EXISTS gone, DROP FOREIGN KEY IF EXISTS fk", "DROP FOREIGN KEY IF EXISTS fk", (), ()),
    ],
)
def test_a_clause_that_has_nothing_to_do_goes(query, left, columns, indexes):
    found = resolved(query, PRESENT)
    assert " ".join(found.query.split()).replace("( ", "(") == f"ALTER TABLE t {left}"
    assert (found.columns, found.indexes) == (columns, indexes)
    parse(found.query)


@pytest.mark.parametrize(
    "query",
    [
        "ALTER TABLE t ADD COLUMN a INT, ADD COLUMN b INT",
        "ALTER TABLE t ADD COLUMN IF NOT EXISTS b INT, ADD INDEX IF NOT EXISTS a (a)",
        "ALTER TABLE t DROP COLUMN a, ADD COLUMN IF NOT EXISTS a TEXT",
        "ALTER TABLE t DROP COLUMN IF EXISTS gone, ADD COLUMN gone INT",
        "ALTER TABLE IF EXISTS t ADD COLUMN a INT",
        "ALTER TABLE t ADD PARTITION IF NOT EXISTS (PARTITION p VALUES LESS THAN (9))",
        "CREATE INDEX IF NOT EXISTS j ON t (a)",
        "DROP INDEX IF EXISTS i ON t",
        "CREATE TABLE IF NOT EXISTS t (a INT)",
        "this is no statement (",
    ],
)
def test_everything_else_stays(query):
    assert resolved(query, PRESENT) == Resolved(query)


def test_nothing_is_left_where_nothing_is_to_do():
    assert resolved("ALTER TABLE t ADD COLUMN IF NOT EXISTS a INT", PRESENT) == Resolved("", columns=("a",))
    assert resolved("CREATE INDEX IF NOT EXISTS I ON t (a)", PRESENT) == Resolved("", indexes=("i",))
    assert resolved("DROP INDEX IF EXISTS gone ON t", PRESENT) == Resolved("")


def test_only_statements_with_conditions_of_their_clauses_ask_the_catalogue():
    asks = [
        "ALTER TABLE t ADD COLUMN IF NOT EXISTS a INT",
        "ALTER TABLE t ADD COLUMN (b INT), DROP INDEX IF EXISTS i",
        "DROP INDEX IF EXISTS i ON t",
    ]
    assert all(map(has_conditions, asks))
    assert not any(map(has_conditions, ["ALTER TABLE t ADD a INT", "DROP TABLE IF EXISTS t", "rubbish '"]))
