"""Holds a living upstream still, waits until the replica has everything, and compares every value of every table."""

import time
from dataclasses import dataclass
from itertools import islice
from typing import Final

from applier.demo.simulator.catalogue import Catalogue
from applier.demo.simulator.compare import differences
from applier.demo.simulator.schema import Table
from applier.model.errors import ApplierError, Remedy, RetryableSinkError
from applier.model.events import TableName
from applier.model.segment import is_past
from applier.sinks.registry import open_sink
from applier.sinks.settings import SinkSettings
from tests.rig.live_upstream.feed import history_of
from tests.rig.live_upstream.upstream_copy import FeedState, UpstreamCopy
from tests.rig.oracle import read_facts

HOLD_TIMEOUT_S: Final = 30
POLL_S: Final = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """What was compared: so many tables and rows. ``problems``: what differs; () if nothing does."""

    tables: int
    rows: int
    problems: tuple[str, ...]


def compare_live(copy_url: str, replica: SinkSettings, *, within_s: float, prefix: str = "") -> Compared:
    """Compare the replica with upstream. ApplierError if the feed cannot be held, or the replica does not get so far in time."""
    with UpstreamCopy(copy_url, prefix) as copy:
        if not copy.hold(HOLD_TIMEOUT_S):
            raise ApplierError(
                "the simulated upstream cannot be held",
                remedy=Remedy("demo.run-comparison-alone", "Run the comparison again when no other one is running"),
            )
        state = copy.state()
        _wait_for(replica, state, within_s)
        expected, actual = read_facts(copy_url, prefix), read_facts(replica.url)
        return Compared(
            tables=len(expected.tables),
            rows=sum(len(table.rows) for table in expected.tables.values()),
            problems=tuple(differences(expected, actual, tables_after(state))),
        )


def _wait_for(replica: SinkSettings, state: FeedState, within_s: float) -> None:
    """Wait until all of upstream's rows and DDLs are in the replica."""
    deadline = time.monotonic() + within_s
    with open_sink(replica) as sink:
        while True:
            try:
                progress = sink.load()
            except RetryableSinkError:  # it restarts: the next look will succeed
                progress = None
            # Above the last commit: a DDL at the checkpoint may be unfinished.
            if progress is not None and is_past(state.last_ts, progress.checkpoint_ts):
                return
            if time.monotonic() > deadline:
                remedy = Remedy("demo.see-status-of-comparison", "Run `applier status`: it says what the replica waits for")
                raise ApplierError("the replica has not caught up in time", remedy=remedy, seconds=within_s)
            time.sleep(POLL_S)


def tables_after(state: FeedState) -> dict[TableName, Table]:
    """Return upstream's definitions after so many steps."""
    catalogue = Catalogue()
    for step in islice(history_of(state.seed), state.steps):
        catalogue.change(step.rows)
        for ddl in step.ddls:
            catalogue.execute(ddl)
    return {table.table.name: table.table for table in catalogue}
