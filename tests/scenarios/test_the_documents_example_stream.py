"""The event stream that the protocol's description shows (``documents/ticdc_open_protocol``), record by record."""

import sqlite3

from applier.model.position import Ts
from tests.builders.stage import P0, P1, Stage

CREATED, INSERTED, CHANGED, PROMISED = 415508856908021766, 415508878783938562, 415508881418485761, 415508881038376963
LATER = CHANGED + 1


def created():
    statement = "CREATE TABLE test.t1(id int primary key, val varchar(16))"
    return {"ts": CREATED, "scm": "test", "tbl": "t1", "t": 2}, {"q": statement, "t": 3}


def changed(ts, **images):
    """A row event of the oldest producers: ``h``, and no flags."""

    def image(key, val):
        return {"id": {"t": 3, "h": True, "v": key}} | ({} if val is None else {"val": {"t": 15, "v": val}})

    return {"ts": ts, "scm": "test", "tbl": "t1", "t": 1}, {name: image(*values) for name, values in images.items()}


def promised(ts):
    return {"ts": ts, "t": 3}, b""


def example(tmp_path):
    stage = Stage(tmp_path, P0, P1, tables=())
    stage.everywhere(({"ts": CREATED - 1, "scm": "test", "t": 2}, {"q": "CREATE DATABASE test", "t": 1}))
    stage.everywhere(created(), promised(CREATED))
    stage.write(P0, changed(INSERTED, u=(1, "YWE=")))
    stage.write(P1, changed(INSERTED, u=(2, "YmI=")))
    stage.write(P0, changed(INSERTED, u=(3, "Y2M=")), changed(INSERTED, u=(3, "Y2M=")))
    stage.write(P0, changed(CHANGED, d=(1, None)))
    stage.write(P1, changed(CHANGED, d=(2, None)))
    stage.write(P0, changed(CHANGED, u=(3, "ZGQ=")), changed(CHANGED, u=(4, "ZWU=")))
    return stage.everywhere(promised(PROMISED))


def rows(tmp_path):
    with sqlite3.connect(tmp_path / "replica.db") as connection:
        return sorted(connection.execute('SELECT id, val FROM "test.t1"').fetchall())


def test_the_example_is_applied_up_to_its_last_resolved_event(tmp_path):
    """The second transaction lies above the resolved ts of logs 13 and 14, so it is not to be seen yet."""
    result = example(tmp_path).catch_up()
    assert result.checkpoint_ts == Ts(PROMISED)
    assert rows(tmp_path) == [(1, "YWE="), (2, "YmI="), (3, "Y2M=")]


def test_the_second_transaction_follows_with_the_next_resolved_event(tmp_path):
    stage = example(tmp_path)
    stage.everywhere(promised(LATER)).catch_up()
    assert rows(tmp_path) == [(3, "ZGQ="), (4, "ZWU=")]
