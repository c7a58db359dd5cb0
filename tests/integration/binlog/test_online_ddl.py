"""The statements of gh-ost and pt-online-schema-change on a real primary: the replica alters its table, and has none of theirs."""

import shutil
import sqlite3
import subprocess
from contextlib import closing, contextmanager
from threading import Event, Thread

import pytest
from sqlalchemy import make_url

from applier.cli.main import run
from applier.model.errors import NeedsOperator
from applier.selection import OnlineDdl, OnlineDdlMode, TableFilter, TableSelection
from applier.sinks.mysql.ddl import runner
from applier.sources.binlog.settings import BinlogSettings
from tests.integration.mysql_replica import read
from tests.rig.binlog_replica import BinlogReplica
from tests.rig.faulty_sink import DeathError
from tests.rig.mysql_oracle import connect
from tests.rig.server import unavailable
from tests.rig.upstream import NAME

pytestmark = pytest.mark.timeout(180)
ORDERS = (
    "CREATE DATABASE shop",
    "CREATE TABLE shop.orders (id INT PRIMARY KEY, n INT, old VARCHAR(10), KEY k (n))",
    "INSERT INTO shop.orders VALUES (1, 10, 'a'), (2, 20, 'b')",
)
GH_OST = (
    "create /* gh-ost */ table shop._orders_ghc (id bigint auto_increment primary key, hint varchar(64) charset ascii not null)",
    "insert /* gh-ost */ into shop._orders_ghc (hint) values ('state')",
    "create /* gh-ost */ table shop._orders_gho like shop.orders",
    "alter /* gh-ost */ table shop._orders_gho add column note varchar(20) not null default 'none', drop column old, add index (note)",
    "alter /* gh-ost */ table shop._orders_gho AUTO_INCREMENT=3",
)
COPY = "insert /* gh-ost */ ignore into shop._orders_gho (id, n) (select id, n from shop.orders)"
SWAP = (
    "create /* gh-ost */ table shop._orders_del (id int auto_increment primary key) comment='ghost-cut-over-sentry'",
    "drop /* gh-ost */ table if exists shop._orders_del",
    "rename /* gh-ost */ table shop.orders to shop._orders_del, shop._orders_gho to shop.orders",
    "drop /* gh-ost */ table if exists shop._orders_ghc",
    "drop /* gh-ost */ table if exists shop._orders_del",
)
TRIGGER = (
    "CREATE TRIGGER shop.pt_osc_shop_orders_ins AFTER INSERT ON shop.orders FOR EACH ROW "
    "REPLACE INTO shop._orders_new (id, n, note) VALUES (NEW.id, NEW.n, NEW.note)"
)
PT_OSC = (
    "CREATE TABLE shop._orders_new (id INT PRIMARY KEY, n INT, note VARCHAR(20) NOT NULL DEFAULT 'none', KEY k (n), KEY (note))",
    "ALTER TABLE shop._orders_new MODIFY n BIGINT, ADD UNIQUE KEY u (n)",
    TRIGGER,
    "INSERT LOW_PRIORITY IGNORE INTO shop._orders_new (id, n, note) SELECT id, n, note FROM shop.orders LOCK IN SHARE MODE",
    "INSERT INTO shop.orders VALUES (4, 40, 'while it runs')",
    "RENAME TABLE shop.orders TO shop._orders_old, shop._orders_new TO shop.orders",
    "DROP TABLE IF EXISTS shop._orders_old",
)
ROWS = "SELECT * FROM shop.orders ORDER BY id"


def replica_of(primary, sink, **options):
    rules = OnlineDdl.parse(options.get("mode", OnlineDdlMode.FILTERED))
    selection = TableSelection(TableFilter.parse(options.get("tables", ["shop.orders"])), online=rules)
    return BinlogReplica(sink, BinlogSettings(url=primary.url, start=primary.place()), selection=selection)


