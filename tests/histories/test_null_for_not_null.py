"""canal-json of some producers has NULL for the text 'null' (canal_json_and_simple.md 2.4): where the sink sees it, the message says so."""

import pytest

from applier.demo.simulator.producer.options import LogRecord
from applier.model.errors import RowRefused
from applier.model.position import Stream
from tests.builders.canal_json import TS, ddl, dump, row, watermark
from tests.rig.fake_source import FakeSource
from tests.rig.local_replica import sqlite_replica

CREATED = [
    dump(ddl("CREATE DATABASE `d`", TS)),
    dump(ddl("CREATE TABLE `t` (`a` VARCHAR(9) PRIMARY KEY, `b` VARCHAR(9) NOT NULL)", TS + 1, table="t")),
]


def test_a_null_for_a_column_that_is_not_null_names_the_issue_of_the_producer(tmp_path):
    log = [*CREATED, dump(row(ts=TS + 2)), watermark(TS + 3)]
    source = FakeSource(LogRecord(Stream("feed", 0), None, value, 1_000) for value in log)
    with pytest.raises(RowRefused, match="pingcap/ticdc issue 3958") as caught:
        sqlite_replica(tmp_path, source).catch_up()
    assert (caught.value.facts["table"], caught.value.facts["offset"]) == ("d.t", 2)
