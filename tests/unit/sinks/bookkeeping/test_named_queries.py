"""Named statements: every one is found, and SQLite gets its own spelling."""

import re

import pytest

from applier.database.carried_files import read_text
from applier.sinks.bookkeeping.named_queries import BOOKKEEPING, load_queries


@pytest.mark.parametrize("file", [BOOKKEEPING, "sql/mysql.sql"])
def test_every_statement_of_the_file_has_a_name_and_a_purpose(file: str) -> None:
    statements = sum(1 for line in read_text(file).splitlines() if line.rstrip().endswith(";") and not line.startswith("--"))
    assert len(load_queries("mysql", file)) == statements


def test_sqlite_gets_tables_without_a_schema_no_row_locks_and_its_own_clock() -> None:
    for name, statement in load_queries("sqlite").items():
        spelled = str(statement)
        assert "applier." not in spelled, name
        assert "FOR UPDATE" not in spelled, name
        assert "UTC_TIMESTAMP" not in spelled, name
    assert "FOR UPDATE" in str(load_queries("mysql")["progress_lock"])


def test_no_statement_of_the_bookkeeping_forgets_the_replica() -> None:
    for name, statement in load_queries("mysql").items():
        if name == "replica_names":  # it lists them all
            continue
        assert re.search(r":name\b", str(statement)), name


def test_a_list_is_bound_behind_in() -> None:
    statement = load_queries("mysql", "sql/mysql.sql")["session_variables"]
    assert statement.compile().binds["names"].expanding
