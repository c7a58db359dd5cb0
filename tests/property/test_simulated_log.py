"""Logs are legal: promises hold apart from replays, nothing is missing, and a hundred seeds show everything that can happen."""

from collections import Counter
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from applier.demo.simulator.history import History, HistoryOptions
from applier.demo.simulator.item import ImageOptions
from applier.demo.simulator.json_text import Flavour
from applier.demo.simulator.mysql_text import changes_unique_value
from applier.demo.simulator.operation import event_name
from applier.demo.simulator.producer import Producer, ProducerOptions
from tests.rig.log_reader import Promises, events

SIZE = HistoryOptions(transactions=25, ddl_share=0.3)
SEEDS = range(100)


@cache
def run(seed):
    producer = Producer(History(seed, SIZE), ProducerOptions.drawn(seed))
    log = list(producer.log())
    return producer, log


@given(seed=st.integers(0, 10**9))
@settings(max_examples=40, deadline=None)
def test_no_new_event_is_at_or_below_what_any_stream_was_promised(seed):
    promises = Promises()
    for record in Producer(History(seed, SIZE), ProducerOptions.drawn(seed)).log():
        promises.feed(record)
    assert promises.broken == []


@pytest.mark.parametrize("seed", range(10))
def test_equal_seeds_give_equal_bytes(seed):
    _, log = run(seed)
    assert log == list(Producer(History(seed, SIZE), ProducerOptions.drawn(seed)).log())


@given(seed=st.integers(0, 10**9), raw=st.booleans())
@settings(max_examples=20, deadline=None)
def test_every_change_of_the_history_is_in_the_log_as_many_times_as_it_happened(seed, raw):
    history = History(seed, SIZE)
    log = Producer(history, ProducerOptions(seed=seed, images=ImageOptions(raw_updates=raw), flavour=Flavour.TICDC)).log()
    found = Counter((key["ts"], key["scm"], key["tbl"], "d" in value) for record in log for key, value in events(record) if key["t"] == 1)
    expected = Counter()
    for step in history:
        for change in step.rows:
            split = changes_unique_value(change) and not raw
            for is_delete in (True, False) if split else (change.after is None,):
                expected[(step.ts, *change.table.name, is_delete)] += 1
    assert found == expected


@given(seed=st.integers(0, 10**9))
@settings(max_examples=20, deadline=None)
def test_every_ddl_reaches_every_partition_that_its_topic_had(seed):
    options = ProducerOptions(seed=seed, partitions=3, flavour=Flavour.TICDC)
    promises = Promises()
    for record in Producer(History(seed, SIZE), options).log():
        promises.feed(record)
    names = {(step.ts, *event_name(ddl)) for step in History(seed, SIZE) for ddl in step.ddls}
    assert {identity[:3] for identity in promises.ddls} == names
    assert all(len(streams) == 3 for streams in promises.ddls.values())


@pytest.mark.parametrize("seed", range(30))
def test_each_stream_ends_with_the_final_resolved_ts_or_with_an_open_tail_above_it(seed):
    producer, log = run(seed)
    promises = Promises()
    for record in log:
        promises.feed(record)
    assert set(promises.resolved.values()) == {producer.final_ts}
    last = max(step.ts for step in History(seed, SIZE))
    assert producer.final_ts > last or producer.counts.get("open tail")
    assert {record.stream for record in log} == set(promises.resolved)


def test_record_times_never_step_back_and_are_not_before_the_commit():
    _, log = run(4)
    times = [record.time_ms for record in log]
    assert times == sorted(times)
    assert all(key["ts"] >> 18 <= record.time_ms for record in log for key, _ in events(record) if key["t"] != 3)


def test_a_hundred_seeds_show_every_feature_of_producers():
    seen = Counter()
    for seed in SEEDS:
        producer, log = run(seed)
        promises = Promises()
        for record in log:
            promises.feed(record)
        seen.update(producer.counts)
        options = ProducerOptions.drawn(seed)
        seen.update([options.flavour, options.dispatcher, options.compression])
        seen["fallback of resolved"] += promises.fallbacks
        seen["several topics"] += len({record.stream.topic for record in log}) > 1
        seen["partitions added"] += producer.counts.get("growth", 0) > 0
        seen["resolved events in one record"] += any(sum(key["t"] == 3 for key, _ in events(record)) > 1 for record in log)
        seen["empty record"] += any(not record.value for record in log)
    wanted = ["batch", "ddl out of order", "ddl at resolved ts", "restart", "upgrade", "table move", "retry", "growth", "open tail"]
    wanted += ["tiflow", "ticdc", "table", "index-value", "columns", "ts", "none", "lz4", "snappy", "fallback of resolved"]
    wanted += ["several topics", "partitions added", "resolved events in one record", "empty record"]
    assert [feature for feature in wanted if not seen[feature]] == []


@pytest.mark.parametrize(
    "options", [ImageOptions(old_value=False), ImageOptions(delete_only_handle_key=True), ImageOptions(only_updated_columns=True)]
)
def test_images_are_reduced_as_the_changefeed_was_configured(options):
    changes = [
        value
        for record in Producer(History(3, SIZE), ProducerOptions(images=options)).log()
        for key, value in events(record)
        if key["t"] == 1
    ]
    if not options.old_value:
        assert not any("p" in value for value in changes)
    elif options.delete_only_handle_key:
        assert all(column.get("h") for value in changes for column in value.get("d", {}).values())
    else:
        updates = [value for value in changes if "p" in value]
        assert updates
        assert all(value["u"][name]["v"] != column["v"] for value in updates for name, column in value["p"].items())
