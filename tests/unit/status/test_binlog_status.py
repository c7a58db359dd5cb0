"""What ``applier status`` says of a replica of a binlog."""

from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime

from msgspec import structs

from applier.cli.status import as_lines
from applier.model.position import Listing, Offset, PartitionExtent, StreamPosition, Ts
from applier.sinks.overview import Overview
from applier.sinks.progress import Fence, Progress
from applier.sources.binlog.kit import LogView, bytes_between
from applier.sources.binlog.position import STREAM, BinlogPosition
from applier.sources.binlog.server import LogFile
from applier.sources.binlog.settings import BinlogSettings
from applier.sources.binlog.state import SourceState
from applier.sources.binlog.timeline import StoredTimeline, read_state
from applier.sources.kit import LogStatus, SourceAnswer
from applier.sources.ticdc.tso import TSO_TIMELINE
from applier.status.replica_status import Findings, as_object, build_status
from applier.status.run_document import run_document
from applier.telemetry.metric import GAUGES
from applier.telemetry.run_state import RunState

NOON_MS = 1_700_000_000_000
NOW_S = NOON_MS / 1000 + 75
PLACE, END = BinlogPosition(0, 42, 1_000), BinlogPosition(0, 43, 500)
PROGRESS = Progress(
    fence=Fence(3, 17),
    checkpoint_ts=Ts(PLACE.number),
    start_ts=Ts(5),
    positions={STREAM: StreamPosition(next_offset=Offset(PLACE.number), resolved_ts=Ts(PLACE.number))},
    topic_ids={},
    known_tables=frozenset(),
)
OVERVIEW = Overview(progress=PROGRESS, updated_at=datetime(2023, 11, 14, tzinfo=UTC), owner=None, undecided=(), quarantined=0)
TIMELINE = StoredTimeline(base_name="mariadb-bin", known_at=PLACE.number, known_ms=NOON_MS)
LOG = LogStatus(primary="db:3306", position="mariadb-bin.000042:1000", gtid_set="0-1-7")


def shown(source, problem=""):
    found = Findings(overview=OVERVIEW, source=source, source_problem=problem, live=None)
    return build_status("replica", "sqlite:///r.db", found, NOW_S, None)


def test_a_replica_of_a_binlog_is_shown_by_its_place_its_gtid_set_and_how_long_it_is_behind():
    listing = Listing({STREAM: PartitionExtent(Offset(4), Offset(END.number))})
    log = replace(LOG, end="mariadb-bin.000043:500", behind_bytes=1_500)
    status = shown(SourceAnswer(listing, replace(TIMELINE, end=END.number, now_ms=int(NOW_S * 1000)), log))
    lines = as_lines(status)
    assert "checkpoint  2023-11-14 22:13:20.000Z (mariadb-bin.000042:1000), 75 s behind" in lines
    assert "position    mariadb-bin.000042:1000; db:3306 is at mariadb-bin.000043:500, 1,500 bytes ahead" in lines
    assert "GTID set    0-1-7" in lines
    assert not any(line.startswith(("watermark", "stream")) for line in lines)
    found = as_object(status)
    assert (found["lag_s"], found["log"]["gtid_set"], found["log"]["behind_bytes"]) == (75.0, "0-1-7", 1_500)
    assert found["streams"]["binlog/0"]["behind"] is None  # between two files lie four billion numbers, and no records


def test_a_replica_that_is_at_the_end_is_up_to_date_however_old_the_last_transaction_is():
    listing = Listing({STREAM: PartitionExtent(Offset(4), Offset(PLACE.number))})
    status = shown(SourceAnswer(listing, replace(TIMELINE, end=PLACE.number, now_ms=int(NOW_S * 1000)), LOG))
    assert status.lag_s == 0


def test_without_the_primary_the_stored_place_is_shown():
    lines = as_lines(shown(SourceAnswer(None, TIMELINE, LOG), "the server of the binlog does not answer: end"))
    assert "position    mariadb-bin.000042:1000" in lines
    assert "primary     the server of the binlog does not answer: end: the end of its binlog is unknown" in lines


def test_bytes_between_two_files_count_whole_files_only_once():
    files = [LogFile("b", 41, 900), LogFile("b", 42, 1_200), LogFile("b", 43, 300)]
    assert bytes_between(files, PLACE, END) == 200 + 500
    assert bytes_between(files, END, END) == 0
    assert bytes_between(files, BinlogPosition(0, 7, 50), BinlogPosition(0, 41, 60)) == 10


def test_a_state_of_a_newer_program_is_not_shown():
    assert read_state('{"version": 99}') is None
    assert StoredTimeline.of(read_state(None)).text(Ts(PLACE.number)) == "000042:1000"
    assert StoredTimeline().time_ms(Ts(PLACE.number)) is None


def test_a_run_tells_the_place_and_the_gtid_set_of_a_binlog_to_status_page_and_metrics():
    stored = SourceState(is_mariadb=True, server="1", generation=0, base_name="mariadb-bin", position=PLACE.number, gtid_set="0-1-7")
    state = RunState(
        replica="r",
        started_at_s=NOW_S,
        began_s=0.0,
        progress_s=0.0,
        checkpoint_ts=Ts(PLACE.number),
        timeline=TIMELINE,
        source_state=stored.text(),
    )
    counted = replace(state, counts=replace(state.counts, skipped_statements=(("excluded_rows", 3),)))
    assert run_document(counted, unix_s=NOW_S, is_alive=True)["skipped_statements"] == {"excluded_rows": 3}
    found = run_document(state, unix_s=NOW_S, is_alive=True)
    assert (found["checkpoint"], found["gtid_set"], found["lag_s"]) == ("mariadb-bin.000042:1000", "0-1-7", 75.0)
    shown = {one.name: list(one.samples(state, NOW_S)) for one in GAUGES if one.name.startswith("applier_checkpoint_log")}
    assert shown == {"applier_checkpoint_log_file": [((), 42.0)], "applier_checkpoint_log_position": [((), 1000.0)]}
    of_topics = replace(state, timeline=TSO_TIMELINE, source_state=None)
    assert run_document(of_topics, unix_s=NOW_S, is_alive=True)["gtid_set"] is None
    assert not any(list(one.samples(of_topics, NOW_S)) for one in GAUGES if one.name.startswith("applier_checkpoint_log"))


def test_files_that_prepared_transactions_still_need_are_shown():
    earlier = BinlogPosition(0, 40, 77).number
    settings = BinlogSettings(url="mysql+pymysql://nobody@nowhere/")
    state = SourceState(
        is_mariadb=True,
        server="1",
        generation=0,
        base_name="mariadb-bin",
        position=PLACE.number,
        gtid_set="0-1-7",
        prepared={"X'61',X'',1": earlier},
    )
    with closing(LogView(settings)) as view:
        log = view.stored(state.text()).log
        nothing = view.stored(SourceState.parse(state.text().replace("\"X'61',X'',1\":" + str(earlier), "")).text()).log
        of_sink = view.stored(structs.replace(state, kept=["X'61',X'',1"]).text()).log
    assert (of_sink.oldest_file, of_sink.prepared) == ("mariadb-bin.000042", 0)
    assert (log.oldest_file, log.prepared) == ("mariadb-bin.000040", 1)
    assert (nothing.oldest_file, nothing.prepared) == ("mariadb-bin.000042", 0)
    status = shown(SourceAnswer(Listing({}), TIMELINE, log))
    assert "keep        mariadb-bin.000040 and later: 1 XA transaction prepared and not committed" in as_lines(status)
    assert as_object(status)["log"]["oldest_file"] == "mariadb-bin.000040"
