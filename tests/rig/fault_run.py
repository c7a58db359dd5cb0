"""A fault run: a live feed, a supervised daemon, a reader of the money, and one fault after the other; at the end the oracle judges."""

import math
import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from applier.demo.simulator.history import History, HistoryOptions
from applier.model.position import Ts
from tests.rig.checkpoint import CheckpointReader
from tests.rig.fault import Fault, Stage
from tests.rig.live_feed import FeedOptions, LiveFeed, feeding
from tests.rig.money import MoneyReader, reading_money
from tests.rig.supervisor import Supervisor
from tests.rig.upstream import NAME, differences, settled_ddls

RECOVERY_S = 180
BETWEEN_S = (0.2, 2.0)
AT_ONCE_SHARE = 0.3
"""How often the next fault does not wait until the daemon has recovered from the last."""
ENDLESS = 10**9
FEED = FeedOptions(rows_per_s=150, resolved_every_s=0.3, replay_share=0.1)


@dataclass(slots=True)
class Verdict:
    """What a fault run has shown. ``wrong`` is empty if everything is as it must be."""

    faults: Counter[Fault] = field(default_factory=Counter)
    exits: Counter[int] = field(default_factory=Counter)
    steps: int = 0
    rows: int = 0
    ddls: int = 0
    epochs: int = 0
    windows: int = 0
    money_reads: int = 0
    wrong: list[str] = field(default_factory=list)


def live_history(seed: int) -> History:
    """Return a history without an end: money in motion, all kinds of tables, DDLs of every kind now and then."""
    return History(seed, HistoryOptions(transactions=ENDLESS, ddl_share=0.015, live_rows=60))


def run_faults(
    stage: Stage, feed: LiveFeed, faults: Sequence[Fault], say: Callable[[str], None] = lambda _: None, within_s: float = math.inf
) -> Verdict:
    """Let the faults happen while the feed lives, then let everything settle and look at the end. The daemon runs already.

    No fault begins later than ``within_s`` seconds from now: the verdict then is of those that there were.
    """
    until = time.monotonic() + within_s
    verdict = Verdict()
    url = stage.database.url
    with CheckpointReader(url, NAME) as checkpoint, reading_money(url, patient=True) as reader:
        with feeding(feed):
            _recover(checkpoint, feed, stage.supervisor)
            for number, fault in enumerate(faults, 1):
                if time.monotonic() >= until:
                    break
                say(f"{number}/{len(faults)} {fault}")
                stage.inject(fault)
                verdict.faults[fault] += 1
                _go_on(stage.rng, checkpoint, feed, stage.supervisor)
            final_ts = feed.stop()
        assert checkpoint.passes(final_ts, RECOVERY_S), f"the daemon does not reach the end: {checkpoint.read()} of {final_ts}"
        _, verdict.windows, verdict.epochs = checkpoint.read() or (0, 0, 0)
    ended = stage.supervisor.stop()
    if ended.code != 0:
        verdict.wrong.append(f"SIGTERM ended the daemon with {ended.code}: {ended.stderr[-2000:]}")
    _judge(verdict, stage, feed, reader)
    return verdict


def _go_on(rng: random.Random, checkpoint: CheckpointReader, feed: LiveFeed, supervisor: Supervisor) -> None:
    if rng.random() >= AT_ONCE_SHARE:
        _recover(checkpoint, feed, supervisor)
    time.sleep(rng.uniform(*BETWEEN_S))


def _recover(checkpoint: CheckpointReader, feed: LiveFeed, supervisor: Supervisor) -> None:
    """Wait until something is applied that was promised after this moment."""
    assert checkpoint.passes(Ts(feed.promised + 1), RECOVERY_S), f"the daemon does not continue: {supervisor.describe()}"


def _judge(verdict: Verdict, stage: Stage, feed: LiveFeed, reader: MoneyReader) -> None:
    url, supervisor = stage.database.url, stage.supervisor
    verdict.exits.update(supervisor.exits)
    verdict.steps, verdict.rows, verdict.money_reads = len(feed.steps), sum(len(step.rows) for step in feed.steps), reader.reads
    verdict.wrong += [f"the daemon ended with {ended.code}: {ended.stderr[-2000:]}" for ended in supervisor.unexpected]
    verdict.wrong += differences(feed.steps, url)
    made, settled = sorted(step.ts for step in feed.steps for _ in step.ddls), settled_ddls(url)
    verdict.ddls = len(made)
    if made != settled:
        verdict.wrong.append(f"the ledger does not hold every DDL once, as done: {len(settled)} of {len(made)}")
    if not set(reader.totals) <= {0, live_history(0).money_total()} or reader.totals.count(0) > 1:
        verdict.wrong.append(f"a reader saw money that was not there: {reader.totals[:10]}")
