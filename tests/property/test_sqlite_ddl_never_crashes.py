"""Whatever stands in a DDL, the file is changed or the applier stops with one of its own errors and the file is as it was."""

import contextlib
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from applier.model.errors import FatalSinkError, NeedsOperator
from tests.rig.sqlite_file import SqliteFile, three_rows

WORDS = [
    "ALTER", "TABLE", "`t`", "`shop`", ".", "ADD", "COLUMN", "`c`", "`a`", "`id`", "INT", "VARCHAR", "(", "9", ")", ",", "NOT", "NULL",
    "DEFAULT", "'x'", "5", "-", "FIRST", "AFTER", "DROP", "INDEX", "`ka`", "PRIMARY", "KEY", "UNIQUE", "RENAME", "TO", "MODIFY", "CHANGE",
    "CREATE", "LIKE", "VIEW", "AS", "SELECT", "FROM", "ENUM", "SET", "TRUNCATE", "DATABASE", "IF", "EXISTS", "CHARACTER", "_utf8mb4",
    "x'41'", "/*T! x */", "CONSTRAINT", "FOREIGN", "REFERENCES", "CHECK", "GENERATED", "ALWAYS", "STORED", "ON", "CURRENT_TIMESTAMP",
    "DECIMAL", "BINARY", "`", "'", "/*", ";", "\0", "é",
]  # fmt: skip
WHOLE = [
    "ALTER TABLE `t` ADD COLUMN `c` VARCHAR ( 9 ) NOT NULL DEFAULT 'x' AFTER `id` , DROP INDEX `ka` , ADD UNIQUE `u` ( `a` )",
    "CREATE TABLE `q` ( `id` INT PRIMARY KEY , `c` DECIMAL ( 9 ) DEFAULT 5 , CONSTRAINT `f` FOREIGN KEY ( `c` ) REFERENCES `t` ( `a` ) )",
    "ALTER TABLE `t` CHANGE COLUMN `a` `c` ENUM ( 'x' , 'y' ) FIRST , RENAME TO `shop` . `q`",
    "CREATE VIEW `v` AS SELECT `id` FROM `t`",
]
EDITS = st.lists(st.tuples(st.integers(0, 60), st.sampled_from(["drop", "twice", "put"]), st.sampled_from(WORDS)), max_size=3)


@st.composite
def damaged(draw):
    words = draw(st.sampled_from(WHOLE)).split()
    for place, edit, word in draw(EDITS):
        at = place % len(words)
        words[at : at + 1] = {"drop": [], "twice": [words[at]] * 2, "put": [word]}[edit]
        words = words or [""]
    return " ".join(words)


@settings(max_examples=200, deadline=None)
@given(query=damaged() | st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join) | st.text(max_size=30))
def test_any_text_changes_the_file_or_stops_with_an_error_of_ours(query):
    with tempfile.TemporaryDirectory() as directory, contextlib.closing(SqliteFile(Path(directory) / "replica.db")) as file:
        file.connection.execute("PRAGMA synchronous = OFF")
        three_rows(file)
        before = (file.tables(), file.rows(), file.types(), file.indexes())
        try:
            file.ddl(query)
        except (NeedsOperator, FatalSinkError) as error:
            assert error.facts["statement"] == query or query in str(error)  # noqa: PT017 - both ends are legal
            assert (file.tables(), file.rows(), file.types(), file.indexes()) == before
