"""``applier load`` into a file of SQLite, from dumps written by hand: as Dumpling writes them, and with what is wrong with dumps."""

import signal
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest

from applier.cli.main import run
from tests.rig.dump_directory import HEADER, TS, dumpling

ROWS = [(0, "ä 'q'\\", "2026-01-01 00:00:00"), (1, None, None), (2, "x", "0000-00-00 00:00:00")]
TYPES = (
    "CREATE TABLE `t` (`id` bigint unsigned NOT NULL, `d` decimal(20,3) zerofill, `e` enum('a','b'), `s` set('x','y'), `b` bit(9), "
    "`f` float, `y` year, `j` json, `n` binary(4), `l` varchar(9) CHARACTER SET latin1, `h` time(2), `v` vector(3), "
    "`g` int AS (1) VIRTUAL, PRIMARY KEY (`id`)) DEFAULT CHARSET=utf8mb4;\n"
)
KILLED_LOAD = """
import os, signal, sys
from applier.cli.main import run
from applier.sinks.sqlite import dump_loader

commits, commit = [], dump_loader.FileRows.commit

def killing(rows):
    commit(rows)
    commits.append(1)
    if len(commits) == 10:
        os.kill(os.getpid(), signal.SIGKILL)

dump_loader.COMMIT_BYTES = 100
dump_loader.FileRows.commit = killing
run(["load", sys.argv[1], "--config", sys.argv[2]])
"""


@pytest.fixture
def load(tmp_path, capsys):
    """Run the command; return its exit code, and what it has printed."""
    path = tmp_path / "applier.toml"
    path.write_text(f'[source]\nbootstrap_servers = "127.0.0.1:1"\ntopics = ["cdc"]\n[sink]\nurl = "sqlite:///{tmp_path}/replica.db"\n')

    def command(directory, *options):
        code = run(["load", str(directory), "--config", str(path), *options])
        shown = capsys.readouterr()
        return code, shown.out + shown.err

    return command


def ask(directory, query):
    with closing(sqlite3.connect(directory / "replica.db")) as connection:
        return connection.execute(query).fetchall()


def orders(tmp_path):
    return ask(tmp_path, 'SELECT id, note, at FROM "shop.orders" ORDER BY id')


@pytest.mark.parametrize("packed", [False, True])
def test_a_dump_of_dumpling_is_loaded(load, tmp_path, packed):
    code, shown = load(dumpling(tmp_path / "dump", packed=packed))
    assert (code, "2 tables with 3 rows" in shown) == (0, True), shown
    assert orders(tmp_path) == ROWS
    assert ask(tmp_path, 'SELECT * FROM "shop.v" ORDER BY id') == [(0,), (1,), (2,)]
    assert ask(tmp_path, "SELECT CAST(start_ts AS INT), state FROM applier_loaded_dump") == [(TS, "done")]


def test_a_timestamp_is_stored_in_the_zone_of_the_wire(load, tmp_path):
    assert load(dumpling(tmp_path / "dump"), "--time-zone", "+08:00")[0] == 0
    assert [at for _, _, at in orders(tmp_path)] == ["2025-12-31 16:00:00", None, "0000-00-00 00:00:00"]


def test_values_of_all_types_are_stored_as_rows_of_the_stream_are(load, tmp_path):
    directory = dumpling(tmp_path / "dump")
    (directory / "shop.t-schema.sql").write_text(TYPES)
    row = "(18446744073709551615,00000000000000001.500,'b','x,y',x'0101',1.1,2020,'{\"a\": 1}',x'61','日','-01:02:03.40','[1,2.5,3]')"
    columns = "(`id`,`d`,`e`,`s`,`b`,`f`,`y`,`j`,`n`,`l`,`h`,`v`)"
    (directory / "shop.t.000000000.sql").write_text(f"/*!40101 SET NAMES binary*/;\nINSERT INTO `t` {columns} VALUES\n{row};\n")
    code, shown = load(directory)
    assert code == 0, shown
    assert ask(tmp_path, 'SELECT id, d, e, s, b, f, y, j, n, l, h, v FROM "shop.t"') == [
        ("18446744073709551615", "1.500", "b", "x,y", 257, 1.1, 2020, '{"a": 1}', b"a\0\0\0", "日", "-01:02:03.40", "[1,2.5,3]")
    ]


