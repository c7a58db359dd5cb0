"""The screen of a run, as text, at 80 and at 120 columns."""

import io
from dataclasses import replace

import pytest
from rich.console import Console

from applier.cli.display import render_run
from applier.model.position import Stream, Ts
from applier.sources.ticdc.tso import TSO_TIMELINE
from applier.telemetry.failing import Failing
from applier.telemetry.run_state import Counts, Paused, RunState, Stall, StreamsView

NOON_S = 1_700_000_000.0
CHECKPOINT = Ts(1_700_000_000_123 << 18)
WIDTHS = (80, 120)
STATE = RunState(
    timeline=TSO_TIMELINE,
    epoch=3,
    started_at_s=NOON_S - 7300,
    phase="writing",
    phase_since_s=NOON_S - 12,
    counts=Counts(records=1500, rows=123_400, transactions=1, ddls=2),
    records_total=3000,
    watermark=CHECKPOINT,
    checkpoint_ts=CHECKPOINT,
    streams=StreamsView(holding=Stream("orders-changefeed", 3)),
)


def screen(state, width, now_s=NOON_S + 3.123):
    console = Console(file=io.StringIO(), width=width, legacy_windows=False)
    console.print(render_run(state, now_s))
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def words(lines):
    return " ".join(" ".join(lines).split())


@pytest.mark.parametrize("width", WIDTHS)
def test_the_clock_of_what_is_done_now_and_that_of_the_run_are_told_apart(width):
    first, *rest = screen(STATE, width)
    assert first.partition("now")[2].split(maxsplit=1)[1] == "writing for 15 s; running for 2 h 1 min"
    assert rest == [
        "read        ━━━━━━━━━━━━━━━                1,500 of 3,000 records",
        "applied     123,400 rows in 1 transaction, 17 rows/s on average",
        "DDLs        2",
        "checkpoint  2023-11-14 22:13:20.123Z, 3.0 s behind",
        "watermark   2023-11-14 22:13:20.123Z, held back by orders-changefeed/3",
    ]


@pytest.mark.parametrize("width", WIDTHS)
def test_while_spark_starts_the_screen_says_so_and_nothing_of_a_replica_that_is_not_ours_yet(width):
    (line,) = screen(RunState(phase="waiting for the replica lock", phase_since_s=NOON_S), width)
    assert line.endswith("waiting for the replica lock for 3.1 s")
    assert "starting Spark for 24 s" in screen(replace(STATE, phase="starting Spark", phase_since_s=NOON_S), width, NOON_S + 24)[0]


@pytest.mark.parametrize("width", WIDTHS)
def test_a_failure_is_shown_with_its_cause_its_attempt_and_its_end_on_a_narrow_terminal_too(width):
    failing = Failing(
        since_s=NOON_S - 93,
        error="the database failed while renewing the heartbeat: Can't connect to MySQL server on 'db.example' (Connection refused)",
        error_class="RetryableSinkError",
        attempt=12,
        next_attempt_at_s=NOON_S + 7,
        gives_up_at_s=NOON_S + 507,
    )
    lines = screen(replace(STATE, phase="failing", failing=failing), width)
    assert max(map(len, lines)) <= width
    assert "failing for 96 s, attempt 12, the next one in 3.9 s; stops retrying at 22:21:47Z, in 8 min 24 s" in words(lines)
    assert "Can't connect to MySQL server on 'db.example' (Connection refused)" in words(lines)


@pytest.mark.parametrize("width", WIDTHS)
def test_a_long_ddl_a_stall_and_a_pause_fit(width):
    ddl = "ALTER TABLE `orders` " + ", ".join(f"ADD COLUMN c{number} VARCHAR(255) NOT NULL" for number in range(9))
    stream = Stream("a-topic-with-a-name-that-is-as-long-as-people-sometimes-make-it.v2", 117)
    state = replace(
        STATE,
        phase="ddl",
        current_ddl=ddl,
        ddl_since_s=NOON_S - 720,
        paused=Paused(since_s=NOON_S - 60, said_by="anna@box"),
        quarantined=2,
        streams=StreamsView(holding=stream, stall=Stall(stream, CHECKPOINT, 75.0)),
    )
    lines = screen(state, width)
    assert max(map(len, lines)) <= width
    shown = words(lines)
    assert "2, running for 12 min 3 s: ALTER TABLE `orders` ADD COLUMN c0" in shown
    assert "paused for 63 s, by anna@box: applier resume" in shown
    assert "/117" in "".join(lines).replace(" ", "")
    assert "quarantine 2 events to settle: applier quarantine list" in shown


def test_before_the_ends_are_known_there_is_no_bar():
    assert "read        1 record" in screen(replace(STATE, records_total=0, counts=Counts(records=1)), 80)
