"""Streams written by hand: a log from (stream, event) pairs, each event its own record, and what the replica then holds."""

import sqlite3

from applier.demo.simulator.producer.options import LogRecord
from applier.model.position import Stream
from tests.builders.wire import head, record

ONE, TWO = Stream("feed", 0), Stream("feed", 1)
KEY, UNIQUE, PLAIN, STRING_KEY = 11, 19, 65, 2


def log_of(*placed):
    return [LogRecord(stream, *record(event), 1_000 + number) for number, (stream, event) in enumerate(placed)]


def ddl(ts, query, table="orders", t=3):
    return head(ts, table=table, t=2), {"q": query, "t": t}


def row(ts, table="orders", *, deleted=False, **columns):
    return head(ts, table=table), {"d" if deleted else "u": columns}


def resolved(ts):
    return {"ts": ts, "t": 3}, b""


def everywhere(event):
    return [(ONE, event), (TWO, event)]


def rows_of(tmp_path, table="shop.orders"):
    with sqlite3.connect(tmp_path / "replica.db") as connection:
        return sorted(connection.execute(f'SELECT * FROM "{table}"').fetchall())


CREATE_SCHEMA = (head(5, table="", t=2), {"q": "CREATE DATABASE shop", "t": 1})
