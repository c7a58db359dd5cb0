"""The names that upstream gives to what a statement leaves unnamed."""

import pytest

from applier.ddl.generated_name import MYSQL_NAMING, TableNames, with_generated_names

NOTHING = TableNames()
BEFORE = TableNames({"a": ("a",), "expression_index": (), "primary": ("c",)}, foreign_keys=3)


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("CREATE TABLE t (a INT, UNIQUE ((a + 1)))", "CREATE TABLE t (a INT, UNIQUE `expression_index` ((a + 1)))"),
        (
            "CREATE TABLE t (a INT, KEY ((a + 1)), KEY USING BTREE (a, (a + 2)), KEY `c``d` (a))",
            "CREATE TABLE t (a INT, KEY `expression_index` ((a + 1)), KEY `expression_index_2` USING BTREE (a, (a + 2)), KEY `c``d` (a))",
        ),
        # Named ones first, whatever their place; an unnamed primary key takes a name too.
        ("CREATE TABLE t (a INT, KEY (A), KEY a (a))", "CREATE TABLE t (a INT, KEY `A_2` (A), KEY a (a))"),
        (
            "CREATE TABLE t (a INT, PRIMARY KEY (a), UNIQUE (a), CONSTRAINT a_3 CHECK (a > 0), INDEX (a))",
            "CREATE TABLE t (a INT, PRIMARY KEY (a), UNIQUE `a_2` (a), CONSTRAINT a_3 CHECK (a > 0), INDEX `a_4` (a))",
        ),
        ("CREATE TABLE t (a INT PRIMARY KEY, KEY (a))", "CREATE TABLE t (a INT PRIMARY KEY, KEY `a` (a))"),
        # Those inside of columns come last; one that would get another name goes into the list.
        ("CREATE TABLE t (a INT UNIQUE, b INT)", "CREATE TABLE t (a INT UNIQUE, b INT)"),
        (
            "CREATE TABLE t (a INT UNIQUE KEY COMMENT 'UNIQUE', b INT, KEY (a))",
            "CREATE TABLE t (a INT  COMMENT 'UNIQUE', b INT, KEY `a` (a), UNIQUE KEY `a_2` (`a`))",
        ),
        (
            "CREATE TABLE t (a SERIAL, KEY (a)) COMMENT 'x'",
            "CREATE TABLE t (a BIGINT UNSIGNED NOT NULL AUTO_INCREMENT, KEY `a` (a), UNIQUE KEY `a_2` (`a`)) COMMENT 'x'",
        ),
        (
            "CREATE TABLE t (`primary` INT, KEY (`primary`), KEY (`primary`))",
            "CREATE TABLE t (`primary` INT, KEY `primary_2` (`primary`), KEY `primary_3` (`primary`))",
        ),
        # TiDB takes the name of the constraint, MySQL that of the index.
        ("CREATE TABLE t (a INT, CONSTRAINT c UNIQUE d (a))", "CREATE TABLE t (a INT, CONSTRAINT c UNIQUE `c` (a))"),
        ("CREATE TABLE t (a INT, CONSTRAINT c UNIQUE (a))", "CREATE TABLE t (a INT, CONSTRAINT c UNIQUE (a))"),
        ("CREATE TABLE t (v VECTOR(3), VECTOR INDEX ((L(v))))", "CREATE TABLE t (v VECTOR(3), VECTOR INDEX `vector_index` ((L(v))))"),
        # Foreign keys, and the indexes that TiDB makes for them.
        (
            "CREATE TABLE t (a INT, FOREIGN KEY (a) REFERENCES p (i))",
            "CREATE TABLE t (a INT, KEY `fk_1` (`a`), CONSTRAINT `fk_1` FOREIGN KEY (a) REFERENCES p (i))",
        ),
        (
            "CREATE TABLE t (a INT, KEY k (a(3)), CONSTRAINT f FOREIGN KEY g (a) REFERENCES p, CONSTRAINT FOREIGN KEY (a) REFERENCES q)",
            (
                "CREATE TABLE t (a INT, KEY k (a(3)), KEY `f` (`a`), CONSTRAINT f FOREIGN KEY  (a) REFERENCES p, "
                "CONSTRAINT `fk_2` FOREIGN KEY (a) REFERENCES q)"
            ),
        ),
        (
            "CREATE TABLE t (a INT PRIMARY KEY, FOREIGN KEY g (a) REFERENCES p (i))",
            "CREATE TABLE t (a INT PRIMARY KEY, CONSTRAINT `g` FOREIGN KEY  (a) REFERENCES p (i))",
        ),
        ("CREATE TABLE t LIKE u", "CREATE TABLE t LIKE u"),
        ("CREATE TABLE t", "CREATE TABLE t"),
        ("CREATE TABLE t (a INT, KEY ())", "CREATE TABLE t (a INT, KEY ())"),
        ("CREATE TABLE t (a INT, KEY (a", "CREATE TABLE t (a INT, KEY (a"),
        ("DROP TABLE t", "DROP TABLE t"),
        ("no statement", "no statement"),
    ],
)
def test_a_new_table_has_the_names_of_tidb(query: str, wanted: str) -> None:
    assert with_generated_names(query, NOTHING) == wanted
    assert with_generated_names(wanted, NOTHING) == wanted


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        # The indexes before the statement count, those that it drops among them.
        ("ALTER TABLE t DROP INDEX a, ADD INDEX (a)", "ALTER TABLE t DROP INDEX a, ADD INDEX `a_2` (a)"),
        # The first part alone decides.
        (
            "ALTER TABLE t ADD UNIQUE ((a + 1)), ADD INDEX IF NOT EXISTS (b, (a + 1)) COMMENT 'x'",
            "ALTER TABLE t ADD UNIQUE `expression_index_2` ((a + 1)), ADD INDEX IF NOT EXISTS `b` (b, (a + 1)) COMMENT 'x'",
        ),
        (
            "ALTER TABLE t ADD COLUMN (d INT, KEY (d)), ADD PRIMARY KEY (d)",
            "ALTER TABLE t ADD COLUMN (d INT, KEY `d` (d)), ADD PRIMARY KEY (d)",
        ),
        (
            (
                "ALTER TABLE t ADD FOREIGN KEY (b) REFERENCES p (i), ADD CONSTRAINT x FOREIGN KEY (c) REFERENCES p (i), "
                "ADD (FOREIGN KEY (b) REFERENCES p)"
            ),
            (
                "ALTER TABLE t ADD KEY `fk_4` (`b`), ADD CONSTRAINT `fk_4` FOREIGN KEY (b) REFERENCES p (i), "
                "ADD CONSTRAINT x FOREIGN KEY (c) REFERENCES p (i), ADD (KEY `fk_5` (`b`), CONSTRAINT `fk_5` FOREIGN KEY (b) REFERENCES p)"
            ),
        ),
        ("ALTER TABLE t ADD INDEX k (a), MODIFY a INT", "ALTER TABLE t ADD INDEX k (a), MODIFY a INT"),
    ],
)
def test_what_a_statement_adds_has_the_names_of_tidb(query: str, wanted: str) -> None:
    assert with_generated_names(query, BEFORE) == wanted


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        # In the order of the text, those inside of columns too.
        (
            "CREATE TABLE t (a INT UNIQUE, PRIMARY KEY (a), KEY (a), KEY ((a + 1)), KEY (a, (a + 2)))",
            (
                "CREATE TABLE t (a INT UNIQUE, PRIMARY KEY (a), KEY `a_2` (a), KEY `functional_index` ((a + 1)), "
                "KEY `functional_index_2` (a, (a + 2)))"
            ),
        ),
        ("CREATE TABLE t (a INT, CONSTRAINT c UNIQUE d (a))", "CREATE TABLE t (a INT, CONSTRAINT c UNIQUE d (a))"),
        ("CREATE TABLE t (a INT, FOREIGN KEY (a) REFERENCES p (i))", "CREATE TABLE t (a INT, FOREIGN KEY (a) REFERENCES p (i))"),
        # The table as it will be.
        ("ALTER TABLE t DROP INDEX a, ADD INDEX (a)", "ALTER TABLE t DROP INDEX a, ADD INDEX `a` (a)"),
        ("ALTER TABLE t RENAME INDEX a TO b, ADD INDEX (b)", "ALTER TABLE t RENAME INDEX a TO b, ADD INDEX `b_2` (b)"),
        ("ALTER TABLE t ADD INDEX (b), ADD UNIQUE (b, a)", "ALTER TABLE t ADD INDEX `b` (b), ADD UNIQUE `b_2` (b, a)"),
        (
            "ALTER TABLE t ADD d INT UNIQUE, MODIFY a INT UNIQUE KEY, ADD INDEX (d), ADD INDEX (a), ADD FOREIGN KEY (a) REFERENCES p",
            (
                "ALTER TABLE t ADD d INT UNIQUE, MODIFY a INT UNIQUE KEY, ADD INDEX `d_2` (d), ADD INDEX `a_3` (a), "
                "ADD FOREIGN KEY (a) REFERENCES p"
            ),
        ),
    ],
)
def test_the_names_of_mysql(query: str, wanted: str) -> None:
    assert with_generated_names(query, BEFORE if query.startswith("ALTER") else NOTHING, MYSQL_NAMING) == wanted
