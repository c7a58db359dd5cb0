"""The metrics as Prometheus reads them, and as the document describes them."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from applier.telemetry.activity import PHASES
from applier.telemetry.failing import Failing
from applier.telemetry.metric import COUNTERS, DURATION, DURATION_LABELS, DURATION_MEANING, GAUGES, StateCollector, registry_of
from applier.telemetry.run_state import Paused, RunState, Stall
from applier.telemetry.tally import ACTIVITIES, Durations
from tests.builders.run_state import FIRST, NOON_S, SECOND, STATE, A, with_streams

DOCUMENT = Path(__file__).parents[3] / "docs" / "metrics.md"


def samples(state):
    text = generate_latest(registry_of(lambda: state)).decode()
    return {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def labelled(stream):
    return ("partition", str(stream.partition)), ("topic", stream.topic)


def test_timestamps_are_seconds_of_the_upstreams_clock():
    found = samples(STATE)
    assert found[("applier_checkpoint_timestamp_seconds",)] == NOON_S
    assert found[("applier_watermark_timestamp_seconds",)] == NOON_S + 1.5
    assert found[("applier_stream_resolved_timestamp_seconds", *labelled(SECOND))] == NOON_S


def test_lag_is_counted_to_the_moment_of_the_question():
    families = {family.name: family for family in StateCollector(lambda: STATE, lambda: NOON_S + 10.0).collect()}
    assert [sample.value for sample in families["applier_lag_seconds"].samples] == [10.0]
    assert [sample.value for sample in families["applier_stream_lag_seconds"].samples] == [8.5, 10.0]


def test_counters_retries_and_quarantine_are_exported():
    found = samples(STATE)
    assert found[("applier_rows_total",)] == 1000
    assert found[("applier_retries_total", ("error", "RetryableSinkError"))] == 2
    assert found[("applier_quarantined",)] == 4
    assert found[("applier_stream_replays_total", *labelled(FIRST))] == 6


def test_the_phase_is_one_of_all():
    found = samples(STATE)
    assert {phase: found[("applier_phase", ("phase", phase))] for phase in PHASES} == {phase: float(phase == "writing") for phase in PHASES}


def test_the_stream_that_holds_the_watermark_is_the_only_one_of_its_metric():
    assert [key for key in samples(STATE) if key[0] == "applier_watermark_held"] == [("applier_watermark_held", *labelled(SECOND))]


def test_a_stall_has_a_sample_only_while_it_lasts():
    stalled = samples(with_streams(stall=Stall(SECOND, A, 75.0)))
    assert stalled[("applier_stalled_seconds", *labelled(SECOND))] == 75.0
    assert not [key for key in samples(STATE) if key[0] == "applier_stalled_seconds"]


def test_a_stream_that_is_gone_leaves_no_label_behind():
    states = [STATE, with_streams(each=STATE.streams.each[:1], holding=FIRST)]
    registry = registry_of(lambda: states.pop(0))
    before, after = generate_latest(registry).decode(), generate_latest(registry).decode()
    assert 'partition="1"' in before
    assert 'partition="1"' not in after


def test_what_is_unknown_has_no_sample():
    found = samples(RunState(replica="new"))
    assert ("applier_lag_seconds",) not in found
    assert ("applier_quarantined",) not in found
    assert found[("applier_ready",)] == 0


def test_durations_are_a_histogram_of_each_phase():
    durations = Durations()
    durations.add("apply", 0.2)
    found = samples(with_streams(durations=durations.histograms()))
    assert {key[1][1] for key in found if key[0] == f"{DURATION}_count"} == set(ACTIVITIES)
    assert found[(f"{DURATION}_bucket", ("le", "0.1"), ("phase", "apply"))] == 0
    assert found[(f"{DURATION}_bucket", ("le", "0.25"), ("phase", "apply"))] == 1
    assert found[(f"{DURATION}_bucket", ("le", "+Inf"), ("phase", "apply"))] == 1
    assert found[(f"{DURATION}_sum", ("phase", "apply"))] == pytest.approx(0.2)


def test_names_follow_the_rules_of_prometheus_and_are_there_once():
    names = [metric.name for metric in (*GAUGES, *COUNTERS)] + [DURATION]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"applier_[a-z_]+", name) for name in names)
    assert not [metric.name for metric in COUNTERS if metric.name.endswith("_total")]


def test_the_document_names_every_metric_with_its_labels_and_meaning():
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \| ([^|]*) \| ([^|]*) \|$", DOCUMENT.read_text(encoding="utf-8"), re.MULTILINE)
    described = [(name, kind, labels.strip(), meaning.strip()) for name, kind, labels, meaning in rows]
    expected = [(metric.name, "gauge", ", ".join(metric.labels), metric.meaning) for metric in GAUGES]
    expected += [(f"{metric.name}_total", "counter", ", ".join(metric.labels), metric.meaning) for metric in COUNTERS]
    expected += [(DURATION, "histogram", ", ".join(DURATION_LABELS), DURATION_MEANING)]
    assert described == expected


def test_the_document_names_no_other_metric():
    documented = set(re.findall(r"\bapplier_\w+", DOCUMENT.read_text(encoding="utf-8")))
    reported = {f"{metric.name}_total" for metric in COUNTERS} | {metric.name for metric in GAUGES} | {DURATION}
    assert documented == reported


def test_what_keeps_a_run_from_going_on_is_a_gauge_each():
    names = ("applier_failing", "applier_paused", "applier_fenced")
    assert [samples(STATE)[(name,)] for name in names] == [0, 0, 0]
    failing = Failing(since_s=NOON_S, error="away", error_class="RetryableSinkError", attempt=1)
    state = replace(STATE, failing=failing, paused=Paused(since_s=NOON_S, said_by="anna"), is_fenced=True)
    assert [samples(state)[(name,)] for name in names] == [1, 1, 1]
