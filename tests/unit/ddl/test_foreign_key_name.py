"""Names of foreign keys on a server that has one set of them for each schema."""

import pytest

from applier.ddl.generated_name import has_foreign_keys, with_free_names
from applier.ddl.stated_keys import depends_on_names, found_by_name

REST = "FOREIGN KEY (a) REFERENCES p (i)"


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        (f"CREATE TABLE t (a INT, CONSTRAINT fk_1 {REST})", f"CREATE TABLE t (a INT, CONSTRAINT `fk_1#3` {REST})"),
        (
            f"ALTER TABLE t ADD CONSTRAINT FK_1 {REST}, ADD CONSTRAINT mine {REST}",
            f"ALTER TABLE t ADD CONSTRAINT `FK_1#3` {REST}, ADD CONSTRAINT mine {REST}",
        ),
        ("ALTER TABLE t DROP FOREIGN KEY own", "ALTER TABLE t DROP FOREIGN KEY own"),
        ("ALTER TABLE t DROP FOREIGN KEY IF EXISTS fk_2", "ALTER TABLE t DROP FOREIGN KEY IF EXISTS `fk_2#2`"),
        ("ALTER TABLE t DROP FOREIGN KEY fk_3, DROP COLUMN a", "ALTER TABLE t DROP FOREIGN KEY fk_3, DROP COLUMN a"),
        # The server has renamed it with its table.
        ("ALTER TABLE t DROP FOREIGN KEY before_ibfk_1", "ALTER TABLE t DROP FOREIGN KEY `t_ibfk_1`"),
        ("ALTER TABLE t DROP FOREIGN KEY", "ALTER TABLE t DROP FOREIGN KEY"),
        ("DROP TABLE t", "DROP TABLE t"),
    ],
)
def test_a_foreign_key_gets_a_name_that_is_free_and_is_found_by_it(query: str, wanted: str) -> None:
    assert with_free_names(query, "t", ["own", "fk_2#2", "t_ibfk_1"], ["fk_1", "fk_1#2"]) == wanted


def test_which_statements_are_about_foreign_keys_and_names() -> None:
    assert has_foreign_keys(f"CREATE TABLE t (a INT, CONSTRAINT c {REST})")
    assert has_foreign_keys("ALTER TABLE t DROP FOREIGN KEY c")
    assert not has_foreign_keys("ALTER TABLE t ADD INDEX (a)")
    assert not has_foreign_keys("nonsense")
    assert depends_on_names("ALTER TABLE t ADD INDEX (a)")
    assert depends_on_names("ALTER TABLE t RENAME INDEX a TO b")
    assert depends_on_names("DROP INDEX a ON t")
    assert not depends_on_names("ALTER TABLE t ADD a INT")
    assert not depends_on_names("CREATE TABLE t (a INT, KEY (a))")
    assert not depends_on_names("nonsense")


def test_the_indexes_that_a_table_must_have() -> None:
    assert found_by_name("ALTER TABLE t DROP INDEX a, RENAME INDEX b TO c, ALTER INDEX d VISIBLE, ADD INDEX e (x)") == ["a", "b", "d"]
    assert found_by_name("DROP INDEX IF EXISTS a ON t") == ["a"]
    assert found_by_name("ALTER TABLE t DROP INDEX IF EXISTS a") == ["a"]
    assert found_by_name("ALTER TABLE t DROP INDEX IF EXISTS a, DROP INDEX b") == ["b"]
    assert found_by_name("DROP INDEX IF EXISTS a ON t", is_of_log=True) == []
    assert found_by_name("ALTER TABLE t DROP INDEX IF EXISTS a", is_of_log=True) == []
    assert found_by_name("DROP TABLE t") == found_by_name("nonsense") == []
