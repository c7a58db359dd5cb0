"""What a catch-up promises around its ends: open tails, repetition, starting points, interruption at any commit (in process, on SQLite)."""

import random
import sqlite3
from dataclasses import replace
from itertools import count

import pytest

from applier.demo.simulator.history import History, HistoryOptions
from applier.demo.simulator.producer import Producer, ProducerOptions
from applier.demo.simulator.wire_format import WireFormat
from applier.model.errors import ConfigError, FatalSinkError, NeedsOperator, SourceError
from applier.model.position import Stream
from applier.planner.table_check import DifferenceKind
from tests.rig.fake_source import FakeSource
from tests.rig.local_replica import sqlite_replica
from tests.rig.oracle import compare, load_dump, open_oracle
from tests.rig.protocol import form_of, in_format, is_watermark
from tests.rig.seeds import seeds

RESOLVED = b'"t":3}'


def history_of(seed, transactions=60):
    return History(seed, HistoryOptions(transactions=transactions))


def options_of(history, **options):
    return in_format(replace(ProducerOptions.drawn(history.seed), topic_per_schema=False, **options))


def log_of(history, **options):
    producer = Producer(history, options_of(history, **options))
    return producer, list(producer.log())


def log_with_a_middle(history, **options):
    """The same changefeed at another pace, where a stream of the first log has its only promise at the end."""
    drawn = options_of(history, **options)
    logs = (
        (producer, list(producer.log())) for producer in (Producer(history, replace(drawn, seed=drawn.seed + 1000 * n)) for n in count())
    )
    return next((producer, log) for producer, log in logs if middle_of(log) < len(log))


def middle_of(log):
    """How many records to show so that every stream has promised something, and something is left: all, if there is no such number."""
    waiting = {record.stream for record in log}
    for shown, record in enumerate(log, 1):
        if is_watermark(record):
            waiting.discard(record.stream)
        if not waiting:
            return (shown + len(log)) // 2
    raise AssertionError("a stream of this log never resolves")


def differences(history, upto_ts, url):
    oracle = open_oracle("sqlite:///:memory:")
    try:
        oracle.apply(history, upto_ts)
        return compare(oracle, url)
    finally:
        oracle.close()


@pytest.mark.parametrize("seed", seeds(range(100, 106), daily=3))
def test_an_open_tail_is_not_applied_and_a_second_run_applies_exactly_it_once_it_is_closed(seed, tmp_path):
    history = history_of(seed)
    producer, log = log_with_a_middle(history, open_tail=False)
    source = FakeSource(log, hidden=True)
    source.advance(middle_of(log))
    replica = sqlite_replica(tmp_path, source)
    first = replica.catch_up()
    assert first.checkpoint_ts < producer.final_ts
    assert differences(history, first.checkpoint_ts, replica.url) == [] or first.pending_ddls
    source.advance(len(log))
    second = replica.catch_up()
    assert second.checkpoint_ts == producer.final_ts
    assert differences(history, producer.final_ts, replica.url) == []
    (tmp_path / "whole").mkdir()
    whole = sqlite_replica(tmp_path / "whole", FakeSource(log))
    assert whole.catch_up().ddls == first.ddls + second.ddls


def test_a_second_catch_up_changes_nothing(tmp_path):
    history = history_of(7)
    _, log = log_of(history)
    replica = sqlite_replica(tmp_path, FakeSource(log))
    first, ledger = replica.catch_up(), replica.ledger()
    second = replica.catch_up()
    assert (second.rows, second.transactions, second.ddls) == (0, 0, 0)
    assert second.checkpoint_ts == first.checkpoint_ts
    assert replica.ledger() == ledger


@pytest.mark.parametrize("seed", seeds(range(110, 116), daily=3))
def test_a_sink_loaded_from_a_dump_in_mid_history_ends_identical_with_its_start_ts(seed, tmp_path):
    history = history_of(seed)
    producer, log = log_of(history)
    steps = [step.ts for step in history]
    start_ts = random.Random(seed).choice(steps[10:40])
    # canal-json does not show unique indexes, and no statement of a dump has run here that could explain those of the sink.
    accept = {"*.*": (DifferenceKind.UNIQUE_INDEX,)} if form_of(seed) is WireFormat.CANAL_JSON else {}
    replica = sqlite_replica(tmp_path, FakeSource(log), accept=accept)
    load_dump(history, start_ts, replica.url)
    replica.catch_up(start_ts=start_ts)
    assert differences(history, producer.final_ts, replica.url) == []


def test_tables_that_already_hold_rows_stop_a_replica_without_start_ts_and_the_way_from_a_dump_is_described(tmp_path):
    history = history_of(3)
    _, log = log_of(history)
    replica = sqlite_replica(tmp_path, FakeSource(log))
    load_dump(history, [step.ts for step in history][30], replica.url)
    with pytest.raises(NeedsOperator) as caught:
        replica.catch_up()
    assert caught.value.facts["kind"] == "not_empty"
    assert "start_ts" in caught.value.remedy
    assert "metadata" in caught.value.remedy


