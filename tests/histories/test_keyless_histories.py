"""Random histories with tables without a key, and equal rows in one transaction: the sink ends as the oracle, whatever is sent again."""

import sqlite3
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from applier.demo.simulator.dispatch import Dispatcher
from applier.demo.simulator.history import History, HistoryOptions
from applier.demo.simulator.item import LargeRowOption, LargeRowSettings
from applier.demo.simulator.json_text import Flavour
from applier.demo.simulator.producer import Producer, ProducerOptions
from applier.demo.simulator.table_family import USUAL_FAMILIES, TableFamily
from applier.demo.simulator.wire_format import WireFormat
from applier.model.errors import NeedsOperator, RowRefused
from applier.planner.keyless import AmbiguousRows, EqualRows
from applier.sources.claim_check.settings import ClaimCheckSettings
from applier.sources.claim_check.store import FsspecStore
from applier.sources.ticdc.large_row import WholeRowSources
from tests.rig.fake_source import FakeSource
from tests.rig.local_replica import sqlite_replica
from tests.rig.oracle import compare, load_dump, open_oracle
from tests.rig.protocol import in_format
from tests.rig.seeds import seeds

FAMILIES = frozenset({TableFamily.KEYLESS, *sorted(USUAL_FAMILIES)[:2]})


def world(seed, *, twins=True, transactions=80, **changes):
    history = History(seed, HistoryOptions(transactions=transactions, families=FAMILIES, keyless_twins=twins, live_rows=12))
    drawn = ProducerOptions.drawn(seed)
    images = replace(drawn.images, old_value=True, delete_only_handle_key=False)
    known = {"partitions": 1 + seed % 4, "growth": 0, "announced_restarts": True}
    options = replace(drawn, images=images, **known | changes)
    producer = Producer(history, in_format(options))
    return history, producer, list(producer.log())


def assert_identical(history, final_ts, url):
    oracle = open_oracle("sqlite:///:memory:")
    try:
        oracle.apply(history, final_ts)
        assert compare(oracle, url) == []
    finally:
        oracle.close()


