"""The feed of one case of ``ddl_types``: its tables are made, ``t`` gets a row in each partition, then the statement of the case comes."""

import re
from contextlib import suppress

from applier.demo.simulator.producer import LogRecord
from applier.model.position import Stream
from tests.builders.wire import column, head, record, text
from tests.rig.ddl_types import TypeCase
from tests.rig.fake_source import FakeSource

SCHEMA = "lab"
STREAMS = (Stream("feed", 0), Stream("feed", 1))
_KEY, _PLAIN = 11, 65
_MADE = re.compile(r"(?:TABLE|VIEW|ON) (?:`\w+`\.)?`(\w+)`")


def feed_of(case: TypeCase) -> FakeSource:
    """Return a source that holds the case, each DDL on every partition."""
    feed = _Feed()
    feed.ddl(f"CREATE DATABASE `{SCHEMA}`", "", 1)
    for statement in case.before:
        feed.prepare(statement)
    if any(statement.startswith("CREATE TABLE `t` (`id` INT") for statement in case.before):
        feed.fill()
    feed.ddl(case.ddl, case.table, case.number)
    feed.resolve()
    return FakeSource(feed.log)


class _Feed:
    def __init__(self) -> None:
        self.log: list[LogRecord] = []
        self._ts = 100

    def prepare(self, statement: str) -> None:
        found = _MADE.search(statement)
        self.ddl(statement, found[1] if found else "", 3 if found else 1)

    def ddl(self, query: str, table: str, number: int) -> None:
        self._ts += 1
        named = re.search(r"DATABASE (?:IF EXISTS )?`(\w+)`|TABLE `(lab_1)`", query)
        schema = SCHEMA
        with suppress(TypeError):
            schema = named[1] or named[2]  # type: ignore[index]
        self._write(STREAMS, head(self._ts, schema=schema, table=table, t=2), {"q": query, "t": number})

    def fill(self) -> None:
        self._ts += 1
        for key in (1, 11):
            images = {"id": column(3, _KEY, key), "v": column(3, _PLAIN, key), "w": text(f"row {key}")}
            self._write(STREAMS[:1], head(self._ts, schema=SCHEMA, table="t"), {"u": images})

    def resolve(self) -> None:
        self._ts += 5
        self._write(STREAMS, {"ts": self._ts, "t": 3}, b"")

    def _write(self, streams, key, value) -> None:
        self.log += [LogRecord(stream, *record((key, value)), 1000 + self._ts) for stream in streams]
