"""Where a replica begins and goes on, on both primaries: the source itself, without a replica."""

import re
import time
from contextlib import contextmanager

import pytest

from applier.model.errors import ApplierError, ConfigError, NeedsOperator, SourceError
from applier.model.position import StreamPosition
from applier.sources.binlog.decoder import BINLOG
from applier.sources.binlog.position import STREAM, BinlogPosition
from applier.sources.binlog.settings import BinlogSettings
from applier.sources.binlog.source import BinlogSource
from applier.sources.start import ReplicaPosition
from tests.rig.database import Kind
from tests.rig.primary import Primary

DEADLINE_S = 20


@contextmanager
def opened(primary: Primary, start: str = "now"):
    settings = BinlogSettings(url=primary.url, start=start)
    with BinlogSource(settings, BINLOG) as source:
        yield source


def begun(source: BinlogSource) -> str:
    """Begin at the start of the settings; return its place."""
    start = source.position.start_point()
    source.position.resume(ReplicaPosition(checkpoint_ts=start.start_ts, positions={}, state=start.state))
    return source.timeline.text(start.start_ts)


def extent_of(source: BinlogSource, place: str):
    """The extent when its last cut is at a place."""
    give_up = time.monotonic() + DEADLINE_S
    while True:
        extent = source.listing().extents[STREAM]
        last = extent.cuts[-1].offset if extent.cuts else extent.earliest
        if source.timeline.text(last) == place:
            return extent
        assert time.monotonic() < give_up, f"{source.timeline.text(last)} is not {place}"
        time.sleep(0.02)


@pytest.fixture
def filled(primary: Primary) -> Primary:
    primary.run("CREATE SCHEMA w", "CREATE TABLE w.t (a INT PRIMARY KEY)", "INSERT INTO w.t VALUES (1)")
    return primary


def test_all_starts_lead_to_the_same_place(filled, tmp_path):
    place, gtid, file = filled.place(), filled.gtid(), filled.place().partition(":")[0]
    (tmp_path / "metadata").write_text(f"SHOW MASTER STATUS:\n\tLog: {file}\n\tPos: {place.partition(':')[2]}\n\tGTID:{gtid}\n\n")
    dump = tmp_path / "dump.sql"
    dump.write_text(f"-- CHANGE MASTER TO MASTER_LOG_FILE='{file}', MASTER_LOG_POS={place.partition(':')[2]};\n")
    with opened(filled, "now") as source:
        state = source.position.start_point().state
        assert begun(source) == place
    filled.run("INSERT INTO w.t VALUES (2)", "INSERT INTO w.t VALUES (3)")
    filled.rotate()
    filled.run("INSERT INTO w.t VALUES (4)")
    for start in (place, f"gtid:{gtid}", f"dump:{tmp_path}", f"dump:{dump}"):
        with opened(filled, start) as source:
            assert source.position.start_point().state == state
            assert begun(source) == place
            extent = extent_of(source, filled.place())
            assert source.position.state_at(extent.end) is not None
            assert source.timeline.time_ms(extent.earliest) <= source.timeline.time_ms(extent.end)


def test_a_place_inside_of_a_transaction_is_refused_and_the_one_that_it_names_is_taken(filled):
    file, _, position = filled.place().partition(":")
    inside = f"{file}:{int(position) - 10}"
    with opened(filled, inside) as source, pytest.raises(SourceError) as caught:
        source.position.start_point()
    assert caught.value.facts["position"] == inside
    with opened(filled, caught.value.facts["transaction_ends_at"]) as source:
        begun(source)


@pytest.mark.parametrize("start", ["", "binlog:4", "gtid:x", "dump:/none", "binlog.999999:4", "other.000001:4"])
def test_a_start_that_means_nothing_is_refused(filled, start):
    with opened(filled, start) as source, pytest.raises(ConfigError):
        source.position.start_point()


