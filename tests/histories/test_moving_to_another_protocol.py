"""A replica that has run on one protocol goes on with another: a new changefeed begins where the replica stands (docs/changefeed.md)."""

from dataclasses import replace

import pytest

from applier.cli.main import run
from applier.demo.simulator.history import History, HistoryOptions
from applier.demo.simulator.producer import Producer, ProducerOptions
from applier.demo.simulator.wire_format import WireFormat
from applier.planner.table_check import DifferenceKind
from applier.sources.formats import FORMATS
from tests.histories.test_any_history_ends_identical import assert_identical
from tests.rig.fake_source import FakeSource
from tests.rig.local_replica import sqlite_replica

PAUSE = 1 << 20
"""Further than a changefeed promises beyond its last event."""
MOVES = [
    pytest.param(old, new, id=f"{old} to {new}")
    for old, new in (
        (WireFormat.OPEN_PROTOCOL, WireFormat.CANAL_JSON),
        (WireFormat.OPEN_PROTOCOL, WireFormat.SIMPLE),
        (WireFormat.CANAL_JSON, WireFormat.SIMPLE_AVRO),
        (WireFormat.SIMPLE, WireFormat.OPEN_PROTOCOL),
    )
    if {old.protocol, new.protocol} <= FORMATS.keys()
]


def changefeed(history, steps, form, topic):
    options = replace(ProducerOptions.drawn(history.seed), topic=topic, open_tail=False, topic_per_schema=False)
    producer = Producer(steps, options.written_as(form))
    return producer, list(producer.log())


def reset(replica, directory):
    config = directory / "applier.toml"
    source = '[source]\nbootstrap_servers = "127.0.0.1:1"\ntopics = ["new"]\n'
    config.write_text(f'name = "{replica.name}"\n{source}[sink]\nurl = "{replica.url}"\n')
    assert run(["replicas", "reset", "--yes", "--config", str(config)]) == 0


@pytest.mark.parametrize(("old", "new"), MOVES)
def test_a_replica_goes_on_with_a_new_changefeed(old, new, tmp_path, capsys):
    history = History(77, HistoryOptions(transactions=40))
    steps = list(history)
    cut = next(place for place in range(len(steps) // 2, len(steps)) if steps[place].ts - steps[place - 1].ts > PAUSE)
    # The old changefeed is paused there: what it has written is all that there is.
    _, first = changefeed(history, steps[:cut], old, "old")
    replica = sqlite_replica(tmp_path, FakeSource(first))
    stopped = replica.catch_up()
    assert not stopped.pending_ddls
    assert stopped.checkpoint_ts < steps[cut].ts
    assert_identical(history, stopped.checkpoint_ts, replica.url)

    reset(replica, tmp_path)
    assert "reset" in capsys.readouterr().out
    producer, then = changefeed(history, steps[cut:], new, "new")
    replica.source = FakeSource(then)
    if new is WireFormat.CANAL_JSON:
        # Its records do not show unique keys, and the DDLs that explained those of the sink are forgotten.
        replica.accept = {str(row.table.name): (DifferenceKind.UNIQUE_INDEX,) for step in steps for row in step.rows}
    assert replica.catch_up(start_ts=stopped.checkpoint_ts).checkpoint_ts == producer.final_ts
    assert_identical(history, producer.final_ts, replica.url)
