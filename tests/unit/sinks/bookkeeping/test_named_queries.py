"""Named statements: every one is found, and SQLite gets its own spelling."""

import re

import pytest

from applier.database.carried_files import read_statements, read_text
from applier.mysql.queries import QUERIES
from applier.sinks.bookkeeping.bookkeeping import BOOKKEEPING, BookkeepingDialect, load_queries
from applier.sinks.mysql.bookkeeping import DIALECT as MYSQL
from applier.sinks.sqlite.bookkeeping import DIALECT as SQLITE


@pytest.mark.parametrize("file", [BOOKKEEPING, "sql/mysql.sql"])
def test_every_statement_of_the_file_has_a_name_and_a_purpose(file: str) -> None:
    statements = sum(1 for line in read_text(file).splitlines() if line.rstrip().endswith(";") and not line.startswith("--"))
    assert len(read_statements(file)) == statements


def test_sqlite_gets_tables_without_a_schema_no_row_locks_and_its_own_clock() -> None:
    for name, statement in load_queries(SQLITE).items():
        spelled = str(statement)
        assert "applier." not in spelled, name
        assert "FOR UPDATE" not in spelled, name
        assert "UTC_TIMESTAMP" not in spelled, name
    assert "FOR UPDATE" in str(load_queries(MYSQL)["progress_lock"])


def test_no_statement_of_the_bookkeeping_forgets_the_replica() -> None:
    for name, statement in load_queries(MYSQL).items():
        if name == "replica_names":  # it lists them all
            continue
        assert re.search(r":name\b", str(statement)), name


def test_a_list_is_bound_behind_in() -> None:
    statement = QUERIES["session_variables"]
    assert statement.compile().binds["names"].expanding


def test_the_shared_text_holds_no_word_of_one_database() -> None:
    shared = read_text(BOOKKEEPING)
    assert [word for word in ("REPLACE", "UTC_TIMESTAMP", "SHARE MODE", "FOR UPDATE", "ON DUPLICATE", "STRFTIME") if word in shared] == []


def test_the_words_of_a_dialect_are_said_in_every_statement() -> None:
    said = load_queries(BookkeepingDialect(now="now()"), "books")
    assert str(said["progress_share"]).endswith('FROM "books".progress WHERE name = :name FOR SHARE')
    assert str(said["session_write"]) == (
        'INSERT INTO "books".owner_session (name, token, host, process, opened_at)\nVALUES (:name, :token, :host, :process, now())\n'
        "ON CONFLICT (name, token) DO UPDATE SET host = EXCLUDED.host, process = EXCLUDED.process, opened_at = EXCLUDED.opened_at"
    )
    assert not [name for name, statement in said.items() if "UPSERT" in str(statement) or "{" in str(statement)]


def test_a_row_that_replaces_another_one_is_replaced_on_the_databases_that_say_so() -> None:
    for dialect in (MYSQL, SQLITE):
        assert str(load_queries(dialect)["stream_write"]).startswith("REPLACE INTO ")
