"""``applier load`` loads a dump of a primary, and the replica begins at its place in the binlog."""

import json
import subprocess
from contextlib import closing

import pytest
from sqlalchemy import make_url

from applier.cli.main import run
from applier.selection import TableFilter, TableSelection
from applier.sources.binlog.settings import BinlogSettings
from tests.rig.binlog_replica import BinlogReplica
from tests.rig.database import PASSWORD, USER
from tests.rig.mysql_oracle import connect
from tests.rig.upstream import NAME

pytestmark = [pytest.mark.timeout(120), pytest.mark.on_one_server("mariadb", reason="the programs of the tests are MariaDB's")]
ROWS = "SELECT id, n FROM loaded.orders ORDER BY id"


@pytest.fixture
def dump(primary, tmp_path):
    """Dump the primary with these options; return the directory."""

    def make(*options):
        directory = tmp_path / "dump"
        directory.mkdir()
        url = make_url(primary.url)
        who = [f"--host={url.host}", f"--port={url.port}", f"--user={USER}", f"--password={PASSWORD}"]
        with (directory / "dump.sql").open("wb") as file:
            command = ["mariadb-dump", *who, "--single-transaction", *options, "--databases", "loaded"]
            subprocess.run(command, check=True, stdout=file, timeout=60)
        return directory

    primary.run(
        "CREATE DATABASE loaded",
        "CREATE TABLE loaded.orders (id INT PRIMARY KEY, n INT)",
        "INSERT INTO loaded.orders VALUES (1, 1), (2, 2)",
    )
    return make


@pytest.fixture
def load(primary, mariadb_sink, tmp_path, capsys):
    def command(*words, tables=("*.*",)):
        path = tmp_path / "applier.toml"
        source = f'[source]\nkind = "binlog"\nurl = "{primary.url}"\ntables = {json.dumps(tables)}\n'
        path.write_text(f'name = "{NAME}"\n{source}[sink]\nurl = "{mariadb_sink}"\n', encoding="utf-8")
        code = run(["load", "--config", str(path), *words])
        shown = capsys.readouterr()
        return code, shown.out + shown.err

    return command


def test_a_replica_begins_at_the_place_of_the_dump_that_was_loaded(primary, mariadb_sink, dump, load):
    directory = dump("--master-data=2")
    place = primary.place()
    primary.run("INSERT INTO loaded.orders VALUES (3, 3)", "DELETE FROM loaded.orders WHERE id = 1", "UPDATE loaded.orders SET n = 9")
    code, shown = load(str(directory))
    assert code == 0, shown
    assert place in shown
    (directory / "dump.sql").unlink()
    replica = BinlogReplica(mariadb_sink, BinlogSettings(url=primary.url, start=""))
    replica.catch_up()
    with closing(connect(mariadb_sink)) as connection, connection.cursor() as cursor:
        cursor.execute(ROWS)
        assert cursor.fetchall() == primary.ask(ROWS) == ((2, 9), (3, 9))


def test_definitions_of_mariadb_mean_what_they_mean_in_its_binlog(primary, mariadb_sink, dump, load):
    primary.run(
        "CREATE TABLE loaded.texts (id INT PRIMARY KEY, l VARCHAR(9) CHARACTER SET latin1, g INT AS (id + 1) STORED, CHECK (id > 0))",
        "INSERT INTO loaded.texts (id, l) VALUES (1, 'ä')",
        "CREATE VIEW loaded.v AS SELECT id FROM loaded.orders",
        "CREATE TRIGGER loaded.doubles BEFORE INSERT ON loaded.orders FOR EACH ROW SET NEW.n = 2 * NEW.n",
    )
    code, shown = load(str(dump("--master-data=2") / "dump.sql"))
    assert (code, "trigger doubles" in shown) == (0, True), shown
    with closing(connect(mariadb_sink)) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT id, l, g FROM loaded.texts")
        assert cursor.fetchall() == ((1, "ä", 2),)
        cursor.execute("SELECT COLLATION_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = 'loaded' AND COLUMN_NAME = 'l'")
        assert cursor.fetchall() == (("latin1_swedish_ci",),)
        cursor.execute("SELECT COUNT(*) FROM loaded.v")
        assert cursor.fetchall() == ((2,),)


def test_a_dump_without_a_place_and_one_that_would_change_the_sink_are_refused(dump, load):
    directory = dump()
    code, shown = load(str(directory))
    assert (code, "does not say at which position" in shown) == (2, True)
    text = (directory / "dump.sql").read_text(encoding="utf-8")
    (directory / "dump.sql").write_text(f"CHANGE MASTER TO MASTER_LOG_FILE='binlog.000001', MASTER_LOG_POS=4;\n{text}", encoding="utf-8")
    code, shown = load(str(directory))
    assert (code, "--master-data=2" in shown) == (2, True)
    (directory / "second.sql").write_text(text, encoding="utf-8")
    code, shown = load(str(directory))
    assert (code, "holds no dump that says its position" in shown) == (2, True)
    code, shown = load(str(directory), "--start-ts", "458173202432000000")
    assert (code, "--start-ts is for dumps of TiDB" in shown) == (2, True)


@pytest.mark.parametrize("history", [(), ("--dump-history",)])
def test_a_table_with_system_versioning_is_refused_by_name_until_it_is_excluded(primary, mariadb_sink, dump, load, history):
    primary.run(
        "CREATE TABLE loaded.past (id INT PRIMARY KEY, n INT) WITH SYSTEM VERSIONING",
        "INSERT INTO loaded.past VALUES (1, 1)",
        "UPDATE loaded.past SET n = 2",
    )
    directory = dump("--master-data=2", *history)
    code, shown = load(str(directory))
    assert (code, "tables with SYSTEM VERSIONING are not replicated" in shown, "source.tables" in shown) == (6, True, True), shown
    excluded = ["*.*", "!loaded.past"]
    code, shown = load(str(directory), "--overwrite", tables=excluded)
    assert code == 0, shown
    primary.run("UPDATE loaded.past SET n = 3", "INSERT INTO loaded.orders VALUES (3, 3)")
    selection = TableSelection(tables=TableFilter.parse(excluded))
    BinlogReplica(mariadb_sink, BinlogSettings(url=primary.url, start=""), selection=selection).catch_up()
    with closing(connect(mariadb_sink)) as connection, connection.cursor() as cursor:
        cursor.execute(ROWS)
        assert cursor.fetchall() == primary.ask(ROWS) == ((1, 1), (2, 2), (3, 3))
        cursor.execute("SHOW TABLES IN loaded")
        assert cursor.fetchall() == (("orders",),)
