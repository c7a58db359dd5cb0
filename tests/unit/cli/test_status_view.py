"""The status on terminals of 80 and 120 columns: nothing that tells streams apart is cut, and 200 streams are a few lines."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from applier.cli.status import View, as_lines
from applier.model.position import Listing, Offset, PartitionExtent, Stream, StreamPosition, Ts
from applier.sinks.overview import Overview, OwnerState, Pause, RunEnd, StoredEnd
from applier.sources.kit import SourceAnswer
from applier.sources.ticdc.tso import TSO_TIMELINE
from applier.status.replica_status import Findings, Health, build_status, status_of_run, verdict_of
from tests.unit.status.test_replica_status import LIVE, NOON_MS, NOW_S, OVERVIEW, OWNER, PROGRESS, replica_status

WIDTHS = (80, 120)
FAILING = LIVE | {
    "replica": "replica",
    "phase": "failing",
    "phase_since": "2023-11-14T22:13:00.000+00:00",
    "failing_since": "2023-11-14T22:11:51.000+00:00",
    "error": "the database failed while reading the progress: Can't connect to MySQL server on 'db' ([Errno 111] Connection refused)",
    "attempt": 12,
    "next_attempt_at": "2023-11-14T22:13:25.000+00:00",
    "gives_up_at": "2023-11-14T22:21:51.000+00:00",
    "stall": None,
    "watermark": NOON_MS << 18,
    "checkpoint_ts": NOON_MS << 18,
    "lag_s": 4.0,
    "streams": {
        "orders-changefeed/12": {
            "next_offset": 81_207,
            "end_offset": 1_234_567,
            "resolved_ts": NOON_MS << 18,
            "lag_s": 4.0,
        }
    },
}


def many(streams, topic="orders-changefeed"):
    each = {
        Stream(topic, number): StreamPosition(next_offset=Offset(1_000_000 + number), resolved_ts=Ts(NOON_MS - 1_000 * number << 18))
        for number in range(streams)
    }
    overview = replace(OVERVIEW, progress=replace(PROGRESS, positions=each))
    extents = {stream: PartitionExtent(Offset(0), Offset(1_234_567)) for stream in each}
    found = Findings(overview=overview, source=SourceAnswer(Listing(extents), TSO_TIMELINE), source_problem="", live=None)
    return build_status("orders", "mysql://db/", found, NOW_S, None)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("topic", ["feed", "orders-changefeed", "a-topic-with-a-name-that-is-as-long-as-people-sometimes-make-it.v2"])
def test_no_line_is_wider_than_the_terminal_and_every_partition_is_named(width, topic):
    lines = as_lines(many(16, topic), view=View(width))
    assert max(map(len, lines)) <= width
    assert [line.split()[0].rpartition("/")[2] for line in lines[-16:]] == [str(number) for number in range(16)]
    assert "holds back" in lines[-1]


def test_a_terminal_of_80_columns_leaves_out_offsets_and_one_of_120_does_not():
    narrow, wide = (as_lines(many(2), view=View(width))[-3:] for width in WIDTHS)
    assert narrow == [
        "stream                behind  resolved           lag",
        "orders-changefeed/0  234,567  11-14 22:13:20Z  4.0 s",
        "orders-changefeed/1  234,566  11-14 22:13:19Z  5.0 s  holds back",
    ]
    assert wide[0].split() == ["stream", "next", "offset", "end", "behind", "resolved", "lag"]


@pytest.mark.parametrize("width", WIDTHS)
def test_of_200_streams_those_that_are_furthest_behind_are_shown_and_the_others_summed(width):
    lines = as_lines(many(200), view=View(width))
    assert len(lines) < 35
    assert max(map(len, lines)) <= width
    assert any(line.startswith("orders-changefeed/199") for line in lines)
    assert not any(line.startswith("orders-changefeed/0 ") for line in lines)
    assert lines[-2].startswith("and 180 more streams, ")
    assert len(as_lines(many(200), view=View(width, shows_all=True))) > 200


@pytest.mark.parametrize("width", WIDTHS)
def test_a_sink_that_is_away_is_shown_with_what_the_run_says_and_until_when_it_tries(width):
    status = status_of_run("replica", "mysql://db/", FAILING, "the database failed while connecting", NOW_S, TSO_TIMELINE)
    lines = as_lines(status, view=View(width))
    text = " ".join(" ".join(lines).split())
    assert max(map(len, lines)) <= width
    assert lines[0] == "health      failing: something fails and is retried"
    assert "failing for 93 s, since 2023-11-14 22:11:51Z; attempt 12, the next one at 2023-11-14 22:13:25Z, stops retrying at 2023-" in text
    assert "Connection refused" in text
    assert "orders-changefeed/12" in text


def test_the_commands_that_are_shown_name_the_configuration_that_was_given():
    paused = replace(OVERVIEW, pause=Pause("anna@box", datetime(2023, 11, 14, 22, 13, 14, tzinfo=UTC)), quarantined=2)
    shown = "\n".join(as_lines(replica_status(paused), view=View(config=Path("orders.toml"))))
    assert "by anna@box: applier resume --config orders.toml" in shown
    assert "2 events to settle: applier quarantine list --config orders.toml" in shown


def test_a_pause_is_shown_whether_or_not_a_run_answers():
    paused = replace(OVERVIEW, pause=Pause("anna@box", datetime(2023, 11, 14, 22, 13, 14, tzinfo=UTC)))
    assert "paused      for 10 s, by anna@box: applier resume" in as_lines(replica_status(paused))
    assert as_lines(replica_status(paused))[0] == "health      paused: nothing is applied until it is resumed"


@pytest.mark.parametrize("width", WIDTHS)
def test_a_stopped_run_is_shown_with_its_end_and_its_remedy(width):
    end = RunEnd(
        command="run", exit_code=4, message="the sink refuses", error_class="FatalSinkError", facts={"code": "1"}, remedy="Look at it"
    )
    stored = StoredEnd(end=end, epoch=3, ended_at=datetime(2023, 11, 14, 22, 12, 54, tzinfo=UTC))
    lines = as_lines(replica_status(replace(OVERVIEW, owner=None, last_end=stored)), view=View(width))
    at = next(number for number, line in enumerate(lines) if line.startswith("last run"))
    assert " ".join(" ".join(lines[at:]).split()).startswith(
        "last run applier run ended 30 s ago, at 2023-11-14 22:12:54Z, with exit code 4 the sink refuses [code=1] remedy Look at it"
    )
    assert max(map(len, lines)) <= width


def test_a_run_that_has_died_is_not_shown_with_the_end_of_another():
    dead = replace(OVERVIEW, owner=replace(OWNER, state=OwnerState.DEAD))
    assert (
        "last run    it did not store how it ended: it was killed, or could not reach the sink. See its log, or the system's"
        in as_lines(replica_status(dead))
    )


NOTHING = Overview(progress=None, updated_at=None, owner=None, undecided=(), quarantined=0)


IN_FUTURE = replica_status(replace(OVERVIEW, progress=replace(OVERVIEW.progress, checkpoint_ts=Ts(int(NOW_S + 7200) * 1000 << 18))))


def test_a_checkpoint_in_the_future_is_not_shown_as_a_lag_of_nothing():
    (line,) = [line for line in as_lines(IN_FUTURE) if line.startswith("checkpoint")]
    assert line.endswith(", 2 h 0 min in the future")
    assert "rows are dropped" in verdict_of(IN_FUTURE).reason


@pytest.mark.parametrize(
    ("status", "max_lag", "health"),
    [
        (replica_status(), None, Health.HEALTHY),
        (replica_status(), 5, Health.HEALTHY),
        (replica_status(), 3, Health.LAGGING),
        (replica_status(NOTHING), 3, Health.STOPPED),
        (replica_status(replace(OVERVIEW, owner=replace(OWNER, state=OwnerState.DEAD))), 3, Health.STOPPED),
        (replica_status(replace(OVERVIEW, owner=replace(OWNER, state=OwnerState.FROZEN))), None, Health.HINDERED),
        (replica_status(live=LIVE | {"stall": None}), None, Health.HEALTHY),
        (replica_status(live=LIVE), None, Health.HINDERED),
        (replica_status(live=FAILING), 3, Health.HINDERED),
        (replica_status(live=LIVE | {"stall": None, "paused_since": "2023-11-14T22:13:00+00:00"}), None, Health.HINDERED),
        (replica_status(live=LIVE | {"stall": None, "is_alive": False}), None, Health.HINDERED),
        (IN_FUTURE, None, Health.HINDERED),
        (IN_FUTURE, 3, Health.HINDERED),
    ],
)
def test_the_health_is_a_number_for_monitoring(status, max_lag, health):
    assert verdict_of(status, max_lag).health is health
