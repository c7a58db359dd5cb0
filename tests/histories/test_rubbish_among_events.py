"""Rubbish at any place of any history: the sink ends identical to the oracle, and each piece of rubbish is quarantined once, whole."""

import json
import random
from collections import Counter
from dataclasses import replace

import pytest

from applier.demo.simulator.dispatch import Dispatcher
from applier.demo.simulator.history import History, HistoryOptions
from applier.demo.simulator.producer import Producer, ProducerOptions
from applier.demo.simulator.wire_format import WireFormat
from applier.model.position import Offset
from applier.model.rejected_event import WHOLE_RECORD, EventPosition, KeptRecord, QuarantineState
from applier.sinks.quarantine import SkipRule
from tests.builders import canal_json, simple_wire
from tests.builders.wire import column, head, integer_key, record
from tests.rig.fake_source import FakeSource
from tests.rig.faulty_sink import Faults, FaultySink, caught_up_after_deaths
from tests.rig.local_replica import sqlite_replica
from tests.rig.oracle import compare, open_oracle
from tests.rig.protocol import in_format
from tests.rig.seeds import seeds

PIECES = 9
DISPATCHERS = list(Dispatcher)


def rubbish(draw, ts, form):
    """Return (key, value) of something that nobody can read: no record, no event, no DDL, a row of a table that is not there."""
    match form:
        case WireFormat.OPEN_PROTOCOL:
            return open_rubbish(draw, ts)
        case WireFormat.CANAL_JSON:
            return None, draw.choice([b"", draw.randbytes(30), *map(canal_json.dump, canal_rubbish(ts))])
        case _:
            return None, draw.choice([b"", draw.randbytes(30), b"\x16\6\6\2\4d", *map(simple_wire.dump, simple_rubbish(ts))])


def canal_rubbish(ts):
    row = canal_json.row(ts=ts, database="nowhere", table="nothing")
    return (
        row | {"mysqlType": None},
        row | {"data": [{"a": "1", "b": 2}]},
        row | {"type": "MERGE"},
        canal_json.ddl("", ts, sql=5),
        json.loads(canal_json.watermark()) | {"_tidb": {}},
    )


def simple_rubbish(ts):
    # Of a version whose schema nobody has sent.
    row = json.loads(simple_wire.row("INSERT", {"id": "1"}, ts=ts, table="nothing"))
    return row, row | {"type": "MERGE"}, row | {"version": 2}, row | {"type": "CREATE"}, row | {"type": "WATERMARK", "commitTs": 0}


def open_rubbish(draw, ts):
    row = head(ts, schema="nowhere", table="nothing"), {"u": {"id": integer_key(draw.randrange(9)), "n": column(3, 0, "?")}}
    return draw.choice(
        [
            (None, b""),
            (draw.randbytes(20), draw.randbytes(30)),
            record((b"{", b"{}")),
            record((head(ts, t=2), {"q": 5})),
            record(row),
            record((head(ts, t=3), b"a resolved event has no body")),
        ]
    )


def with_rubbish(log, draw, times, form):
    """Put rubbish after some records; return the log, and what lies where."""
    behind = Counter(draw.choices(range(len(log)), k=PIECES))
    mixed, kept, offsets = [], {}, Counter()
    for number, each in enumerate(log):
        pieces = [
            each._replace(key=key, value=value) for key, value in (rubbish(draw, draw.choice(times), form) for _ in range(behind[number]))
        ]
        for one in (each, *pieces):
            if one is not each:
                kept[one.stream, offsets[one.stream]] = KeptRecord(one.key, one.value)
            mixed.append(one)
            offsets[one.stream] += 1
    return mixed, kept


def world(seed):
    draw = random.Random(f"rubbish {seed}")
    history = History(seed, HistoryOptions(transactions=30))
    options = replace(ProducerOptions.drawn(seed), dispatcher=DISPATCHERS[seed % len(DISPATCHERS)], partitions=1 + seed % 4)
    options = in_format(options)
    producer = Producer(history, options)
    log, kept = with_rubbish(list(producer.log()), draw, [step.ts for step in history], options.form)
    return history, producer.final_ts, FakeSource(log), kept


def assert_identical(history, upto_ts, url):
    oracle = open_oracle("sqlite:///:memory:")
    try:
        oracle.apply(history, upto_ts)
        assert compare(oracle, url) == []
    finally:
        oracle.close()


def assert_kept(replica, kept, state):
    entries = replica.quarantine().values()
    assert {entry.event.position[:2]: replica.kept(entry) for entry in entries} == kept
    assert len(entries) == len(kept)
    assert {entry.event.state for entry in entries} == {state}


@pytest.mark.parametrize("seed", seeds(range(8), daily=4))
def test_rubbish_is_quarantined_once_through_deaths_and_changes_nothing(seed, tmp_path):
    history, final_ts, source, kept = world(seed)
    faults = Faults(seed, rate=0.0, deaths=0.1)
    replica = sqlite_replica(tmp_path, source, quarantines=frozenset({"unreadable"}), wrap=lambda sink: FaultySink(sink, faults))
    assert caught_up_after_deaths(replica).checkpoint_ts == final_ts
    assert_identical(history, final_ts, replica.url)
    assert_kept(replica, kept, QuarantineState.HELD)


@pytest.mark.parametrize("seed", range(8, 12))
def test_rubbish_that_the_operator_has_named_is_skipped_and_changes_nothing(seed, tmp_path):
    history, final_ts, source, kept = world(seed)
    replica = sqlite_replica(tmp_path, source)
    for stream, offset in kept:
        replica.skip(SkipRule(decided_by="me@here", position=EventPosition(stream, Offset(offset), WHOLE_RECORD)))
    assert replica.catch_up().checkpoint_ts == final_ts
    assert_identical(history, final_ts, replica.url)
    assert_kept(replica, kept, QuarantineState.SKIPPED)
