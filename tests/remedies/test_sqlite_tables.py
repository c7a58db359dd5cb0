"""Tables of a SQLite sink that are not as upstream has them: somebody repairs them as the remedy says, and the replica goes on."""

from pathlib import Path

import pytest

from tests.builders.handwritten import KEY, ddl, resolved, row
from tests.builders.wire import column, text
from tests.rig.walked_feed import begun, order

TABLE = '"shop.orders"'
ADD = ddl(23, "ALTER TABLE orders ADD COLUMN IF NOT EXISTS note VARCHAR(20)", t=5)
OTHER = "CREATE TABLE other (id INT PRIMARY KEY)"


@pytest.fixture
def feed(newcomer):
    return begun(newcomer)


DAMAGE = {
    "a table of upstream's name": (
        ddl(23, OTHER, "other"),
        ['CREATE TABLE "shop.other" (mine INT)'],
        ['ALTER TABLE "shop.other" RENAME TO mine'],
    ),
    "upstream's table, with rows": (
        ddl(23, "CREATE TABLE orders (id INT PRIMARY KEY, note VARCHAR(20))"),
        [f"INSERT INTO {TABLE} VALUES (7, 'mine')"],
        [f"DROP TABLE {TABLE}"],
    ),
    "a name that is taken": (
        ddl(23, "RENAME TABLE orders TO other", "other", t=14),
        ['CREATE TABLE "shop.other" (mine INT)'],
        ['DROP TABLE "shop.other"'],
    ),
    "no table": (
        ddl(23, "TRUNCATE TABLE orders", t=11),
        [f"ALTER TABLE {TABLE} RENAME TO kept"],
        [f"ALTER TABLE kept RENAME TO {TABLE}"],
    ),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_a_ddl_runs_when_its_tables_are_as_upstreams(name, newcomer, feed):
    event, damage, repair = DAMAGE[name]
    newcomer.sql(*damage)
    feed.everywhere(event, resolved(30))
    newcomer.fails("catchup", 4, "commit_ts: 23")
    newcomer.sql(*repair)
    newcomer.succeeds("catchup")
    assert "done" in newcomer.succeeds("ddl list --ts 23").stdout


def test_a_column_that_is_there_already_is_compared_and_its_ddl_skipped(newcomer, feed):
    feed.everywhere(ADD)
    feed.write(order(24, 1))
    feed.everywhere(resolved(30))
    newcomer.follow(newcomer.fails("catchup", 4, "changes nothing"), only="ddl skip")
    newcomer.succeeds("catchup")
    assert newcomer.rows() == [(1, "new")]


def made_by(newcomer, definition):
    """Put a table of another definition in the place of the feed's; return what takes it back."""
    newcomer.sql(f"ALTER TABLE {TABLE} RENAME TO kept", f"CREATE TABLE {TABLE} ({definition})")
    return [f"DROP TABLE {TABLE}", f"ALTER TABLE kept RENAME TO {TABLE}"]


@pytest.mark.parametrize(
    ("definition", "event"),
    [
        ("id INTEGER PRIMARY KEY, note REAL", row(24, id=column(3, KEY, 1), note=column(246, 64, "1.5"))),
        ("id INT PRIMARY KEY, note VARCHAR(20), must INT NOT NULL", order(24, 1)),
    ],
    ids=["floating point", "no default"],
)
def test_a_table_of_another_definition_gets_upstreams(definition, event, newcomer, feed):
    repair = made_by(newcomer, definition)
    feed.write(event)
    feed.everywhere(resolved(30))
    said = newcomer.applier("catchup")
    assert said.code in {4, 6}, said.stderr
    newcomer.sql(*repair)
    newcomer.succeeds("catchup")
    assert len(newcomer.rows()) == 1


def test_a_table_gets_the_key_that_it_has_upstream(newcomer, feed):
    feed.write(row(24, note=column(15, KEY, "new")))
    feed.everywhere(resolved(30))
    newcomer.fails("catchup", 6, "lacks columns")
    newcomer.sql(f"DROP TABLE {TABLE}", f"CREATE TABLE {TABLE} (id INT, note VARCHAR(20) PRIMARY KEY)")
    newcomer.succeeds("catchup")
    assert newcomer.rows() == [(None, "new")]


def test_rows_that_the_sink_has_twice_are_deleted_and_its_key_made(newcomer, feed):
    made_by(newcomer, "id INT, note VARCHAR(20), other INT DEFAULT 5")
    newcomer.sql(f"INSERT INTO {TABLE} VALUES (1, 'one', 1), (1, 'two', 2)")
    feed.write(order(24, 1))
    feed.everywhere(resolved(30))
    newcomer.fails("catchup", 6, "several rows")
    newcomer.sql(f"DELETE FROM {TABLE} WHERE other = 1", f"CREATE UNIQUE INDEX by_id ON {TABLE} (id)")
    newcomer.succeeds("catchup")
    assert newcomer.rows() == [(1, "new", 2)]


def test_a_row_that_the_sink_has_lost_is_written_by_hand(newcomer, feed):
    feed.everywhere(ddl(23, "CREATE TABLE plain (id INT, note VARCHAR(20))", table="plain"))
    feed.write(row(24, table="plain", id=column(3, 65, 1), note=text("new")))
    feed.everywhere(resolved(30))
    newcomer.change(newcomer.fails("catchup", 6, "table: shop.plain").settings)
    newcomer.succeeds("catchup")
    newcomer.sql('DELETE FROM "shop.plain"')
    feed.write(row(34, table="plain", deleted=True, id=column(3, 65, 1), note=text("new")))
    feed.everywhere(resolved(40))
    newcomer.fails("catchup", 4, "lacks a row")
    newcomer.sql("INSERT INTO \"shop.plain\" VALUES (1, 'new')")
    newcomer.succeeds("catchup")
    assert newcomer.rows("shop.plain") == []


def test_a_damaged_file_is_restored_from_a_backup(newcomer, feed):
    path = Path("replica.db")
    backup = path.read_bytes()
    feed.write(order(24, 1))
    feed.everywhere(resolved(30))
    path.write_bytes(backup[:4096] + b"\xff" * (len(backup) - 4096))
    newcomer.fails("catchup", 4, "damaged")
    path.write_bytes(backup)
    newcomer.succeeds("catchup")
    assert newcomer.rows() == [(1, "new")]


def test_a_table_whose_columns_take_all_names_of_the_rowid_is_written_by_its_key(newcomer, feed):
    newcomer.sql(f"ALTER TABLE {TABLE} RENAME TO kept", f"CREATE TABLE {TABLE} (id INT, note TEXT, rowid INT, oid INT, _rowid_ INT)")
    feed.write(order(24, 1))
    feed.everywhere(resolved(30))
    newcomer.succeeds("catchup")
    assert newcomer.rows() == [(1, "new", None, None, None)]
