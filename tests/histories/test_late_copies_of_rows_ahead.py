"""``consistency = "row"``: a task that runs twice, the second time late, changes nothing: between two phases, and after a refused step."""

import sqlite3
from dataclasses import replace

import pytest

from applier.sinks.progress import WriteState
from applier.tasks import plan
from tests.builders.handwritten import KEY, ONE, PLAIN, STRING_KEY, TWO, ddl, everywhere, log_of, resolved, row, rows_of
from tests.builders.wire import column
from tests.histories.test_any_history_ends_identical import assert_identical
from tests.histories.test_rows_ahead import BY_TABLE, begun, version, world
from tests.rig.fake_source import FakeSource
from tests.rig.late_copies import LateCopies
from tests.rig.local_replica import STRICT, sqlite_replica
from tests.rig.seeds import seeds

WORDS = "CREATE TABLE orders (id VARCHAR(9) COLLATE utf8mb4_bin PRIMARY KEY, n INT)"


@pytest.fixture
def large_steps(monkeypatch):
    """Every step is written by several tasks."""
    monkeypatch.setattr(plan, "SMALL_SEGMENT_ROWS", 0)


def word(ts, code, number, **more):
    return row(ts, id=column(15, STRING_KEY | 8, code), n=column(3, PLAIN, number), **more)


def respelled():
    """One spelling of a key is deleted, another one is written: one row of a sink that ignores trailing spaces."""
    first = begun((ONE, word(20, "a ", 1)), *everywhere(resolved(21)), create=WORDS)
    return first, begun(
        (ONE, word(20, "a ", 1)), *everywhere(resolved(21)),
        (ONE, word(30, "a ", 1, deleted=True)), (ONE, word(30, "a", 2)), (ONE, resolved(40)), create=WORDS,
    )  # fmt: skip


@pytest.mark.usefixtures("large_steps")
def test_a_late_delete_removes_no_row_that_its_step_writes(tmp_path):
    first, then = respelled()
    replica = sqlite_replica(tmp_path, FakeSource(first), rows=BY_TABLE, new_runner=LateCopies)
    replica.catch_up()
    replica.source = FakeSource(then)
    replica.catch_up()
    assert rows_of(tmp_path) == [("a", 2)]
    assert set(replica.runner.ended) == {WriteState.RELOAD}


def code(ts, key, number):
    return row(ts, "codes", id=column(3, KEY, key), n=column(3, PLAIN, number))


@pytest.mark.usefixtures("large_steps")
def test_a_late_copy_of_a_refused_step_writes_nothing_over_the_next_one(tmp_path):
    create = ddl(10, "CREATE TABLE codes (id INT PRIMARY KEY, n INT)", table="codes")
    made = begun(*everywhere(create))
    keys = range(12)
    log = [*made, *log_of(
        (ONE, version(20, 1, 13)), (ONE, resolved(21)),
        *((TWO, code(20, key, 1)) for key in keys), *((TWO, code(30, key, 2)) for key in keys), (TWO, resolved(40)),
    )]  # fmt: skip
    replica = sqlite_replica(tmp_path, FakeSource(made), rows=replace(BY_TABLE, most_rows=len(keys)), new_runner=LateCopies)
    replica.accept, replica.quarantines = STRICT, frozenset({"rejected"})
    replica.catch_up()
    with sqlite3.connect(tmp_path / "replica.db") as connection:
        connection.execute("CREATE TRIGGER refusal BEFORE INSERT ON \"shop.orders\" WHEN NEW.n = 13 BEGIN SELECT RAISE(ABORT, '13'); END")
    replica.source = FakeSource(log)
    assert replica.catch_up().checkpoint_ts == 21
    assert len(replica.quarantine()) == 1
    assert rows_of(tmp_path, "shop.codes") == [(key, 2) for key in keys]
    assert replica.runner.ended
    assert set(replica.runner.ended) == {WriteState.RELOAD}


@pytest.mark.parametrize("seed", seeds(range(160, 168), daily=4))
def test_histories_whose_tasks_all_run_again_later_end_identical(seed, tmp_path, row_steps, request):
    if seed % 2:
        request.getfixturevalue("large_steps")
    history, producer, log, rows = world(seed, growth=0)
    replica = sqlite_replica(tmp_path, FakeSource(log), rows=rows, new_runner=LateCopies)
    assert replica.catch_up().checkpoint_ts == producer.final_ts
    assert row_steps
    # COMMITTED: the tasks of the step behind it do not move the window themselves, so the copy finds that its own step was committed.
    assert set(replica.runner.ended) <= {WriteState.RELOAD, WriteState.COMMITTED}
    assert replica.runner.rows_again == 0
    assert_identical(history, producer.final_ts, replica.url)
