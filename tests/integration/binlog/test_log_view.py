"""``applier status`` asks the primary where it writes, and reads no event of its log."""

from contextlib import closing

import msgspec
import pytest

from applier.model.errors import SourceError
from applier.model.position import Ts
from applier.sources.binlog.kit import LogView
from applier.sources.binlog.position import STREAM, BinlogPosition, split_file_name
from applier.sources.binlog.server import Server
from applier.sources.binlog.settings import BinlogSettings
from applier.sources.binlog.state import EndedGroup, SourceState

TIME_MS = 1_700_000_000_000


def state_of(primary, server):
    name, _, position = primary.place().partition(":")
    base_name, number = split_file_name(name)
    place = BinlogPosition(1, number, int(position)).number
    return SourceState(
        is_mariadb=server.is_mariadb,
        server=server.identity(),
        generation=1,
        base_name=base_name,
        position=place,
        gtid_set=primary.gtid(),
        last=EndedGroup(place - 1, place, "", TIME_MS),
    )


def test_a_replica_is_as_far_behind_as_the_server_has_written_since(primary):
    settings = BinlogSettings(url=primary.url)
    with Server(settings) as server:
        state = state_of(primary, server)
    with closing(LogView(settings)) as view:
        listing, timeline, status = view.ask(state.text())
        assert (status.behind_bytes, status.end, status.gtid_set) == (0, status.position, primary.gtid())
        assert listing.extents[STREAM].end == state.position
        assert timeline.time_ms(Ts(state.position)) == timeline.now_ms
        primary.run("CREATE DATABASE behind", "FLUSH BINARY LOGS", "DROP DATABASE behind")
        listing, timeline, status = view.ask(state.text())
        assert status.end == primary.place()
        assert 100 < status.behind_bytes < 5_000
        assert timeline.text(Ts(state.position)) == status.position


def test_another_server_is_not_taken_for_the_one_that_was_followed(primary):
    settings = BinlogSettings(url=primary.url)
    with Server(settings) as server:
        state = state_of(primary, server)
    other = msgspec.structs.replace(state, server="elsewhere")
    with closing(LogView(settings)) as view, pytest.raises(SourceError, match="another server answers"):
        view.ask(other.text())