def test_another_start_ts_than_the_recorded_one_is_refused(tmp_path):
    history = history_of(3)
    _, log = log_of(history)
    replica = sqlite_replica(tmp_path, FakeSource(log))
    replica.catch_up()
    with pytest.raises(ConfigError, match="start_ts differs"):
        replica.catch_up(start_ts=12345)


def test_until_ts_stops_there_and_the_next_run_continues(tmp_path):
    history = history_of(21)
    producer, log = log_of(history)
    middle = [step.ts for step in history][40]
    replica = sqlite_replica(tmp_path, FakeSource(log))
    assert replica.catch_up(until_ts=middle).checkpoint_ts == middle
    assert replica.catch_up().checkpoint_ts == producer.final_ts
    assert differences(history, producer.final_ts, replica.url) == []


def test_a_beginning_that_has_expired_stops_with_the_missing_offsets_and_accept_gap_continues(tmp_path):
    history = history_of(4)
    _, log = log_of(history)
    source = FakeSource(log)
    source.expire(log[0].stream, 1)
    replica = sqlite_replica(tmp_path, source)
    with pytest.raises(NeedsOperator) as caught:
        replica.catch_up()
    assert caught.value.facts["missing_offsets"] == "0..0"
    assert "metadata" in caught.value.remedy


def test_records_that_expired_between_two_runs_stop_with_the_missing_range(tmp_path):
    history = history_of(5)
    _, log = log_of(history, partitions=1, growth=0)
    source = FakeSource(log, hidden=True)
    source.advance(middle_of(log))
    replica = sqlite_replica(tmp_path, source)
    replica.catch_up()
    source.advance(len(log))
    source.expire(log[0].stream, len(log) - 1)
    with pytest.raises((NeedsOperator, SourceError)) as caught:
        replica.catch_up()
    assert caught.value.facts["kind"] == "retention"


def test_an_empty_topic_is_named(tmp_path):
    replica = sqlite_replica(tmp_path, FakeSource([], partitions={"changefeed": 3}))
    with pytest.raises(SourceError) as caught:
        replica.catch_up()
    assert caught.value.facts == {"kind": "empty_topic", "topic": "changefeed"}


def test_a_stream_that_never_resolves_is_named(tmp_path):
    history = history_of(6)
    _, log = log_of(history, partitions=2, growth=0)
    silent = Stream("changefeed", 1)
    log = [record for record in log if record.stream != silent or not is_watermark(record)]
    replica = sqlite_replica(tmp_path, FakeSource(log))
    with pytest.raises(SourceError) as caught:
        replica.catch_up()
    assert caught.value.facts["kind"] == "no_resolved_event"
    assert str(caught.value.facts["stream"]) == "changefeed/1"


def test_a_malformed_record_stops_with_its_place_and_leaves_the_progress_intact(tmp_path):
    history = history_of(8)
    producer, log = log_of(history, partitions=2, growth=0)
    at = len(log) // 2
    broken = [*log[:at], log[at]._replace(value=b"\0\0\0\0\0\0\0\x05{rub}", key=log[at].key), *log[at + 1 :]]
    replica = sqlite_replica(tmp_path, FakeSource(broken))
    with pytest.raises(SourceError) as caught:
        replica.catch_up()
    offset = sum(record.stream == log[at].stream for record in log[:at])
    assert (caught.value.facts["topic"], caught.value.facts["partition"], caught.value.facts["offset"]) == (*log[at].stream, offset)
    replica.source = FakeSource(log)
    replica.catch_up()
    assert differences(history, producer.final_ts, replica.url) == []


def test_a_table_dropped_by_hand_stops_with_table_ts_and_remedy_and_continues_once_it_is_back(tmp_path):
    history = History(9, HistoryOptions(transactions=60, ddl_share=0.0))
    producer, log = log_of(history, partitions=1, growth=0, replays=0)
    source = FakeSource(log, hidden=True)
    source.advance(middle_of(log))
    replica = sqlite_replica(tmp_path, source)
    checkpoint_ts = replica.catch_up().checkpoint_ts
    with sqlite3.connect(tmp_path / "replica.db") as connection:
        (accounts,) = next(connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE '%.accounts'"))
        connection.execute(f'ALTER TABLE "{accounts}" RENAME TO "hidden"')
    source.advance(len(log))
    with pytest.raises(FatalSinkError) as caught:
        replica.catch_up()
    assert caught.value.facts["table"] == accounts
    assert caught.value.facts["commit_ts"] > checkpoint_ts
    assert caught.value.remedy
    with sqlite3.connect(tmp_path / "replica.db") as connection:
        connection.execute(f'ALTER TABLE "hidden" RENAME TO "{accounts}"')
    replica.catch_up()
    assert differences(history, producer.final_ts, replica.url) == []
