"""What is read of a dump's directory: its timestamp, its files, and what cannot be loaded."""

import pytest

from applier.dump.inventory import FileKind, inventory_of
from applier.model.errors import ConfigError
from applier.model.events import TableName
from applier.sources.changefeed import moment_of
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
    with pytest.raises(ConfigError, match="dumps of different times"):
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


def test_one_file_is_a_dump(tmp_path):
    (tmp_path / "x.sql").write_text(HEADER.format(ts=TS) + "-- Host: h    Database: shop\nCREATE TABLE `orders` (id INT);\n")
    (tmp_path / "other.sql").touch()
    assert moment_of(tmp_path / "x.sql").start_ts == TS
    inventory = inventory_of(tmp_path / "x.sql")
    assert [(file.kind, file.holds) for file in inventory.files] == [(FileKind.WHOLE, (TableName("shop", "orders"),))]
