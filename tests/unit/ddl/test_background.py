"""Which DDLs may run in the background, and in which words."""

import pytest

from applier.ddl.conditions import background_form, may_run_in_background


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("ALTER TABLE `t` ADD INDEX `i`(`a`)", ", ALGORITHM=INPLACE, LOCK=NONE"),
        ("ALTER TABLE `t` ADD INDEX `i`(`a`), ADD KEY (`b`(3)) /* two */;", ", ALGORITHM=INPLACE, LOCK=NONE"),
        ("ALTER TABLE t ADD (INDEX i (a), KEY j (b))", ", ALGORITHM=INPLACE, LOCK=NONE"),
        ("CREATE INDEX `i` ON `t` (`a`) COMMENT 'x' -- i", " ALGORITHM=INPLACE LOCK=NONE"),
    ],
)
def test_a_new_non_unique_index_runs_beside_the_rows(query: str, words: str) -> None:
    assert may_run_in_background(query)
    sent = background_form(query)
    assert sent.replace(words, "", 1) == query
    # Before a comment that ends with the line.
    assert words in sent.partition(" --")[0].partition(" /*")[0]


@pytest.mark.parametrize(
    "query",
    [
        "ALTER TABLE t ADD UNIQUE INDEX i (a)",
        "ALTER TABLE t ADD PRIMARY KEY (a)",
        "ALTER TABLE t ADD FULLTEXT INDEX i (a)",
        "ALTER TABLE t ADD INDEX i (a), ADD COLUMN b INT",
        "ALTER TABLE t ADD INDEX i (a), DROP INDEX j",
        "ALTER TABLE t ADD CONSTRAINT f FOREIGN KEY (a) REFERENCES o (a)",
        "ALTER TABLE t ADD INDEX i (a), SOMETHING NEW",
        "ALTER IGNORE TABLE t ADD INDEX i (a)",
        "ALTER TABLE t",
        "CREATE UNIQUE INDEX i ON t (a)",
        "DROP INDEX i ON t",
        "CREATE TABLE t (a INT, INDEX i (a))",
        "nonsense",
        "",
    ],
)
def test_everything_else_waits(query: str) -> None:
    assert not may_run_in_background(query)
