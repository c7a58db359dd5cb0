"""What is wrong with the file of a SQLite sink, or with what is in it."""

import shlex
import subprocess

import pytest

from tests.builders.handwritten import ddl, resolved
from tests.rig.walked_feed import WalkedFeed, begun, order

UNIQUE = ddl(23, "ALTER TABLE orders ADD UNIQUE INDEX by_note (note)", t=7)


@pytest.mark.parametrize("command", ["catchup", "migrate", "ddl list"])
def test_a_missing_directory_is_made_by_the_command_of_the_remedy(newcomer, command):
    feed = WalkedFeed(newcomer)
    feed.begin()
    newcomer.configure(sink__url="sqlite:///not/there yet/replica.db", source__topics=[feed.topic])
    said = newcomer.fails(command, 4, "the directory of the database file does not exist")
    (made,) = said.shell("mkdir")
    subprocess.run(shlex.split(made), check=True)
    newcomer.succeeds("catchup")


def test_a_directory_in_place_of_the_file_is_corrected_in_the_url(newcomer):
    feed = WalkedFeed(newcomer)
    feed.begin()
    newcomer.configure(sink__url="sqlite:///.", source__topics=[feed.topic])
    newcomer.fails("migrate", 4, "the SQLite file is a directory")
    newcomer.configure(sink__url="sqlite:///replica.db", source__topics=[feed.topic])
    newcomer.succeeds("catchup")


@pytest.fixture
def with_duplicates(newcomer):
    """A replica in which somebody has changed a row, so that a unique index of upstream cannot be made."""
    feed = begun(newcomer)
    feed.write(order(21, 1, "one"), order(21, 2, "two"))
    feed.everywhere(resolved(22))
    newcomer.succeeds("catchup")
    newcomer.sql("UPDATE \"shop.orders\" SET note = 'one'")
    feed.everywhere(UNIQUE, resolved(30))
    return newcomer.fails("catchup", 4, "fails on the sink's rows", "table: shop.orders", "commit_ts: 23")


def test_duplicates_under_a_new_unique_index_are_corrected_and_the_ddl_runs_again(newcomer, with_duplicates):
    newcomer.sql("UPDATE \"shop.orders\" SET note = 'two' WHERE id = 2")
    newcomer.succeeds("catchup")
    assert newcomer.rows() == [(1, "one"), (2, "two")]
    assert "done" in newcomer.succeeds("ddl list --ts 23").stdout


def test_a_new_unique_index_over_duplicates_is_skipped(newcomer, with_duplicates):
    newcomer.follow(with_duplicates, only="ddl skip")
    newcomer.succeeds("catchup")
    assert newcomer.rows() == [(1, "one"), (2, "one")]
    assert "skipped" in newcomer.succeeds("ddl list --ts 23").stdout
