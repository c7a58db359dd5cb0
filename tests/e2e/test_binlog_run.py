"""``applier run`` on a binlog: what is committed on the primary is visible in the sink soon after, and SIGTERM ends it in good order."""

import sqlite3
import time
from contextlib import closing

import pytest

from tests.rig.oltp import MONEY, TABLES, TOTAL, oltp_load
from tests.rig.primary import own_primary
from tests.rig.primary_comparison import differences_from
from tests.rig.program import daemon, run, write_binlog_config
from tests.rig.totals import watching_totals
from tests.rig.upstream import fence_of

pytestmark = [
    pytest.mark.slow,
    pytest.mark.usually_on("mariadb", reason="what a daemon does beside its reading is the same on each server"),
]
PROBES = 12
SOON_S = 5.0
"""A bound for a busy machine; `make bench` measures the latency."""


def seconds_until_visible(primary, file, number):
    primary.run(f"INSERT INTO probe.probes VALUES ({number})")
    began = time.monotonic()
    with closing(sqlite3.connect(file)) as connection:
        while not is_visible(connection, number):
            assert time.monotonic() - began < 60, f"the probe {number} does not arrive"
            time.sleep(0.01)
    return time.monotonic() - began


def is_visible(connection, number):
    try:
        return connection.execute('SELECT 1 FROM "probe.probes" WHERE id = ?', (number,)).fetchall() != []
    except sqlite3.OperationalError:  # the table is not there yet
        return False


def test_a_daemon_shows_what_the_primary_commits_within_seconds_under_load(database_kind, tmp_path):
    url = f"sqlite:///{tmp_path}/replica.db"
    with own_primary(database_kind) as primary:
        config = write_binlog_config(tmp_path, primary=primary.url, start=primary.place(), url=url)
        primary.run("CREATE DATABASE probe", "CREATE TABLE probe.probes (id INT PRIMARY KEY)")
        with daemon(config) as program, watching_totals(url, MONEY) as (money,):
            assert program.reaches(lambda: fence_of(url)[1] > 0), program.said()
            with oltp_load(primary):
                seconds_until_visible(primary, tmp_path / "replica.db", -1)
                waits = sorted(seconds_until_visible(primary, tmp_path / "replica.db", number) for number in range(PROBES))
            print(f"visible after {waits[PROBES // 2]:.2f} s, at most {waits[-1]:.2f} s")
            ended = program.stop()
            assert ended.code == 0, ended.stderr
            assert program.orphans() == []
        assert waits[PROBES // 2] < SOON_S
        assert money.torn(TOTAL) == []
        primary.run("DROP DATABASE probe")
        assert run(config).code == 0
        assert differences_from(primary, url, {table.name: table for table in TABLES}) == []
