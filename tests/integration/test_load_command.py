"""``applier load`` with the loaders of this machine, from fake directories of Dumpling into a real MariaDB."""

import json
from contextlib import closing, suppress
from uuid import uuid4

import pytest
from pymysql.err import ProgrammingError

from applier.cli.main import run
from applier.config import load_config
from applier.demo.simulator.mysql_oracle import connect
from applier.dump import into_sink
from applier.model.position import Ts
from applier.sinks.factory import open_sink
from tests.rig.dump_directory import HEADER, MYDUMPER, TS, age, dumpling

pytestmark = pytest.mark.on_one_server("mariadb", reason="the programs are the same for all servers of the family")
LOADERS = ["myloader", "mariadb"]


@pytest.fixture
def schema(mysql_url):
    name = f"load_{uuid4().hex[:8]}"
    yield name
    execute(mysql_url, f"DROP SCHEMA IF EXISTS {name}")
    with suppress(ProgrammingError):  # the test has a bookkeeping of its own
        execute(mysql_url, f"DELETE FROM applier.loaded_dump WHERE name = '{name}'")


def execute(url, *statements):
    with closing(connect(url)) as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
        connection.commit()
        return list(cursor.fetchall())


@pytest.fixture
def load(tmp_path, mysql_url, schema, capsys):
    """Run the command; return its exit code, and what it has printed."""
    path = tmp_path / "applier.toml"
    path.write_text(f'name = "{schema}"\n[source]\nbootstrap_servers = "127.0.0.1:1"\ntopics = ["cdc"]\n[sink]\nurl = "{mysql_url}"\n')

    def command(directory, *options):
        code = run(["load", str(directory), "--config", str(path), *options])
        shown = capsys.readouterr()
        return code, shown.out + shown.err

    return command


def rows(url, schema):
    return execute(url, f"SELECT id, note, CAST(at AS CHAR) FROM {schema}.orders ORDER BY id")


WHOLE = [(0, "ä 'q'\\", "2026-01-01 00:00:00"), (1, None, None), (2, "x", "0000-00-00 00:00:00")]


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("loader", LOADERS)
def test_a_dump_is_loaded_whole_and_its_timestamp_is_recorded(load, tmp_path, mysql_url, schema, loader, packed):
    code, text = load(dumpling(tmp_path / "dump", schema, packed=packed), "--loader", loader, "--json")
    assert code == 0, text
    assert json.loads(text[text.index("{") : text.index("}") + 1])["start_ts"] == TS
    assert rows(mysql_url, schema) == WHOLE
    assert execute(mysql_url, f"SELECT COUNT(*) FROM {schema}.v, {schema}.empty") == [(0,)]
    assert execute(mysql_url, f"SELECT default_collation_name FROM information_schema.schemata WHERE schema_name = '{schema}'") == [
        ("utf8mb4_bin",)
    ]
    assert execute(mysql_url, f"SELECT start_ts, state FROM applier.loaded_dump WHERE name = '{schema}'") == [(TS, "done")]


def test_a_second_load_needs_a_word_and_a_failed_one_is_remembered(load, tmp_path, mysql_url, schema):
    directory = dumpling(tmp_path / "dump", schema)
    broken = directory / f"{schema}.orders.000000002.sql"
    broken.write_text("INSERT INTO `orders` VALUES (0,'secret value',NULL);\n")
    code, text = load(directory, "--loader", "mariadb")
    assert (code, "ERROR 1062 (23000) at line" in text, "secret" in text) == (4, True, False), text
    assert execute(mysql_url, f"SELECT state FROM applier.loaded_dump WHERE name = '{schema}'") == [("loading",)]
    broken.unlink()
    code, text = load(directory)
    assert code == 6
    assert "its load runs, or has failed" in text
    # The remedy, as it stands.
    code, text = load(directory, "--overwrite")
    assert code == 0, text
    assert rows(mysql_url, schema) == WHOLE


def test_tables_of_others_are_not_touched(load, tmp_path, mysql_url, schema):
    execute(mysql_url, f"CREATE SCHEMA {schema}", f"CREATE TABLE {schema}.orders (id INT)")
    code, text = load(dumpling(tmp_path / "dump", schema))
    assert code == 6
    assert f"{schema}.orders" in text
    assert execute(mysql_url, f"SELECT state FROM applier.loaded_dump WHERE name = '{schema}'") == []
    # One half of the remedy, as it stands.
    assert load(tmp_path / "dump", "--overwrite")[0] == 0
    assert rows(mysql_url, schema) == WHOLE


def test_a_dump_without_a_timestamp_is_loaded_with_the_one_that_is_given(load, tmp_path, mysql_url, schema):
    directory = dumpling(tmp_path / "dump", schema)
    (directory / "metadata").unlink()
    code, text = load(directory)
    assert (code, "Give it with --start-ts TSO" in text) == (2, True)
    code, text = load(directory, "--start-ts", str(TS + 7))
    assert code == 0, text
    assert execute(mysql_url, f"SELECT start_ts FROM applier.loaded_dump WHERE name = '{schema}'") == [(TS + 7,)]


def test_a_start_that_is_not_the_dumps_is_removed(load, tmp_path, schema):
    directory, path = dumpling(tmp_path / "dump", schema), tmp_path / "applier.toml"
    right = path.read_text()
    path.write_text(right.replace("[sink]", f"start_ts = {TS + 1}\n[sink]"))
    code, text = load(directory)
    assert (code, "Remove source.start_ts: the dump's is used" in text) == (2, True)
    path.write_text(right)
    assert load(directory)[0] == 0


