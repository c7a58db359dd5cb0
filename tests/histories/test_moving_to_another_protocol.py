"""A replica that has run on one protocol goes on with another: a new changefeed begins where the replica stands (docs/changefeed.md)."""

from dataclasses import replace

import pytest

from applier.cli.main import run
from applier.demo.simulator.history import History, HistoryOptions
from applier.demo.simulator.producer import Producer, ProducerOptions
from applier.demo.simulator.wire_format import WireFormat
from applier.model.errors import ProtocolError
from applier.planner.table_check import DifferenceKind
from applier.sources.formats import FORMATS
from applier.sources.ticdc.foreign_record import SHOWN
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


def begun(history, steps, old, tmp_path):
    """A replica that has applied all that a changefeed has written into a topic, and where upstream's later changes begin."""
    cut = next(place for place in range(len(steps) // 2, len(steps)) if steps[place].ts - steps[place - 1].ts > PAUSE)
    _, first = changefeed(history, steps[:cut], old, "feed")
    replica = sqlite_replica(tmp_path, FakeSource(first))
    stopped = replica.catch_up()
    assert not stopped.pending_ddls
    return replica, cut


@pytest.mark.parametrize(("old", "new"), MOVES)
def test_a_new_changefeed_may_write_its_protocol_into_the_same_topic(old, new, tmp_path):
    history = History(77, HistoryOptions(transactions=40))
    steps = list(history)
    replica, cut = begun(history, steps, old, tmp_path)
    # From a little before the checkpoint on, as a changefeed that is created again may begin: what is applied already comes again.
    producer, then = changefeed(history, steps[cut - 3 :], new, "feed")
    replica.source.extend(then)
    with pytest.raises(ProtocolError, match=f"not {SHOWN.get(old.protocol, old.protocol)}") as caught:
        replica.catch_up()
    assert caught.value.exit_code == 3

    replica.source.read_as(new.protocol)
    assert replica.catch_up().checkpoint_ts == producer.final_ts
    assert_identical(history, producer.final_ts, replica.url)


@pytest.mark.parametrize(("old", "new"), MOVES)
def test_a_replica_whose_protocol_is_changed_too_early_stops_at_the_first_old_record(old, new, tmp_path):
    history = History(77, HistoryOptions(transactions=40))
    steps = list(history)
    replica, cut = begun(history, steps, old, tmp_path)
    before = replica.catch_up().checkpoint_ts
    _, rest = changefeed(history, steps[cut:-3], old, "feed")
    _, then = changefeed(history, steps[-3:], new, "feed")
    replica.source.extend([*rest, *then])
    replica.source.read_as(new.protocol)
    replica.quarantines = frozenset({"unreadable"})
    with pytest.raises(ProtocolError, match=f"not {SHOWN.get(new.protocol, new.protocol)}"):
        replica.catch_up()
    assert_identical(history, before, replica.url)
    assert not replica.quarantine()


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
