"""The SQLite sink's translator against an oracle that alters its tables in its own way: same tables, indexes and rows."""

import sqlite3
from contextlib import closing

import pytest

from applier.demo.simulator.history import History, HistoryOptions
from applier.demo.simulator.sqlite_oracle import write_rows
from tests.rig.oracle import SqliteOracle, compare, run_translated
from tests.rig.seeds import seeds


@pytest.mark.parametrize("seed", seeds(range(40), daily=15))
def test_translated_ddl_leaves_what_the_oracle_has(seed, tmp_path):
    path = tmp_path / "sink.db"
    with SqliteOracle(tmp_path / "oracle.db") as oracle, closing(sqlite3.connect(path, isolation_level=None)) as sink:
        sink.executescript("PRAGMA legacy_alter_table = ON; PRAGMA synchronous = OFF; PRAGMA journal_mode = MEMORY")
        for step in History(seed, HistoryOptions(transactions=40, ddl_share=0.4)):
            oracle.execute(step)
            write_rows(sink, step.rows, with_virtual=False)
            for ddl in step.ddls:
                run_translated(sink, ddl, step.ts)
        assert compare(oracle, f"sqlite:///{path}") == []
