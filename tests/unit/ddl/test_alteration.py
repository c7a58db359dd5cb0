"""ALTER TABLE changes the definition of a table, clause by clause."""

import pytest

from applier.ddl.parser import parse
from applier.ddl.table_draft import TableDefinition, changes_partitioned_rows
from applier.ddl.tokens import DdlSyntaxError
from applier.ddl.tree import AlterTableStatement
from applier.model.errors import NeedsOperator
from tests.builders.table_definition import altered, created

TABLE = created("CREATE TABLE t (id INT PRIMARY KEY, a INT, b TEXT, KEY ka (a), UNIQUE ub (b(3)))")


def shown(table: TableDefinition) -> str:
    """Show a table in one line: columns, primary key, indexes."""
    columns = [f"{column.name} {column.mysql}" for column in table.columns]
    key = [f"PRIMARY {','.join(part.mysql for part in table.primary_key)}"] if table.primary_key else []
    indexes = [f"{'UNIQUE ' if index.unique else ''}{index.name} {','.join(part.mysql for part in index.parts)}" for index in table.indexes]
    return "; ".join([*columns, *key, *indexes]).replace("`", "")


@pytest.mark.parametrize(
    ("clauses", "wanted"),
    [
        ("ADD c INT", "id int NOT NULL; a int; b text; c int; PRIMARY id; ka a; UNIQUE ub b(3)"),
        ("ADD COLUMN c INT FIRST, ADD d INT AFTER c", "c int; d int; id int NOT NULL; a int; b text; PRIMARY id; ka a; UNIQUE ub b(3)"),
        ("ADD (c INT, d INT UNIQUE)", "id int NOT NULL; a int; b text; c int; d int; PRIMARY id; ka a; UNIQUE ub b(3); UNIQUE d d"),
        ("ADD COLUMN IF NOT EXISTS a BIGINT", "id int NOT NULL; a int; b text; PRIMARY id; ka a; UNIQUE ub b(3)"),
        ("ADD INDEX (a), ADD UNIQUE u (a)", "id int NOT NULL; a int; b text; PRIMARY id; ka a; UNIQUE ub b(3); a a; UNIQUE u a"),
        ("DROP a, DROP COLUMN b RESTRICT", "id int NOT NULL; PRIMARY id"),
        ("DROP COLUMN IF EXISTS x, DROP KEY IF EXISTS x, DROP INDEX ka", "id int NOT NULL; a int; b text; PRIMARY id; UNIQUE ub b(3)"),
        ("DROP PRIMARY KEY, ADD PRIMARY KEY (a, id)", "id int NOT NULL; a int NOT NULL; b text; PRIMARY a,id; ka a; UNIQUE ub b(3)"),
        ("DROP INDEX `primary`", "id int NOT NULL; a int; b text; ka a; UNIQUE ub b(3)"),
        ("MODIFY a BIGINT AFTER b", "id int NOT NULL; b text; a bigint; PRIMARY id; ka a; UNIQUE ub b(3)"),
        ("MODIFY COLUMN IF EXISTS x INT, CHANGE COLUMN IF EXISTS y z INT", shown(TABLE)),
        ("CHANGE a c INT FIRST", "c int; id int NOT NULL; b text; PRIMARY id; ka c; UNIQUE ub b(3)"),
        ("RENAME COLUMN a TO b, RENAME COLUMN b TO a", "id int NOT NULL; b int; a text; PRIMARY id; ka b; UNIQUE ub a(3)"),
        ("RENAME INDEX ka TO k, RENAME KEY ub TO u", "id int NOT NULL; a int; b text; PRIMARY id; k a; UNIQUE u b(3)"),
        ("ALTER a SET DEFAULT 5", "id int NOT NULL; a int DEFAULT 5; b text; PRIMARY id; ka a; UNIQUE ub b(3)"),
        ("ALTER COLUMN a SET DEFAULT 5, ALTER COLUMN a DROP DEFAULT", shown(TABLE)),
        ("ALTER COLUMN a SET INVISIBLE, ALTER b SET VISIBLE", shown(TABLE)),
        ("ADD FOREIGN KEY (a) REFERENCES p (id), ADD CONSTRAINT c CHECK (a > 0), DROP FOREIGN KEY f, DROP CHECK c", shown(TABLE)),
        ("ALTER INDEX ka INVISIBLE, ALTER CHECK c NOT ENFORCED, DROP CONSTRAINT c", shown(TABLE)),
        ("COMMENT = 'x' AUTO_INCREMENT 5, DEFAULT CHARSET utf8mb4 COLLATE utf8mb4_bin, ENGINE=InnoDB, FORCE", shown(TABLE)),
        ("CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, ORDER BY a, b DESC, LOCK=NONE", shown(TABLE)),
        ("SET TIFLASH REPLICA 2 LOCATION LABELS 'a'", shown(TABLE)),
        ("REMOVE TTL, TTL = `a` + INTERVAL 1 DAY TTL_ENABLE = 'OFF', PLACEMENT POLICY = p, CACHE", shown(TABLE)),
        ("RENAME TO u, ATTRIBUTES = 'x'", shown(TABLE)),
    ],
)
def test_clauses_change_the_definition_or_nothing(clauses: str, wanted: str) -> None:
    assert shown(altered(TABLE, clauses)) == wanted