def test_the_cut_overs_of_both_tools_are_the_alters_of_their_copies(primary, mariadb_sink, monkeypatch):
    replica = replica_of(primary, mariadb_sink)
    primary.run(*ORDERS, *GH_OST)
    # Each run is a new start of the program: what the copy is, only the ledger says.
    replica.catch_up()
    primary.run(COPY, "INSERT INTO shop.orders VALUES (3, 30, 'c')", "insert ignore into shop._orders_gho (id, n) values (3, 30)")
    replica.catch_up()
    primary.run(*SWAP, "INSERT INTO shop.orders VALUES (9, 90, 'after')", *PT_OSC, "INSERT INTO shop.orders VALUES (5, 5000000000, 'x')")
    # The run dies with the intent of a cut-over, and the next one after its ALTER TABLE: what the copy is, is in the intent then.
    for point in ("ddl.after_intent", "ddl.after_statement"):
        monkeypatch.setattr(runner, "reach", dies_at(point))
        with pytest.raises(DeathError):
            replica.catch_up()
        monkeypatch.undo()
    replica.catch_up()
    assert read(mariadb_sink, ROWS) == [tuple(row) for row in primary.ask(ROWS)]
    assert read(mariadb_sink, "SHOW TABLES FROM shop") == [("orders",)]
    done = [entry.ddl.query for entry in replica.ledger() if entry.state == "done"]
    assert [query.partition("` ")[2][:15] for query in done[-2:]] == ["add column note", "MODIFY n BIGINT"]


def dies_at(point):
    def reach(reached):
        if reached == point:
            raise DeathError

    return reach


def test_a_copy_that_was_begun_before_the_replica_stops_it_until_the_change_is_made_by_hand(primary, sqlite_sink, tmp_path):
    primary.run(*ORDERS[:2], *GH_OST)
    replica = replica_of(primary, sqlite_sink, tables=(), mode=OnlineDdlMode.ALWAYS)
    primary.run("CREATE TABLE shop.other (id INT PRIMARY KEY)", COPY, *SWAP, "INSERT INTO shop.other VALUES (1)")
    with pytest.raises(NeedsOperator, match="begun before the replica") as stopped:
        replica.catch_up()
    assert stopped.value.facts["table"] == "shop.orders"
    assert "rename /* gh-ost" in stopped.value.facts["query"]
    skip_by_hand(primary, sqlite_sink, tmp_path, stopped.value.facts)
    replica.catch_up()
    with sqlite3.connect(sqlite_sink.removeprefix("sqlite:///")) as connection:
        assert connection.execute('SELECT id FROM "shop.other"').fetchall() == [(1,)]


def skip_by_hand(primary, sink, directory, facts):
    """Follow the command of the remedy. The change itself is none here: the table is not in the sink, whose replica began behind it."""
    path = directory / "applier.toml"
    text = f'name = "{NAME}"\n[source]\nkind = "binlog"\nurl = "{primary.url}"\n[sink]\nurl = "{sink}"\n'
    path.write_text(text, encoding="utf-8")
    assert run(["ddl", "skip", "--config", str(path), "--ts", str(facts["commit_ts"]), "--table", facts["table"]]) == 0


TOOL = "pt-online-schema-change"


@contextmanager
def writers(primary):
    """Write to the table until the end of the block; the tool's triggers and its copy meet these rows."""
    stop = Event()

    def write():
        with closing(connect(primary.url)) as connection, connection.cursor() as cursor:
            connection.autocommit(True)
            number = 1000
            while not stop.is_set():
                number += 1
                cursor.execute("INSERT INTO shop.orders (id, n) VALUES (%s, %s)", (number, number))
                cursor.execute("UPDATE shop.orders SET n = n + 1 WHERE id = %s", (number - number % 7,))
                cursor.execute("DELETE FROM shop.orders WHERE id = %s", (number - 5,))

    thread = Thread(target=write)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def test_the_real_tool_alters_a_table_under_load_and_the_replica_follows(primary, mariadb_sink):
    if shutil.which(TOOL) is None:
        unavailable(f"no {TOOL} (Debian: percona-toolkit)")
    replica = replica_of(primary, mariadb_sink)
    primary.run(*ORDERS)
    url = make_url(primary.url)
    login = f"h={url.host},P={url.port},u={url.username},p={url.password},D=shop,t=orders"
    with writers(primary):
        for alteration in ("ADD COLUMN note VARCHAR(20) NOT NULL DEFAULT 'none', DROP COLUMN old", "MODIFY n BIGINT, ADD KEY (note)"):
            command = [TOOL, "--execute", "--no-version-check", "--recursion-method=none", "--alter", alteration, login]
            done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
            assert done.returncode == 0, done.stdout + done.stderr
            replica.catch_up()
    replica.catch_up()
    assert read(mariadb_sink, ROWS) == [tuple(row) for row in primary.ask(ROWS)]
    assert read(mariadb_sink, "SHOW TABLES FROM shop") == [("orders",)]
    assert {"n": "bigint", "note": "varchar"}.items() <= dict(
        read(mariadb_sink, "SELECT column_name, data_type FROM information_schema.columns WHERE table_schema = 'shop'")
    ).items()
