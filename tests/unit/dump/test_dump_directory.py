"""What is read of a dump's directory: its timestamp, its files, and what cannot be loaded."""

from pathlib import Path

import pytest

from applier.dump.inventory import FileKind, inventory_of
from applier.dump.loader import LoaderProgram, LoadTarget, client_command, find_loader, option_file
from applier.dump.moment import moment_of
from applier.model.errors import ConfigError
from applier.model.events import TableName
from applier.mysql_client.tls import Tls, TlsMode
from applier.sinks.settings import SinkSettings
from tests.rig.dump_directory import DUMPLING, HEADER, MYDUMPER, TS, dumpling


@pytest.mark.parametrize("metadata", [DUMPLING.format(log="tidb-binlog", ts=TS), MYDUMPER.format(ts=TS)])
def test_the_timestamp_is_read_from_the_metadata(tmp_path, metadata):
    (tmp_path / "metadata").write_text(metadata)
    assert moment_of(tmp_path).start_ts == TS


@pytest.mark.parametrize("header", [HEADER, "-- CHANGE REPLICATION SOURCE TO SOURCE_LOG_FILE='tidb-binlog', SOURCE_LOG_POS={ts};\n"])
def test_the_timestamp_is_read_from_the_header_of_mysqldump(tmp_path, header):
    (tmp_path / "all.sql").write_text(header.format(ts=TS))
    assert moment_of(tmp_path).start_ts == TS
    (tmp_path / "other.sql").write_text(header.format(ts=TS + 1))
    with pytest.raises(ConfigError, match="dumps of different moments"):
        moment_of(tmp_path)


def test_a_dump_without_a_timestamp_tells_none(tmp_path):
    (tmp_path / "all.sql").write_text("-- MySQL dump\n")
    assert moment_of(tmp_path) is None


@pytest.mark.parametrize(("log", "ts"), [("mysql-bin.000003", TS), ("tidb-binlog", 4711)])
def test_a_position_in_a_binlog_is_no_timestamp(tmp_path, log, ts):
    (tmp_path / "metadata").write_text(DUMPLING.format(log=log, ts=ts))
    with pytest.raises(ConfigError, match="not of TiDB"):
        moment_of(tmp_path)


def test_an_unfinished_dump_is_refused(tmp_path):
    (tmp_path / "metadata").write_text(DUMPLING.format(log="tidb-binlog", ts=TS).partition("Finished")[0])
    with pytest.raises(ConfigError, match="not finished"):
        moment_of(tmp_path)


@pytest.mark.parametrize("packed", [False, True])
def test_every_file_of_a_dump_has_its_kind(tmp_path, packed):
    inventory = inventory_of(dumpling(tmp_path, packed=packed))
    assert [(file.kind, str(file.table)) for file in inventory.files] == [
        (FileKind.SCHEMA, "shop"),
        (FileKind.TABLE, "shop.empty"),
        (FileKind.TABLE, "shop.orders"),
        (FileKind.TABLE, "shop.v"),
        (FileKind.ROWS, "shop.orders"),
        (FileKind.ROWS, "shop.orders"),
        (FileKind.VIEW, "shop.v"),
    ]
    assert inventory.tables == [TableName("shop", "empty"), TableName("shop", "orders")]


@pytest.mark.parametrize(
    "name", ["shop.orders.000000002.sql.lz4", "shop.orders.000000000.csv", "shop.orders-schema-triggers.sql", "notes.txt"]
)
def test_a_file_that_cannot_be_loaded_is_named_and_never_passed_over(tmp_path, name):
    (dumpling(tmp_path) / name).touch()
    with pytest.raises(ConfigError) as caught:
        inventory_of(tmp_path)
    assert caught.value.facts["files"] == name


@pytest.mark.parametrize("schema", ["checkpoint", "metadata", "readme"])
def test_no_schema_is_taken_for_files_about_the_dump(tmp_path, schema):
    for name in ("metadata.partial.1", "README.md", "checkpoint.json", "shop.orders-checksum"):
        (tmp_path / name).touch()
    assert TableName(schema, "orders") in inventory_of(dumpling(tmp_path, schema)).tables


def test_rows_without_their_table_are_of_another_dump(tmp_path):
    (dumpling(tmp_path) / "shop.old.000000000.sql").touch()
    with pytest.raises(ConfigError, match=r"rows of shop\.old"):
        inventory_of(tmp_path)


def test_the_programs_reach_the_server_of_the_url_and_no_socket():
    settings = SinkSettings(url="mysql+pymysql://a%22b:p%5Cw%22@localhost:3307/", tls=Tls(mode=TlsMode.VERIFY_IDENTITY, ca="/ca.pem"))
    program = LoaderProgram("mariadb", "/usr/bin/mariadb")
    with option_file(LoadTarget(settings), program) as path:
        lines = path.read_text().splitlines()
        assert path.stat().st_mode & 0o077 == 0
    assert lines[1:] == [
        'host="127.0.0.1"',
        "port=3307",
        "protocol=tcp",
        'user="a\\"b"',
        'ssl-ca="/ca.pem"',
        "ssl",
        "ssl-verify-server-cert",
        'password="p\\\\w\\""',
    ]
    assert not path.exists()


def test_the_client_is_told_its_server_on_the_command_line_which_no_login_file_overrides():
    target = LoadTarget(SinkSettings(url="mysql+pymysql://u:secret@localhost:3307/"))
    command = client_command(LoaderProgram("mysql", "mysql"), target, Path("options.cnf"), "shop")
    assert command[1:8] == ["--defaults-file=options.cnf", "--host", "127.0.0.1", "--port", "3307", "--user", "u"]
    assert not any("secret" in part for part in command)


def test_a_loader_that_is_not_there_is_refused(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    assert find_loader("auto", needs_client=False) is None
    with pytest.raises(ConfigError, match="myloader is not on this machine"):
        find_loader("myloader", needs_client=False)