def test_a_replica_resumes_at_any_checkpoint_with_its_executed_set(filled):
    with opened(filled) as source:
        begun(source)
        checkpoints = []
        for number in range(10, 14):
            filled.run(f"INSERT INTO w.t VALUES ({number})", f"CREATE TABLE w.t{number} (a INT PRIMARY KEY)")
            checkpoints.append((filled.place(), filled.gtid()))
        extent = extent_of(source, filled.place())
        states = {}
        for place, gtid in checkpoints:
            at = next(number for number in (extent.end, *(cut.offset for cut in extent.cuts)) if number >= extent.earliest)
            file, _, position = place.partition(":")
            at = BinlogPosition(0, BinlogPosition.of(extent.end).file, int(position)).number
            assert file == filled.place().partition(":")[0]
            # The DDL at the end has the number before its end: as long as it is not done, it is not executed.
            assert f'"{gtid}"' not in source.position.state_at(at - 1)
            states[at] = source.position.state_at(at)
            assert f'"{gtid}"' in states[at]
    for at, state in states.items():
        with opened(filled) as source:
            source.position.resume(ReplicaPosition(checkpoint_ts=at, positions={}, state=state))
            extent_of(source, filled.place())
            assert source.position.state_at(at) == state


def test_a_log_that_is_not_the_same_is_not_followed(filled):
    with opened(filled) as source:
        state = source.position.start_point().state
        begun(source)
        at = source.listing().extents[STREAM].end
    lie = re.sub(r'"last":\[(\d+)', lambda found: f'"last":[{int(found[1]) - 1}', state)
    with opened(filled) as source, pytest.raises(NeedsOperator, match="GTIDs may name other transactions") as caught:
        source.position.resume(ReplicaPosition(checkpoint_ts=at, positions={}, state=lie))
    assert caught.value.facts["kind"] == "other_log"
    lie = re.sub(r'"server":"[^"]*"', '"server":"another"', lie)
    without_gtids = re.sub(r'"gtid_set":"[^"]*"', '"gtid_set":""', lie)
    with opened(filled) as source, pytest.raises(NeedsOperator) as caught:
        source.position.resume(ReplicaPosition(checkpoint_ts=at, positions={}, state=without_gtids))
    assert caught.value.facts["kind"] == "other_server"
    positions = {STREAM: StreamPosition(next_offset=at, resolved_ts=at)}
    with opened(filled) as source:
        source.position.resume(ReplicaPosition(checkpoint_ts=at, positions=positions, state=lie))
        # By its executed set it is found again, in the next generation.
        extent = source.listing().extents[STREAM]
        assert BinlogPosition.of(extent.end).generation == 1
        assert extent.earliest == at
        assert extent.cuts[0].offset & (1 << 56) - 1 == at
        assert source.position.state_at(at) == lie  # as long as that end is not passed


def test_a_server_that_lacks_what_the_replica_has_is_refused(filled):
    with opened(filled) as source:
        state = source.position.start_point().state
    newer = re.sub(r'(\d+)"', lambda found: f'{int(found[1]) + 1000}"', re.search(r'"gtid_set":"([^"]*")', state)[1])
    state = re.sub(r'"gtid_set":"[^"]*"', f'"gtid_set":"{newer}', re.sub(r'"server":"[^"]*"', '"server":"another"', state))
    with opened(filled) as source, pytest.raises(NeedsOperator, match="lacks transactions"):
        source.position.resume(ReplicaPosition(checkpoint_ts=0, positions={}, state=state))


REQUIREMENTS = {
    "binlog_row_metadata": ("MINIMAL", "FULL"),
    "binlog_format": ("STATEMENT", "ROW"),
    "binlog_row_value_options": ("PARTIAL_JSON", ""),
}


@pytest.mark.parametrize("variable", REQUIREMENTS)
def test_a_server_that_logs_too_little_is_followed_after_the_statement_of_the_remedy(filled, variable):
    wrong, right = REQUIREMENTS[variable]
    if filled.kind is Kind.MARIADB and variable == "binlog_row_value_options":
        return  # it has no such thing
    try:
        filled.run(f"SET GLOBAL {variable} = '{wrong}'")
        with opened(filled) as source, pytest.raises(ApplierError) as caught:
            source.listing()
        assert caught.value.exit_code == 6
        filled.run(caught.value.remedy.partition(",")[0])
        with opened(filled) as source:
            begun(source)
    finally:
        filled.run(f"SET GLOBAL {variable} = '{right}'")
