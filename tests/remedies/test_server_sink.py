"""A server as the sink: what somebody changed there by hand, and the repair that the remedy names."""

from collections.abc import Iterator
from contextlib import closing

import pytest
from sqlalchemy import make_url

from tests.builders.handwritten import ddl, resolved
from tests.rig.mysql_oracle import connect
from tests.rig.newcomer import Newcomer
from tests.rig.walked_feed import WalkedFeed, order

pytestmark = pytest.mark.usually_on("mariadb", reason="the remedies are the applier's; integration tests show each server's errors")

SCHEMA = "walked"


class ServerFeed(WalkedFeed):
    """A feed whose replica is on a server, with bookkeeping of its own."""

    def __init__(self, newcomer: Newcomer, url: str) -> None:
        super().__init__(newcomer)
        self.url = url
        newcomer.change(
            {"sink.url": url, "sink.schema": f"{SCHEMA}_books", "source.route": [{"from": "shop.*", "to": SCHEMA + ".{table}"}]}
        )

    def sql(self, *statements: str) -> list[tuple[object, ...]]:
        """Change the server by hand; return the rows of the last statement."""
        with closing(connect(self.url)) as connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
            found = list(cursor.fetchall())
            connection.commit()
            return found

    def rows(self) -> list[tuple[object, ...]]:
        """Read the table."""
        return sorted(self.sql(f"SELECT id, note FROM {SCHEMA}.orders"))


@pytest.fixture
def feed(newcomer: Newcomer, mysql_url: str) -> Iterator[ServerFeed]:
    made = ServerFeed(newcomer, mysql_url)
    clean = [f"DROP SCHEMA IF EXISTS {name}" for name in (SCHEMA, f"{SCHEMA}_books")]
    made.sql(*clean)
    made.begin()
    newcomer.succeeds("catchup")
    yield made
    made.sql(*clean)


REPAIRS = {
    "a table that was dropped": (
        ("RENAME TABLE {s}.orders TO {s}.kept",),
        ("RENAME TABLE {s}.kept TO {s}.orders",),
    ),
    "a column that was renamed": (
        ("ALTER TABLE {s}.orders CHANGE note memo VARCHAR(20)",),
        ("ALTER TABLE {s}.orders CHANGE memo note VARCHAR(20)",),
    ),
    "a column that was made shorter": (
        ("ALTER TABLE {s}.orders MODIFY note VARCHAR(1)",),
        ("ALTER TABLE {s}.orders MODIFY note VARCHAR(20)",),
    ),
    "a check": (
        ("ALTER TABLE {s}.orders ADD CONSTRAINT mine CHECK (note <> 'new')",),
        ("ALTER TABLE {s}.orders DROP CONSTRAINT mine",),
    ),
    "a trigger": (
        ("CREATE TRIGGER {s}.mine BEFORE INSERT ON {s}.orders FOR EACH ROW SET @mine = 1",),
        ("DROP TRIGGER {s}.mine",),
    ),
    "another engine": (
        ("ALTER TABLE {s}.orders ENGINE = MyISAM",),
        ("ALTER TABLE {s}.orders ENGINE = InnoDB",),
    ),
    "a unique index": (
        ("CREATE UNIQUE INDEX mine ON {s}.orders (note)",),
        ("DROP INDEX mine ON {s}.orders",),
    ),
    "a view": (
        ("RENAME TABLE {s}.orders TO {s}.kept", "CREATE VIEW {s}.orders AS SELECT * FROM {s}.kept"),
        ("DROP VIEW {s}.orders", "RENAME TABLE {s}.kept TO {s}.orders"),
    ),
    "the schema": (
        ("DROP SCHEMA {s}",),
        ("CREATE SCHEMA {s}", "CREATE TABLE {s}.orders (id INT PRIMARY KEY, note VARCHAR(20))"),
    ),
}


@pytest.mark.parametrize("name", REPAIRS)
def test_what_was_changed_by_hand_is_repaired(name, newcomer, feed):
    damage, repair = ([statement.format(s=SCHEMA) for statement in some] for some in REPAIRS[name])
    feed.sql(*damage)
    feed.write(order(21, 1))
    feed.everywhere(resolved(30))
    said = newcomer.applier("catchup")
    assert said.code in {4, 6}, said.stderr
    assert "Traceback" not in said.stderr
    feed.sql(*repair)
    newcomer.succeeds("catchup")
    assert feed.rows() == [(1, "new")]


@pytest.fixture
def with_duplicates(newcomer, feed):
    feed.write(order(21, 1, "one"), order(21, 2, "two"))
    feed.everywhere(resolved(22))
    newcomer.succeeds("catchup")
    feed.sql(f"UPDATE {SCHEMA}.orders SET note = 'one'")
    feed.everywhere(ddl(23, "ALTER TABLE orders ADD UNIQUE INDEX by_note (note)", t=7), resolved(30))
    return newcomer.fails("catchup", 4, "commit_ts: 23")


def test_duplicates_under_a_new_unique_index_are_corrected(newcomer, feed, with_duplicates):
    assert "applier verify" in with_duplicates.remedy
    feed.sql(f"UPDATE {SCHEMA}.orders SET note = 'two' WHERE id = 2")
    newcomer.succeeds("catchup")
    assert feed.rows() == [(1, "one"), (2, "two")]
    assert "done" in newcomer.succeeds("ddl list --ts 23").stdout


def test_a_new_unique_index_over_duplicates_is_skipped(newcomer, with_duplicates):
    newcomer.follow(with_duplicates, only="ddl skip")
    newcomer.succeeds("catchup")
    assert "skipped" in newcomer.succeeds("ddl list --ts 23").stdout


def test_a_url_with_a_database_is_written_without_it(newcomer, feed):
    newcomer.change({"sink.url": f"{feed.url}nowhere"})
    newcomer.fails("catchup", 2, "names a database")
    newcomer.change({"sink.url": feed.url})
    newcomer.succeeds("migrate")
    newcomer.succeeds("catchup")


def test_a_wrong_password_is_corrected(newcomer, feed):
    newcomer.change({"sink.url": make_url(feed.url).set(password="wrong").render_as_string(hide_password=False)})  # noqa: S106 - no secret
    newcomer.fails("migrate", 4, "Access denied")
    newcomer.change({"sink.url": feed.url})
    newcomer.succeeds("migrate")
