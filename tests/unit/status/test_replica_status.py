"""Where a replica stands, put together and written for people."""

import io
from dataclasses import replace
from datetime import UTC, datetime

from rich.console import Console

from applier.cli.status import View, as_lines, render_status
from applier.model.events import DdlEvent, DdlIdentity
from applier.model.position import Listing, Offset, PartitionExtent, Stream, StreamPosition, Ts
from applier.sinks.ledger_entry import DdlState, LedgerEntry
from applier.sinks.overview import Overview, Owner, OwnerState, OwnerView
from applier.sinks.progress import Fence, Progress
from applier.sources.kit import SourceAnswer
from applier.sources.ticdc.tso import TSO_TIMELINE
from applier.status.replica_status import Findings, as_object, build_status, verdict_of

NOON_MS = 1_700_000_000_000
A, W, LATER = (Ts(NOON_MS + ms << 18) for ms in (0, 1_500, 2_500))
NOW_S = NOON_MS / 1000 + 4
FEED = [Stream("feed", partition) for partition in range(4)]
BEGAN = datetime(2023, 11, 14, 22, tzinfo=UTC)
OWNER = OwnerView(owner=Owner(epoch=3, host="box", process=42, started_at=BEGAN, heartbeat_at=BEGAN), silent_s=0.44, state=OwnerState.ALIVE)
PROGRESS = Progress(
    fence=Fence(3, 17),
    checkpoint_ts=A,
    start_ts=Ts(5),
    positions={
        FEED[0]: StreamPosition(next_offset=Offset(1_200), resolved_ts=LATER),
        FEED[1]: StreamPosition(next_offset=Offset(7), resolved_ts=W),
    },
    topic_ids={},
    known_tables=frozenset(),
)
OVERVIEW = Overview(progress=PROGRESS, updated_at=BEGAN, owner=OWNER, undecided=(), quarantined=0)
EXTENTS = {stream: PartitionExtent(Offset(0), Offset(end)) for stream, end in zip(FEED, (1_300, 7, 9, 0), strict=True)}
LIVE = {
    "phase": "writing",
    "is_ready": False,
    "rows": 1200,
    "transactions": 2,
    "ddls": 1,
    "uptime_s": 61.0,
    "retries": {"RetryableSinkError": 2},
    "current_ddl": None,
    "stall": {"stream": "feed/1", "silent_s": 75.0},
}


def replica_status(overview=OVERVIEW, listing=None, problem="", live=None, partitions=None):
    found = Findings(overview=overview, source=SourceAnswer(listing, TSO_TIMELINE), source_problem=problem, live=live)
    return build_status("replica", "sqlite:///r.db", found, NOW_S, partitions)


def undecided(error=""):
    ddl = DdlEvent(commit_ts=W, schema="shop", table="t", query="ALTER TABLE `t`\nADD a INT", ddl_type=5)
    identity = DdlIdentity(W, ddl.name.fold(), None)
    return LedgerEntry(identity=identity, ddl=ddl, state=DdlState.INTENT, before="{}", began_at=BEGAN, error=error)


def test_the_stream_with_the_smallest_resolved_ts_holds_back_the_watermark():
    shown = as_object(replica_status(listing=Listing(EXTENTS)))
    assert (shown["holding_stream"], shown["watermark"], shown["watermark_time"]) == ("feed/1", W, "2023-11-14T22:13:21.500+00:00")
    assert [name for name, stream in shown["streams"].items() if stream["holds_watermark"]] == ["feed/1"]


def test_streams_with_the_same_resolved_ts_do_not_hold_back_the_watermark():
    same = dict.fromkeys(FEED, StreamPosition(next_offset=Offset(1), resolved_ts=W))
    assert replica_status(replace(OVERVIEW, progress=replace(PROGRESS, positions=same))).holding_stream is None


def test_programs_get_exact_timestamps_with_their_times_and_lags():
    shown = as_object(replica_status(listing=Listing(EXTENTS)))
    assert (shown["checkpoint_ts"], shown["checkpoint_time"], shown["lag_s"]) == (A, "2023-11-14T22:13:20.000+00:00", 4.0)
    assert shown["streams"]["feed/0"] == {
        "next_offset": 1_200,
        "end_offset": 1_300,
        "behind": 100,
        "resolved_ts": LATER,
        "resolved_time": "2023-11-14T22:13:22.500+00:00",
        "lag_s": 1.5,
        "holds_watermark": False,
        "applied_ts": 0,
        "applied_time": None,
    }
    assert shown["owner"] == {
        "state": "alive",
        "host": "box",
        "process": 42,
        "epoch": 3,
        "since": "2023-11-14T22:00:00+00:00",
        "silent_s": 0.4,
    }


def test_a_partition_that_was_not_read_is_shown_if_it_holds_records():
    streams = as_object(replica_status(listing=Listing(EXTENTS)))["streams"]
    assert list(streams) == ["feed/0", "feed/1", "feed/2"]
    assert (streams["feed/2"]["next_offset"], streams["feed/2"]["behind"], streams["feed/2"]["resolved_time"]) == (None, 9, None)


