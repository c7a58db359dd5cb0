"""The comparison of the demo: the replica against the oracle."""

import sqlite3
from contextlib import closing

import pytest

from applier.demo.comparison import DurableState, compare, money_in, steps_until
from applier.demo.directory import DemoDirectory
from applier.demo.simulator.history import History, HistoryOptions
from applier.demo.simulator.sqlite_oracle import SqliteOracle

HISTORY = History(5, HistoryOptions(transactions=40, ddl_share=0.3))


@pytest.fixture
def files(tmp_path):
    files = DemoDirectory(tmp_path / "demo")
    files.clear()
    return files


def write_replica(files, steps):
    """Write the replica with the oracle's own code: the two must then be equal."""
    with closing(SqliteOracle(files.replica)) as replica:
        replica.apply(steps)


def step_with_several_ddls():
    for seed in range(100):
        for step in History(seed, HISTORY.options):
            if len(step.ddls) > 1 and step.rows:
                return seed, step
    raise AssertionError("no history has such a step")


def test_an_equal_replica_has_a_verdict_per_table_without_problems(files):
    write_replica(files, HISTORY)
    verdicts = compare(files.replica, HISTORY, files.oracle)
    assert [v.problems for v in verdicts] == [()] * len(verdicts)
    assert {"bank.accounts", "shop.orders"} <= {v.name for v in verdicts}
    assert sum(v.rows for v in verdicts) > 0
    assert money_in(files.replica) == HISTORY.money_total()


@pytest.mark.parametrize(
    ("damage", "table"),
    [
        ('UPDATE "bank.accounts" SET balance = balance + 1 WHERE id = (SELECT MIN(id) FROM "bank.accounts")', "bank.accounts"),
        ('DELETE FROM "shop.wallets" WHERE owner = (SELECT MIN(owner) FROM "shop.wallets")', "shop.wallets"),
        ('DROP TABLE "shop.order_items"', "shop.order_items"),
        ('CREATE TABLE "shop.surplus" (id)', "shop.surplus"),
        ('CREATE VIEW "shop.watch" AS SELECT 1 AS one', "views"),
    ],
)
def test_a_difference_is_found_in_its_table_and_only_there(files, damage, table):
    write_replica(files, HISTORY)
    with closing(sqlite3.connect(files.replica, isolation_level=None)) as connection:
        connection.execute(damage)
    assert [v.name for v in compare(files.replica, HISTORY, files.oracle) if v.problems] == [table]


def test_at_a_ddls_own_ts_upstream_is_what_the_ledger_says(tmp_path):
    seed, step = step_with_several_ddls()
    history = History(seed, HISTORY.options)
    for done in range(len(step.ddls) + 1):
        state = DurableState(checkpoint_ts=step.ts, epoch=1, window_id=1, ddls_at_checkpoint=done)
        last = list(steps_until(history, state))[-1]
        assert (last.ts, last.rows, last.ddls) == (step.ts, step.rows, step.ddls[:done])


def test_a_killed_replica_is_compared_with_upstream_at_its_checkpoint(files):
    steps = list(HISTORY)
    half = steps[: len(steps) // 2]
    state = DurableState(checkpoint_ts=half[-1].ts, epoch=1, window_id=1, ddls_at_checkpoint=len(half[-1].ddls))
    write_replica(files, half)
    assert not any(v.problems for v in compare(files.replica, steps_until(HISTORY, state), files.oracle_at_kill))
    next_step = steps[len(half)]
    files.replica.unlink()
    write_replica(files, [*half, next_step])
    assert any(v.problems for v in compare(files.replica, steps_until(HISTORY, state), files.oracle_at_kill)) == bool(
        next_step.rows or next_step.ddls
    )
