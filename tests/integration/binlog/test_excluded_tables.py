"""What a primary writes about tables that a replica does not have stops nothing: statements, parts of JSON values, missing metadata."""

import json
import sqlite3
from contextlib import closing

import pytest

from applier.cli.main import run
from applier.model.errors import ProtocolError
from applier.selection import TableFilter, TableSelection
from applier.sources.binlog.settings import BinlogSettings
from tests.rig.binlog_replica import BinlogReplica
from tests.rig.database import Kind

pytestmark = pytest.mark.timeout(300)
ONLY_KEPT = TableSelection(TableFilter.parse(["kept.*"]))
CHECKSUM = (
    "REPLACE INTO tools.checksums SELECT 1, COUNT(*), "
    "COALESCE(LOWER(CONV(BIT_XOR(CAST(CRC32(CONCAT_WS('#', id)) AS UNSIGNED)), 10, 16)), 0) FROM kept.t"
)


def kept(url):
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
        return connection.execute('SELECT id FROM "kept.t" ORDER BY id').fetchall()


def test_only_what_a_primary_writes_of_the_replicas_tables_stops_it(primary, sqlite_sink, tmp_path, capsys):
    began = primary.place()
    replica = BinlogReplica(sqlite_sink, BinlogSettings(url=primary.url, start=began), selection=ONLY_KEPT)
    primary.run(
        "CREATE SCHEMA kept",
        "CREATE SCHEMA tools",
        "CREATE TABLE kept.t (id INT PRIMARY KEY)",
        "CREATE TABLE tools.checksums (id INT PRIMARY KEY, this_cnt INT, this_crc CHAR(40))",
        "CREATE TABLE tools.documents (id INT PRIMARY KEY, d JSON)",
        "INSERT INTO kept.t VALUES (1)",
        """INSERT INTO tools.documents VALUES (1, '{"a": 1, "long": "enough to be worth a difference"}')""",
    )
    statements = (CHECKSUM, "USE tools", "UPDATE checksums SET this_cnt = 5 WHERE id = 1", "DELETE FROM checksums")
    of_system = "INSERT INTO mysql.time_zone VALUES (1799, 'N')", "DELETE FROM mysql.time_zone WHERE Time_zone_id = 1799"
    primary.run("SET SESSION binlog_format = STATEMENT", *statements, *of_system)
    if primary.kind is Kind.MYSQL:
        primary.run("SET SESSION binlog_row_value_options = PARTIAL_JSON", "UPDATE tools.documents SET d = JSON_SET(d, '$.a', 2)")
    try:
        primary.run("SET GLOBAL binlog_row_metadata = MINIMAL", "INSERT INTO tools.documents VALUES (2, '{}')")
    finally:
        primary.run("SET GLOBAL binlog_row_metadata = FULL")
    primary.run("INSERT INTO kept.t VALUES (2)")
    replica.catch_up()
    assert kept(sqlite_sink) == [(1,), (2,)]
    config = tmp_path / "applier.toml"
    source = f'kind = "binlog"\nurl = "{primary.url}"\ntables = ["kept.*"]'
    config.write_text(f'[source]\n{source}\n[sink]\nurl = "{sqlite_sink}"\n', encoding="utf-8")
    assert run(["inspect", "--config", str(config), "--from", began, "--json"]) == 0
    shown = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert not [one for one in shown if "error" in one]
    assert {one["table"] for one in shown if one["type"] == "row"} >= {"t", "documents"}
    primary.run("SET SESSION binlog_format = STATEMENT", "INSERT INTO kept.t SELECT 3")
    with pytest.raises(ProtocolError, match="as a statement"):
        replica.catch_up()