def test_a_partition_that_counts_no_more_neither_holds_the_watermark_nor_is_shown():
    shown = replica_status(listing=Listing(EXTENTS), partitions={"feed": 1})
    assert (shown.watermark, shown.holding_stream) == (LATER, None)
    assert [each.stream for each in shown.streams] == FEED[:1]
    assert replica_status(listing=Listing(EXTENTS), partitions={"other": 1}) == replica_status(listing=Listing(EXTENTS))


def test_without_kafka_everything_else_is_shown():
    lines = as_lines(replica_status(problem="Kafka does not answer: metadata of feed"))
    assert lines == [
        "health      healthy",
        "replica     replica in sqlite:///r.db",
        f"checkpoint  2023-11-14 22:13:20.000Z (ts {A}), 4.0 s behind",
        "began with  no load is recorded",
        "watermark   2023-11-14 22:13:21.500Z, held back by feed/1",
        "owner       process 42 on box since 2023-11-14 22:00:00Z, heartbeat 0.4 s ago, alive",
        "kafka       Kafka does not answer: metadata of feed: the end offsets are unknown",
        "",
        "stream  next offset  end  behind  resolved                    lag",
        "feed/0        1,200    ?       ?  2023-11-14 22:13:22.500Z  1.5 s",
        "feed/1            7    ?       ?  2023-11-14 22:13:21.500Z  2.5 s  holds back the watermark",
    ]


def test_a_replica_that_no_run_has_started_is_shown_as_such():
    nothing = Overview(progress=None, updated_at=None, owner=None, undecided=(), quarantined=0)
    assert as_lines(replica_status(nothing)) == [
        "health      stopped: no run owns the replica",
        "replica     replica in sqlite:///r.db",
        "checkpoint  none: no run has started this replica",
        "owner       none: no run owns the replica",
    ]
    shown = as_object(replica_status(nothing))
    assert (shown["has_begun"], shown["checkpoint_ts"], shown["checkpoint_time"], shown["owner"], shown["streams"]) == (
        False,
        0,
        None,
        None,
        {},
    )


def test_the_answer_of_the_run_is_added():
    lines = as_lines(replica_status(live=LIVE))
    assert "run         writing, catching up; 1,200 rows in 2 transactions, 1 DDL in 61 s, retries: 2" in lines
    assert "stalled     feed/1 holds back the watermark: no resolved event for 75 s" in lines


def test_statements_of_a_log_that_the_run_has_skipped_are_shown_by_kind():
    lines = as_lines(replica_status(live=LIVE | {"skipped_statements": {"excluded_rows": 1200, "user": 2}}))
    assert "skipped     statements of the log since the start of this run: 1,200 excluded_rows, 2 user" in lines


def test_a_frozen_or_dead_owner_is_shown_with_what_the_next_run_does():
    for state, words in (
        (OwnerState.FROZEN, "frozen: its lease has expired, the next run takes over"),
        (OwnerState.DEAD, "dead: its lock is free, the next run takes over at once"),
    ):
        lines = as_lines(replica_status(replace(OVERVIEW, owner=replace(OWNER, state=state))))
        assert any(line.endswith(words) for line in lines)


def test_a_ddl_of_a_living_run_is_running_and_one_that_was_left_is_unfinished():
    since = "since 2023-11-14 22:00:00Z"

    def line(entry, owner):
        lines = as_lines(replica_status(replace(OVERVIEW, undecided=(entry,), owner=owner)))
        return next(line for line in lines if line.startswith("DDL"))

    assert line(undecided(), OWNER) == f"DDL         running {since}: ALTER TABLE `t` ADD a INT"
    assert line(undecided(), None) == f"DDL         unfinished {since}: ALTER TABLE `t` ADD a INT"
    beside = replace(undecided(), state=DdlState.BACKGROUND)
    assert line(beside, OWNER) == f"DDL         running in the background {since}: ALTER TABLE `t` ADD a INT"
    assert line(undecided("lock wait"), OWNER) == f"DDL         failed (lock wait), unfinished {since}: ALTER TABLE `t` ADD a INT"


def test_one_that_was_left_comes_with_the_command_that_settles_it():
    settle = f"            to settle it: applier ddl done|retry|skip --ts {W} --table shop.t"
    assert settle in as_lines(replica_status(replace(OVERVIEW, undecided=(undecided(),), owner=None)))
    assert settle not in as_lines(replica_status(replace(OVERVIEW, undecided=(undecided(),), owner=OWNER)))


def test_a_quarantine_that_is_not_empty_is_shown():
    assert "quarantine  2 events to settle: applier quarantine list" in as_lines(replica_status(replace(OVERVIEW, quarantined=2)))


def test_a_terminal_gets_the_same_words_in_a_table():
    console, status = Console(file=io.StringIO(), width=160), replica_status(listing=Listing(EXTENTS), live=LIVE)
    console.print(render_status(status, verdict_of(status), View(160)))
    text = console.file.getvalue()
    for words in ("held back by feed/1", "heartbeat 0.4 s ago, alive", "1,300", "not read", "holds back the watermark", "catching up"):
        assert words in text
