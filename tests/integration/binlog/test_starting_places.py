"""A new replica begins at a position, at a GTID set, now, or at the place of a dump."""

import subprocess
import time

import pytest
from sqlalchemy import make_url

from applier.demo.simulator.history import History, HistoryOptions
from applier.demo.simulator.table_family import USUAL_FAMILIES, TableFamily
from applier.sources.binlog.settings import BinlogSettings
from tests.rig.binlog_replica import BinlogReplica
from tests.rig.database import PASSWORD, USER
from tests.rig.oltp import oltp_load
from tests.rig.primary_comparison import differences_from, execute_history, tables_of

pytestmark = pytest.mark.timeout(300)
HISTORY = History(13, HistoryOptions(transactions=40))
DUMPED = History(13, HistoryOptions(transactions=40, families=USUAL_FAMILIES - {TableFamily.TYPES}))
"""A dump writes a FLOAT with six digits."""
SYSTEM = {"information_schema", "mysql", "performance_schema", "sys"}


def command(program: str, url: str, *options: str) -> list[str]:
    parsed = make_url(url)
    return [program, f"--host={parsed.host}", f"--port={parsed.port}", f"--user={USER}", f"--password={PASSWORD}", *options]


@pytest.mark.parametrize("start", ["position", "gtid", "now"])
def test_a_new_replica_begins_where_it_is_told_to(primary, sqlite_sink, start):
    place = {"position": primary.place(), "gtid": f"gtid:{primary.gtid()}", "now": "now"}[start]
    replica = BinlogReplica(sqlite_sink, BinlogSettings(url=primary.url, start=place))
    if start == "now":
        replica.catch_up()
    execute_history(primary, HISTORY)
    replica.catch_up()
    assert differences_from(primary, sqlite_sink, tables_of(HISTORY)) == []


@pytest.mark.parametrize("last", ["INSERT INTO i.t VALUES (1)", "ALTER TABLE i.t ADD COLUMN b INT"], ids=["rows", "ddl"])
def test_a_replica_that_starts_again_is_up_to_date_at_once_where_nothing_was_written_since(primary, sqlite_sink, last):
    replica = BinlogReplica(sqlite_sink, BinlogSettings(url=primary.url, start=primary.place()))
    primary.run("CREATE SCHEMA i", "CREATE TABLE i.t (a INT PRIMARY KEY)", last)
    first = replica.catch_up()
    again = replica.catch_up()
    assert (again.checkpoint_ts, again.ddls) == (first.checkpoint_ts, 0)


@pytest.mark.on_one_server("mariadb", reason="the client programs of the tests are MariaDB's")
def test_a_replica_continues_a_dump_that_was_taken_under_load(primary, mariadb_sink, tmp_path):
    execute_history(primary, DUMPED)
    dump = tmp_path / "dump.sql"
    with oltp_load(primary):
        schemas = [name for (name,) in primary.ask("SHOW DATABASES") if name not in SYSTEM]
        options = ["--single-transaction", "--master-data=2", "--hex-blob", "--databases", *schemas]
        with dump.open("wb") as file:
            subprocess.run(command("mariadb-dump", primary.url, *options), check=True, stdout=file, timeout=60)
    with dump.open("rb") as file:
        subprocess.run(command("mariadb", mariadb_sink), check=True, stdin=file, timeout=60)
    replica = BinlogReplica(mariadb_sink, BinlogSettings(url=primary.url, start=f"dump:{dump}"))
    replica.catch_up()
    assert differences_from(primary, mariadb_sink, tables_of(DUMPED)) == []


def test_a_catch_up_ends_at_a_time(primary, sqlite_sink):
    replica = BinlogReplica(sqlite_sink, BinlogSettings(url=primary.url, start=primary.place()))
    primary.run("CREATE SCHEMA w", "CREATE TABLE w.t (a INT PRIMARY KEY)", "INSERT INTO w.t VALUES (1)")
    # MariaDB's events name whole seconds.
    time.sleep(2.1)
    between_ms = int(time.time() * 1000) - 1000
    primary.run("INSERT INTO w.t VALUES (2)")
    primary.rotate()
    primary.run("INSERT INTO w.t VALUES (3)")
    assert replica.catch_up(until_time_ms=between_ms).transactions == 1
    assert replica.catch_up(until_time_ms=between_ms).transactions == 0
    assert replica.catch_up().transactions == 2
