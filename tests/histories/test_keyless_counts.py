"""Random logs of tables without a key: each segment counts what upstream did, or stops by its name.

Without an engine and a sink, so that thousands of them take minutes: ``make soak``.
"""

import random
from collections import Counter
from dataclasses import replace

import pytest

from applier.demo.simulator.dispatch import Dispatcher
from applier.demo.simulator.history import History, HistoryOptions
from applier.demo.simulator.item import ItemMaker
from applier.demo.simulator.json_text import Flavour
from applier.demo.simulator.producer import Producer, ProducerOptions
from applier.demo.simulator.producer.run import Topics
from applier.demo.simulator.table_family import TableFamily
from applier.demo.simulator.wire_format import WireFormat
from applier.planner.keyless import AmbiguousRows
from tests.rig.keyless_reading import Log, Reading, changes_of, without_zeros
from tests.rig.protocol import in_format
from tests.rig.seeds import seeds


def drawn_feed(seed, rng, form=None, **changes):
    drawn = ProducerOptions.drawn(seed)
    history = HistoryOptions(
        transactions=rng.choice((10, 25, 60)),
        families=frozenset({TableFamily.KEYLESS}),
        keyless_twins=rng.random() < 0.5,
        live_rows=rng.choice((4, 12, 40)),
        ddl_share=rng.choice((0, 0.15, 0.4)),
        rows_per_transaction=rng.choice((1, 2, 6, 20)),
    )
    options = replace(
        drawn,
        images=replace(drawn.images, old_value=True, delete_only_handle_key=False),
        dispatcher=Dispatcher.COLUMNS if rng.random() < 0.7 else drawn.dispatcher,
        partitions=rng.choice((1, 2, 3, 4, 7)),
        growth=0,
        replays=rng.choice((0, 1, 3, 6, 12)),
        announced_restarts=rng.random() < 0.1,
        batch_size=rng.choice((1, 2, 4, 16)),
    )
    return History(seed, history), in_format(replace(options, **changes), form)


def segments(reading, log, rng, times, final_ts):
    """Yield the end of each segment, once it is closed, and the run of the applier that applies it."""
    while reading.checkpoint_ts < final_ts:
        if rng.random() < 0.15:
            reading = Reading(log, reading.checkpoint_ts, reading.positions)
        later = [ts for ts in times if ts > reading.checkpoint_ts] or [final_ts]
        upto_ts = min(rng.choice(later[: rng.choice((1, 3, 10, 40))]) + rng.choice((0, 0, 0, 1)), final_ts)
        read_until_promised(reading, log, rng, upto_ts)
        yield upto_ts, reading
        reading.applied(upto_ts)


def read_until_promised(reading, log, rng, upto_ts):
    """Read until the partitions that are there after it have all promised a timestamp."""
    while True:
        for stream in list(reading.promised):
            while reading.promised[stream] < upto_ts and not reading.is_at_end(stream):
                reading.read(stream, rng.choice((1, 2, 5, 40)))
            if rng.random() < 0.3:
                reading.read(stream, rng.choice((1, 5, 50)))
        reading.list()
        if reading.promised and min(reading.promised.values()) >= upto_ts:
            return
        if all(map(reading.is_at_end, reading.promised)):
            assert not log.is_shown
            log.advance(rng.choice((1, 3, 20, 100)))
            reading.list()


def noting_counts(grow, counts):
    """Return ``Topics.grow`` that notes the numbers of partitions at once: an added one may still be empty."""

    def noting(topics, rng):
        topic = grow(topics, rng)
        counts.update(topics.counts)
        return topic

    return noting


def assert_counted(seed, *, shape_changes=None, **changes):
    """Read a random log to its end; return how many segments were counted, and how many stopped."""
    rng = random.Random(seed)
    history, options = drawn_feed(seed, rng, **changes)
    producer = Producer(history, options)
    counts = {options.topic: options.partitions}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Topics, "grow", noting_counts(Topics.grow, counts))
        log = Log(producer.log(), counts, hidden=options.growth > 0, protocol=options.form.protocol)
    whole = Producer(history, replace(options, replays=0, upgrade=False)).log()
    wanted = changes_of(Log(whole, protocol=options.form.protocol))
    times = sorted({ts for commits in wanted.values() for ts in commits})
    outcomes = Counter()
    for upto_ts, reading in segments(Reading(log, 0), log, rng, times, producer.final_ts):
        reading.rows = [row._replace(shape=row.shape._replace(**(shape_changes or {}))) for row in reading.rows]
        for table, commits in wanted.items():
            done = Counter()
            for ts, changed in commits.items():
                if reading.checkpoint_ts < ts <= upto_ts:
                    done.update(changed)
            try:
                assert reading.net(table, upto_ts) == without_zeros(done)
            except AmbiguousRows:  # the remedy writes the table as it is upstream
                outcomes["stopped"] += 1
            else:
                outcomes["counted"] += 1
    return outcomes


@pytest.mark.parametrize("seed", seeds(range(17000, 18000), daily=20))
def test_s22_each_segment_counts_what_upstream_did_or_stops(seed):
    assert assert_counted(seed)


@pytest.mark.parametrize("seed", seeds(range(17021, 18000), daily=8))
def test_rows_that_come_again_in_another_number_of_partitions_count_or_stop(seed):
    assert assert_counted(seed, growth=3)


@pytest.mark.parametrize("seed", seeds(range(3, 300), daily=8))
def test_rows_of_physical_partitions_in_any_order_count_or_stop(seed, monkeypatch):
    """Equal rows are in two partitions here, as in none of TiDB: what is right for them is right for rows that partitions keep apart."""
    item, rng = ItemMaker._item, random.Random(seed)
    monkeypatch.setattr(ItemMaker, "_item", lambda *given: replace(item(*given), half=rng.randrange(2)))
    assert_counted(seed, shape_changes={"partitioned": True}, flavour=Flavour.TICDC)


@pytest.mark.parametrize(("form", "least"), [(WireFormat.OPEN_PROTOCOL, 5), (WireFormat.CANAL_JSON, 3), (WireFormat.SIMPLE, 2)])
def test_most_segments_count(form, least):
    """Equal rows of one record are real, and only Open Protocol has several rows in a record."""
    outcomes = sum((assert_counted(seed, form=form) for seed in range(17000, 17010)), Counter())
    assert outcomes["counted"] > least * outcomes["stopped"] > 0
