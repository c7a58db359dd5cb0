"""What a run shows while it runs."""

import io

import pytest
from rich.console import Console

from applier.cli.display import PLAIN_INTERVAL_S, LiveObserver, PlainObserver, observer_for, summary
from applier.model.position import NO_TS, Stream, Ts
from applier.sources.ticdc.tso import TSO_TIMELINE
from applier.telemetry.log_event import LogEvent
from applier.telemetry.observer import SilentObserver
from applier.telemetry.run_state import Counts, RunState, StreamsView

CHECKPOINT = Ts(1_700_000_000_123 << 18)
STATE = RunState(
    timeline=TSO_TIMELINE,
    epoch=3,
    phase="writing",
    counts=Counts(records=1500, rows=1234, transactions=1, ddls=2),
    records_total=3000,
    watermark=CHECKPOINT,
    checkpoint_ts=CHECKPOINT,
    streams=StreamsView(holding=Stream("feed", 3)),
    began_s=100.0,
    progress_s=102.0,
)


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def plain():
    console = Console(file=io.StringIO(), width=60)
    clock = Clock()
    return PlainObserver(console, clock), clock, console.file.getvalue


def test_the_state_is_one_line(plain):
    observer, _, text = plain
    observer.update(STATE)
    assert text() == (
        "writing: read 1,500 of 3,000 records, applied 1,234 rows in 1 transaction, 2 DDLs, "
        "checkpoint 2023-11-14 22:13:20.123Z, watermark held back by feed/3\n"
    )


def test_lines_come_at_most_once_in_an_interval(plain):
    observer, clock, text = plain
    for second in range(11):
        clock.now = 100.0 + second
        observer.update(STATE)
    assert text().count("\n") == 1 + 10 // PLAIN_INTERVAL_S


def test_each_ddl_gets_its_own_line_once(plain):
    observer, _, text = plain
    observer.update(STATE)
    for ddl in ("DROP TABLE\n  `a`", "DROP TABLE\n  `a`", "", "DROP TABLE `b`"):
        observer.update(RunState(epoch=1, phase="ddl", current_ddl=ddl))
    assert text().splitlines()[1:] == ["ddl: DROP TABLE `a`", "ddl: DROP TABLE `b`"]


def test_the_text_of_a_ddl_is_printed_once(plain):
    observer, _, text = plain
    observer.update(RunState(epoch=1, phase="ddl", current_ddl="DROP TABLE `a`"))
    observer.note(LogEvent.DDL_APPLIED, table="shop.a", query="DROP TABLE `a`")
    observer.note(LogEvent.DDL_APPLIED, table="shop.b", query="DROP TABLE `b`")
    assert text().splitlines()[-2:] == ["ddl_applied table=shop.a", "ddl_applied table=shop.b query=DROP TABLE `b`"]


def test_a_note_is_printed_at_once_as_it_is(plain):
    observer, _, text = plain
    observer.note(LogEvent.RECOVERING, cause="[bold]no route[/bold]\x1b[2J", broker="b:1")
    assert text() == "recovering cause=[bold]no route[/bold]\N{REPLACEMENT CHARACTER}[2J broker=b:1\n"


def test_a_timestamp_in_a_note_has_its_time_beside_it(plain):
    observer, _, text = plain
    observer.update(RunState(timeline=TSO_TIMELINE))
    observer.note(LogEvent.REPLICA_RESUMED, checkpoint_ts=CHECKPOINT, epoch=2)
    observer.note(LogEvent.REPLICA_CREATED, start_ts=NO_TS, epoch=1)
    assert text().splitlines() == [
        f"replica_resumed checkpoint_ts={CHECKPOINT} (2023-11-14 22:13:20.123Z) epoch=2",
        "replica_created start_ts=0 epoch=1",
    ]


def test_a_terminal_gets_a_live_display_with_notes_above_it():
    console = Console(file=io.StringIO(), force_terminal=True, width=120, color_system=None, _environ={"TERM": "xterm"})
    with observer_for(console, silent=False) as observer:
        assert isinstance(observer, LiveObserver)
        observer.update(STATE)
        observer.note(LogEvent.REPLICA_RESUMED, checkpoint_ts=CHECKPOINT)
    text = console.file.getvalue()
    assert "1,500 of 3,000 records" in text
    assert f"replica_resumed checkpoint_ts={CHECKPOINT} (2023-11-14 22:13:20.123Z)" in text


@pytest.mark.parametrize(("silent", "kind"), [(True, SilentObserver), (False, PlainObserver)])
def test_a_pipe_gets_lines_and_a_program_gets_nothing(silent, kind):
    with observer_for(Console(file=io.StringIO()), silent=silent) as observer:
        assert isinstance(observer, kind)


def test_unknown_totals_are_not_shown():
    assert "read 1 record," in summary(RunState(phase="listening", counts=Counts(records=1)))
