"""The dump that a sink was loaded from: stored alike by all sinks, and used by the first run."""

from dataclasses import replace

import pytest

from applier.ddl import identity
from applier.model.errors import ConfigError, NeedsOperator
from applier.model.events import DdlEvent
from applier.model.position import Ts
from applier.replica.starting_ts import starting_ts
from applier.sinks.loaded_dump import LoadedDump
from applier.sinks.progress import Fence, Progress
from applier.sinks.registry import open_sink
from applier.sinks.settings import SinkSettings
from tests.integration.mysql_replica import clean
from tests.rig.database import Kind

TS = Ts(2**63 + 5)
"""Above SQLite's integers."""
DUMP = LoadedDump(start_ts=TS, directory="/dumps/ä", loader="myloader", loaded_by="me@here")


@pytest.fixture(params=["sqlite", pytest.param("mariadb", marks=pytest.mark.integration)])
def url(request, tmp_path):
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/replica.db"
        return
    server = request.getfixturevalue("databases").plain(Kind.MARIADB).url
    clean(server)
    yield server
    clean(server)


def test_a_load_is_whole_only_when_it_has_ended(url):
    with open_sink(SinkSettings(url=url, name="dumped")) as sink:
        sink.migrate()
        store = sink.bookkeeping.loaded_dump
        assert store.read() is None
        store.begin(DUMP)
        begun = store.read()
        assert (begun.start_ts, begun.directory, begun.loader, begun.loaded_by) == (TS, DUMP.directory, "myloader", "me@here")
        assert not begun.is_whole
        store.end()
        assert store.read().is_whole
        store.begin(DUMP)
        assert not store.read().is_whole
    with open_sink(SinkSettings(url=url, name="another")) as sink:
        assert sink.bookkeeping.loaded_dump.read() is None


def test_a_definition_of_a_dump_is_made_and_kept_until_the_next_load(url):
    made = DdlEvent(commit_ts=TS, schema="applier_test_shop", table="t", query="CREATE TABLE t (id INT PRIMARY KEY)", ddl_type=3)
    with open_sink(SinkSettings(url=url, name="dumped")) as sink:
        sink.migrate()
        schema = replace(made, table="", query="CREATE DATABASE IF NOT EXISTS applier_test_shop", ddl_type=1)
        for ddl in (schema, made):
            sink.load_ddl(identity(ddl), ddl)
        assert sorted((ddl.commit_ts, ddl.query) for ddl in sink.bookkeeping.statements()) == [(TS, schema.query), (TS, made.query)]
        assert [column.name for column in sink.describe([made.name])[made.name.fold()].columns] == ["id"]
        sink.bookkeeping.loaded_dump.begin(DUMP)
        assert sink.bookkeeping.statements() == []


def whole(store):
    store.begin(DUMP)
    store.end()
    return store.read()


@pytest.fixture
def store(tmp_path):
    with open_sink(SinkSettings(url=f"sqlite:///{tmp_path}/replica.db")) as sink:
        sink.migrate()
        yield sink.bookkeeping.loaded_dump


def test_a_replica_begins_at_its_dump(store):
    dump = whole(store)
    assert starting_ts(Ts(0), None, dump) == TS
    assert starting_ts(TS, None, dump) == TS
    assert starting_ts(Ts(7), None, None) == 7
    with pytest.raises(ConfigError, match="start_ts differs from that of the dump"):
        starting_ts(Ts(7), None, dump)


def test_a_half_loaded_dump_stops_a_start(store):
    store.begin(DUMP)
    with pytest.raises(NeedsOperator) as caught:
        starting_ts(Ts(0), None, store.read())
    assert "applier load '/dumps/ä' --overwrite" in caught.value.remedy


def test_a_replica_that_has_begun_keeps_its_start(store):
    progress = Progress(fence=Fence(1, 0), checkpoint_ts=Ts(9), start_ts=Ts(5), positions={}, topic_ids={}, known_tables=frozenset())
    assert starting_ts(Ts(0), progress, whole(store)) == 5
    with pytest.raises(ConfigError, match="created with"):
        starting_ts(Ts(6), progress, None)
