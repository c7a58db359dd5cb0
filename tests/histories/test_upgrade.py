"""A replica that the first version has left half-way is continued, and ends as upstream; an older applier leaves a newer one's alone."""

import sqlite3

import pytest
from alembic.script import ScriptDirectory

from applier.database.carried_files import path as carried_path
from applier.model.errors import FatalSinkError
from tests.builders.first_version import END_TS, HALF_TS, changefeed, text
from tests.rig.fake_source import FakeSource
from tests.rig.local_replica import sqlite_replica


def newest_revision():
    with carried_path("migrations") as directory:
        return ScriptDirectory(str(directory)).get_current_head()


def restored(path, script):
    with sqlite3.connect(path) as connection:
        connection.executescript(text(script))
    return path


def rows(path):
    """All rows of all replicated tables, and the names of their columns."""
    with sqlite3.connect(path) as connection:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'") if "." in name]
        found = {}
        for table in tables:
            cursor = connection.execute(f'SELECT * FROM "{table}"')
            found[table] = [column[0] for column in cursor.description], sorted(map(repr, cursor))
        return found


def left(tmp_path, script="sqlite.sql"):
    restored(tmp_path / "replica.db", script)
    return sqlite_replica(tmp_path, FakeSource(changefeed()))


def test_a_replica_of_the_first_version_is_continued_and_ends_as_upstream(tmp_path):
    replica = left(tmp_path)
    result = replica.catch_up()
    assert result.checkpoint_ts == END_TS
    assert rows(tmp_path / "replica.db") == rows(restored(tmp_path / "end.db", "sqlite_end.sql"))
    with sqlite3.connect(tmp_path / "replica.db") as connection:
        assert connection.execute("SELECT version_num FROM applier_schema_version").fetchall() == [(newest_revision(),)]


def test_ddls_of_the_first_version_are_known_and_not_run_again(tmp_path):
    replica = left(tmp_path)
    with sqlite3.connect(tmp_path / "replica.db") as connection:
        before = {ts for (ts,) in connection.execute("SELECT ddl_ts FROM applier_ddl_ledger WHERE state = 'done'")}
    assert before
    replica.catch_up()
    after = [int(entry.ddl.commit_ts) for entry in replica.ledger()]
    assert before <= set(after)
    assert len(after) == len({entry.identity for entry in replica.ledger()})


def test_the_upgrade_itself_moves_no_checkpoint(tmp_path):
    replica = left(tmp_path)
    assert replica.catch_up(until_ts=HALF_TS).checkpoint_ts == HALF_TS


def test_an_older_applier_refuses_the_bookkeeping_of_a_newer_one_and_says_why(tmp_path):
    replica = left(tmp_path)
    replica.catch_up()
    before = rows(tmp_path / "replica.db")
    with sqlite3.connect(tmp_path / "replica.db") as connection:
        connection.execute("UPDATE applier_schema_version SET version_num = '9999'")
    with pytest.raises(FatalSinkError, match="newer version than this applier") as caught:
        replica.catch_up()
    assert "Install the applier that wrote them" in caught.value.remedy
    assert rows(tmp_path / "replica.db") == before