@pytest.mark.parametrize("seed", seeds(range(3000, 3030), daily=10))
def test_s22_the_sink_equals_the_oracle(seed, tmp_path):
    history, producer, log = world(seed, replays=seed % 5)
    # Each restart shows itself: equal rows of one run are real.
    replica = sqlite_replica(tmp_path, FakeSource(log), writes_keyless=True, equal_rows=EqualRows.ALL)
    # Killed and begun again half-way: what follows is a replay to the sink.
    if seed % 2:
        replica.catch_up(until_ts=producer.final_ts // 2 + history.options.start_ms * 2**17)
    assert replica.catch_up().checkpoint_ts == producer.final_ts
    assert_identical(history, producer.final_ts, replica.url)


SMALL_LIMITS = {WireFormat.CANAL_JSON: 400, WireFormat.SIMPLE: 310, WireFormat.SIMPLE_AVRO: 150}
"""Limits that a placeholder without columns keeps, and most rows do not."""


@pytest.mark.parametrize("form", SMALL_LIMITS)
@pytest.mark.parametrize("flavour", Flavour)
def test_large_rows_of_tables_without_a_key_come_from_their_objects(form, flavour, tmp_path):
    large = LargeRowSettings(option=LargeRowOption.CLAIM_CHECK, limit=SMALL_LIMITS[form], directory=tmp_path / "objects", location="s3://b")
    history = History(3040, HistoryOptions(transactions=40, families=frozenset({TableFamily.KEYLESS}), keyless_twins=True, live_rows=12))
    options = ProducerOptions(seed=3040, partitions=3, flavour=flavour, large=large, replays=2, announced_restarts=True)
    producer = Producer(history, in_format(options, form))
    source = FakeSource(producer.log())
    source.whole_rows = WholeRowSources(claims=FsspecStore(ClaimCheckSettings(storage=str(tmp_path / "objects"))))
    replica = sqlite_replica(tmp_path, source, writes_keyless=True, equal_rows=EqualRows.ALL)
    assert replica.catch_up().checkpoint_ts == producer.final_ts
    assert_identical(history, producer.final_ts, replica.url)
    assert len(list((tmp_path / "objects").iterdir())) > 20


def columns_world(seed, *, twins):
    """A changefeed that spreads the versions of a row over partitions, and goes back without a word."""
    spread = {"dispatcher": Dispatcher.COLUMNS, "partitions": 2 + seed % 3, "replays": seed % 6, "announced_restarts": False}
    return world(seed, twins=twins, transactions=40, **spread)


def healed_catch_up(replica, history, directory):
    """Catch up; at each stop for equal rows follow the remedy to the letter. Return the checkpoint and how often it stopped."""
    stops = 0
    while True:
        try:
            return replica.catch_up().checkpoint_ts, stops
        except AmbiguousRows as error:
            stopped = error
        stops += 1
        write_again(history, *guessed(replica, history, stopped), directory, stops)


def guessed(replica, history, stopped):
    """Apply the commit that has stopped the replica by a guess. Return the checkpoint, and the tables of which anything was guessed."""
    # One later where a DDL has the same ts: at the checkpoint itself it would not have run.
    until_ts, ddls_at = stopped.facts["commit_ts"], {step.ts for step in history if step.ddls}
    while until_ts in ddls_at:
        until_ts += 1
    named = stopped.facts["tables"].split(", ")
    while True:
        replica.equal_rows_of |= dict.fromkeys(named, EqualRows.ONCE)
        try:
            checkpoint_ts = replica.catch_up(until_ts=until_ts).checkpoint_ts
        except AmbiguousRows as error:
            named = error.facts["tables"].split(", ")
        except RowRefused as error:
            # The sink lacks a row: that table was guessed wrong.
            if replica.equal_rows_of[error.facts["table"]] is EqualRows.ALL:
                raise
            named, replica.equal_rows_of[error.facts["table"]] = [], EqualRows.ALL
        else:
            tables, replica.equal_rows_of = set(replica.equal_rows_of), {}
            return checkpoint_ts, tables


def write_again(history, checkpoint_ts, tables, directory, number):
    """Write some tables as upstream has them at the checkpoint."""
    dump = Path(directory) / f"upstream-{number}.db"
    load_dump(history, checkpoint_ts, f"sqlite:///{dump}")
    connection = sqlite3.connect(Path(directory) / "replica.db")
    with closing(connection), connection:
        connection.execute("ATTACH ? AS upstream", (str(dump),))
        for table in tables:
            columns = ", ".join(f'"{name}"' for _, name, *_ in connection.execute(f'PRAGMA upstream.table_info("{table}")'))
            connection.execute(f'DELETE FROM main."{table}"')
            connection.execute(f'INSERT INTO main."{table}" ({columns}) SELECT {columns} FROM upstream."{table}"')


@pytest.mark.parametrize("twins", [False, True], ids=["rows that differ", "equal rows"])
@pytest.mark.parametrize("seed", seeds(range(3100, 3120), daily=3))
def test_repeated_rows_are_told_apart_or_stop_by_their_name_and_the_remedy_heals(seed, twins, tmp_path):
    history, producer, log = columns_world(seed, twins=twins)
    replica = sqlite_replica(tmp_path, FakeSource(log), writes_keyless=True)
    if seed % 2:
        with suppress(NeedsOperator):  # begun again half-way, where it gets so far
            replica.catch_up(until_ts=producer.final_ts // 2 + history.options.start_ms * 2**17)
    checkpoint_ts, stops = healed_catch_up(replica, history, tmp_path)
    assert checkpoint_ts == producer.final_ts
    assert_identical(history, producer.final_ts, replica.url)
    # Rows that differ stop only where a producer has repeated some.
    assert twins or not stops or producer.counts.keys() & {"restart", "upgrade", "table move", "retry"}