@pytest.mark.parametrize(
    "clauses",
    [
        "DROP COLUMN a b", "DROP INDEX ka, kb", "DROP PRIMARY", "ADD COLUMN", "ADD COLUMN c INT NONSENSE", "ADD COLUMN c INT FIRST x",
        "ADD (c INT) x", "MODIFY a INT x", "ALTER a SET 5", "ALTER a SET VISIBLE 5",
        "CONVERT TO CHARACTER SET binary", "COMMENT 'x' NONSENSE", "RENAME TO a b",
        "RENAME COLUMN a", "SOMETHING NEW", "ADD c INT, SOMETHING NEW", "DISCARD", "EXCHANGE PARTITION p WITH x", "ADD CONSTRAINT c d INT",
    ],
)  # fmt: skip
def test_a_clause_that_is_not_wholly_known_stops(clauses: str) -> None:
    with pytest.raises(DdlSyntaxError):
        altered(TABLE, clauses)


@pytest.mark.parametrize(
    "clauses",
    [
        "DROP x", "DROP INDEX x", "RENAME INDEX x TO y", "RENAME COLUMN x TO y", "MODIFY x INT", "ADD c INT AFTER x", "ADD INDEX (x)",
        "ADD PRIMARY KEY (a)", "DROP PRIMARY KEY, DROP PRIMARY KEY", "DROP id, DROP a, DROP b", "ADD a INT", "ALTER x DROP DEFAULT",
    ],
)  # fmt: skip
def test_a_clause_that_does_not_fit_the_table_needs_the_operator(clauses: str) -> None:
    with pytest.raises(NeedsOperator):
        altered(TABLE, clauses)


@pytest.mark.parametrize(
    ("clauses", "wanted"),
    [
        ("DROP PARTITION p, q", True),
        ("EXCHANGE PARTITION p WITH TABLE u", True),
        ("TRUNCATE PARTITION p", True),
        ("FIRST PARTITION LESS THAN (5)", True),
        ("IMPORT PARTITION p TABLESPACE", True),
        ("ADD c INT, TRUNCATE PARTITION p", True),
        ("ADD PARTITION (PARTITION p VALUES LESS THAN (5))", False),
        ("LAST PARTITION LESS THAN (5)", False),
        ("MERGE FIRST PARTITION LESS THAN (5)", False),
        ("SPLIT MAXVALUE PARTITION LESS THAN (5)", False),
        ("REORGANIZE PARTITION p INTO (PARTITION p VALUES LESS THAN (5))", False),
        ("COALESCE PARTITION 2", False),
        ("REBUILD PARTITION ALL", False),
        ("PARTITION BY HASH (a)", False),
        ("ADD c INT, REMOVE PARTITIONING", False),
        ("ADD `partition` INT, RENAME COLUMN a TO b", False),
    ],
)
def test_changes_of_partitions_that_take_rows_away_are_distinguished(clauses: str, *, wanted: bool) -> None:
    tree = parse(f"ALTER TABLE t {clauses}")
    assert isinstance(tree.node, AlterTableStatement)
    assert changes_partitioned_rows(tree, tree.node) is wanted


def test_a_change_of_partitions_leaves_the_definition() -> None:
    assert altered(TABLE, "DROP PARTITION p, q") == TABLE