def test_a_load_that_is_killed_is_begun_again(load, tmp_path):
    directory = dumpling(tmp_path / "dump")
    more = "".join(f"INSERT INTO `orders` VALUES ({number},'x',NULL);\n" for number in range(10, 60))
    (directory / "shop.orders.000000002.sql").write_text(more)
    # A process of its own, not a fork: this one has threads of native libraries.
    program = [sys.executable, "-c", KILLED_LOAD, str(directory), str(tmp_path / "applier.toml")]
    assert subprocess.run(program, capture_output=True, check=False).returncode == -signal.SIGKILL
    assert 3 < len(orders(tmp_path)) < 53
    code, shown = load(directory)
    assert (code, "its load runs, or has failed" in shown) == (6, True), shown
    # The remedy, as it stands.
    code, shown = load(directory, "--overwrite")
    assert (code, len(orders(tmp_path))) == (0, 53), shown


def test_tables_of_others_are_not_touched(load, tmp_path):
    with closing(sqlite3.connect(tmp_path / "replica.db")) as connection:
        connection.execute('CREATE TABLE "shop.orders" (id INT)')
    code, shown = load(dumpling(tmp_path / "dump"))
    assert (code, "shop.orders" in shown) == (6, True), shown
    assert load(tmp_path / "dump", "--overwrite")[0] == 0
    assert orders(tmp_path) == ROWS


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ("(3,'secret','yesterday')", "a value of column at is not one of its type"),
        ("(3,'secret')", "a row has 2 values"),
        ("(99999999999999999999,'secret',NULL)", "a value of column id is not one of its type"),
        ("(3,CONCAT('secret'),NULL)", "not a literal of a dump"),
        ("(NULL,'secret',NULL)", "NULL in column id"),
    ],
)
def test_what_is_no_value_of_its_column_stops_the_load_and_is_not_shown(load, tmp_path, row, why):
    directory = dumpling(tmp_path / "dump")
    (directory / "shop.orders.000000002.sql").write_text(f"INSERT INTO `orders` VALUES {row};\n")
    code, shown = load(directory)
    assert (code in {2, 4}, why in shown, "secret" in shown, "shop.orders.000000002.sql" in shown) == (True, True, False, True), shown


def test_rows_of_one_key_are_missed(load, tmp_path):
    directory = dumpling(tmp_path / "dump")
    (directory / "shop.orders.000000002.sql").write_text("INSERT INTO `orders` VALUES (2,'y',NULL);\n")
    code, shown = load(directory)
    assert (code, "shop.orders: 3 of 4" in shown) == (4, True), shown


def test_texts_in_a_character_set_of_several_bytes_are_dumped_again(load, tmp_path):
    directory = dumpling(tmp_path / "dump")
    (directory / "shop.orders.000000002.sql").write_text("SET NAMES gbk;\nINSERT INTO `orders` VALUES (3,'y',NULL);\n")
    code, shown = load(directory)
    assert (code, "Dump with --default-character-set=utf8mb4" in shown) == (2, True), shown
    (directory / "shop.orders.000000002.sql").write_bytes(b"SET NAMES latin1;\nINSERT INTO `orders` VALUES (3,'\xe4\x80',NULL);\n")
    assert load(directory, "--overwrite")[0] == 0
    assert orders(tmp_path)[3] == (3, "ä€", None)


def test_one_file_is_loaded_again_with_its_views(load, tmp_path):
    made = "CREATE TABLE `t` (\n  `id` int NOT NULL,\n  PRIMARY KEY (`id`)\n);\nINSERT INTO `t` VALUES (1),(2);\n"
    view = "/*!50001 CREATE ALGORITHM=UNDEFINED */\n/*!50013 SQL SECURITY DEFINER */\n/*!50001 VIEW `v` AS select `id` from `t` */;\n"
    (tmp_path / "all.sql").write_text(f"{HEADER.format(ts=TS)}CREATE DATABASE `shop`;\nUSE `shop`;\n{made}{view}-- Dump completed\n")
    for options in ([], ["--overwrite"]):
        code, shown = load(tmp_path / "all.sql", *options)
        assert code == 0, shown
    assert ask(tmp_path, 'SELECT id FROM "shop.v" ORDER BY id') == [(1,), (2,)]