@pytest.mark.parametrize(("by_s", "word"), [(3600, "older"), (-3600, "newer")])
def test_files_of_another_dump_are_refused(load, tmp_path, schema, by_s, word):
    directory = dumpling(tmp_path / "dump", schema)
    age(directory / f"{schema}.orders.000000001.sql", by_s)
    code, text = load(directory)
    assert (code, f"files are {word} than the dump" in text, f"{schema}.orders.000000001.sql" in text) == (2, True, True)
    assert load(directory, "--accept-file-times")[0] == 0


def test_a_dump_with_a_missing_file_of_rows_is_refused(load, tmp_path, mysql_url, schema):
    (dumpling(tmp_path / "dump", schema) / f"{schema}.orders.000000000.sql").unlink()
    code, text = load(tmp_path / "dump")
    assert (code, f"{schema}.orders.000000000.sql" in text) == (2, True), text
    # The remedy, as it stands: here the chunk was empty.
    assert load(tmp_path / "dump", "--accept-missing-files")[0] == 0
    assert rows(mysql_url, schema) == WHOLE[2:]


def test_rows_are_counted_where_the_metadata_counts_them(load, tmp_path, schema):
    metadata = dumpling(tmp_path / "dump", schema) / "metadata"
    metadata.write_text(f"{MYDUMPER.format(ts=TS)}\n[`{schema}`.`orders`]\nrows = 4\n")
    code, text = load(tmp_path / "dump")
    assert (code, f"{schema}.orders: 3 of 4" in text) == (4, True), text


def test_a_file_of_mysqldump_is_loaded_by_the_client(load, tmp_path, mysql_url, schema):
    directory = tmp_path / "dump"
    directory.mkdir()
    made = f"CREATE DATABASE `{schema}`;\nUSE `{schema}`;\nCREATE TABLE orders (id INT PRIMARY KEY);\nINSERT INTO orders VALUES (1);\n"
    (directory / "backup.2026-11-22.sql").write_text(f"{HEADER.format(ts=TS)}{made}-- Dump completed\n")
    code, text = load(directory)
    assert (code, "loaded 1 table" in text) == (0, True), text
    assert execute(mysql_url, f"SELECT id FROM {schema}.orders") == [(1,)]


def test_a_file_of_mysqldump_does_not_drop_tables_of_others(load, tmp_path, mysql_url, schema):
    execute(mysql_url, f"CREATE SCHEMA {schema}", f"CREATE TABLE {schema}.orders (id INT)")
    (tmp_path / "dump").mkdir()
    made = f"USE `{schema}`;\nDROP TABLE IF EXISTS `orders`;\nCREATE TABLE `orders` (id INT PRIMARY KEY);\n-- Dump completed\n"
    (tmp_path / "dump/all.sql").write_text(HEADER.format(ts=TS) + made)
    code, text = load(tmp_path / "dump")
    assert (code, f"{schema}.orders" in text) == (6, True), text


def test_timestamps_are_read_in_the_zone_that_is_given_or_not_at_all(load, tmp_path, mysql_url, schema):
    directory = dumpling(tmp_path / "dump", schema)
    code, text = load(directory, "--loader", "myloader", "--time-zone", "+08:00")
    assert (code, "myloader takes TIMESTAMP values in the server's zone" in text) == (2, True)
    # The remedy, as it stands.
    assert load(directory, "--loader", "mariadb", "--time-zone", "+08:00")[0] == 0
    assert execute(mysql_url, f"SELECT UNIX_TIMESTAMP(at) FROM {schema}.orders WHERE id = 0") == [(1767196800,)]


def test_a_value_that_does_not_fit_is_not_stored_cut(load, tmp_path, schema):
    directory = dumpling(tmp_path / "dump", schema)
    (directory / f"{schema}.orders.000000002.sql").write_text(f"INSERT INTO `orders` VALUES (3,'{'x' * 65}',NULL);\n")
    code, text = load(directory)
    assert (code, "ERROR 1406 (22001) at line" in text, "xxx" in text) == (4, True, False), text


def test_without_a_loader_the_commands_are_shown(load, tmp_path, schema, monkeypatch):
    monkeypatch.setattr(into_sink, "find_loader", lambda *_, **__: None)
    code, text = load(dumpling(tmp_path / "dump", schema))
    assert code == 2
    assert f"CREATE SCHEMA IF NOT EXISTS `{schema}`" in text
    assert f"{schema}.orders.000000000.sql" in text
    assert f"source.start_ts = {TS}" in text


def test_a_replica_that_has_begun_stays_and_another_one_gets_the_dump(load, tmp_path, mysql_url, schema):
    books, path = f"{schema}_books", tmp_path / "applier.toml"
    path.write_text(path.read_text() + f'schema = "{books}"\n')
    try:
        with open_sink(load_config(path).sink_settings()) as sink:
            sink.migrate()
            sink.acquire()
            sink.begin(Ts(0))
        code, text = load(dumpling(tmp_path / "dump", schema))
        assert (code, "Give the new replica another name" in text) == (6, True), text
        path.write_text(path.read_text().replace(f'name = "{schema}"', 'name = "other"'))
        assert load(tmp_path / "dump")[0] == 0
    finally:
        execute(mysql_url, f"DROP SCHEMA IF EXISTS {books}")
    assert rows(mysql_url, schema) == WHOLE
