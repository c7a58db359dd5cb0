"""Where a new replica begins, and what must be recorded before it does."""

from dataclasses import replace

import pytest

from applier.model.errors import NeedsOperator
from applier.model.position import DIGITS, NO_TS, Ts
from applier.replica.context import Components
from applier.replica.starting_ts import choose_start, refuse_future
from applier.sinks.loaded_dump import DECLARED, LoadedDump
from applier.sinks.registry import open_sink
from applier.sinks.settings import SinkSettings
from applier.sources.start import StartPoint
from applier.sources.ticdc.tso import TSO_TIMELINE, physical_ms
from tests.rig.fake_source import FakeSource

TS = Ts(458173202432000001)
DUMP = LoadedDump(start_ts=TS, directory="/gone/dump", loader="applier", loaded_by="me@here")


class Log(FakeSource):
    """A binlog: its settings name a start, and it remembers what it was asked for."""

    def __init__(self):
        super().__init__([])
        self.asked = []

    @property
    def position(self):
        return self

    def start_point(self, loaded=NO_TS, declared=""):
        self.asked.append((loaded, declared))
        return StartPoint(loaded or Ts(77), "state")


@pytest.fixture
def begun(tmp_path):
    with open_sink(SinkSettings(url=f"sqlite:///{tmp_path}/replica.db")) as sink:
        sink.migrate()
        sink.acquire(take_over=False)
        yield lambda source: Components(source, sink, None)


@pytest.mark.parametrize(("source", "configured"), [(FakeSource([]), TS), (Log(), NO_TS)], ids=["topics", "binlog"])
def test_a_start_position_without_a_recorded_load_stops(begun, source, configured):
    with pytest.raises(NeedsOperator, match="no load is recorded") as caught:
        choose_start(configured, begun(source))
    assert (caught.value.exit_code, "`applier load DUMP`" in caught.value.remedy) == (6, True)
    assert "`applier load --declared`" in caught.value.remedy


def test_a_replica_of_topics_without_a_start_position_begins_with_an_empty_upstream(begun):
    assert choose_start(NO_TS, begun(FakeSource([]))) == StartPoint(NO_TS)


@pytest.mark.parametrize("loader", ["applier", DECLARED])
def test_a_recorded_load_is_the_start_whatever_the_settings_of_a_binlog_name(begun, loader):
    components, source = begun(Log()), Log()
    components = replace(components, source=source)
    components.sink.bookkeeping.loaded_dump.declare(replace(DUMP, loader=loader))
    assert choose_start(NO_TS, components) == StartPoint(TS, "state")
    assert source.asked == [(TS, "/gone/dump" if loader == DECLARED else "")]


def test_a_replica_that_has_begun_asks_neither_settings_nor_loads(begun):
    components = begun(Log())
    components.sink.begin(Ts(5), "state")
    assert choose_start(NO_TS, components) == StartPoint(Ts(5))
    assert components.source.asked == []


NOW_MS = physical_ms(TS)


@pytest.mark.parametrize("ahead_ms", [0, 3_600_000])
def test_a_checkpoint_of_now_is_no_checkpoint_of_the_future(ahead_ms):
    refuse_future(TSO_TIMELINE, TS, NOW_MS - ahead_ms)


def test_a_checkpoint_of_the_future_stops_and_a_place_in_a_log_has_no_time():
    with pytest.raises(NeedsOperator, match="in the future") as caught:
        refuse_future(TSO_TIMELINE, TS, NOW_MS - 3_600_001)
    assert "`applier replicas reset`" in caught.value.remedy
    refuse_future(DIGITS, TS, 0)
