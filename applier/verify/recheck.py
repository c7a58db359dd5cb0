"""Looks again at rows that differed: where upstream cannot show its past, they may have been on their way to the sink.

All of them are read in one moment, so what still differs, with upstream's rows, belongs to one checkpoint.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from applier.model.events import TableName
from applier.model.position import NO_TS, Ts
from applier.model.segment import is_past
from applier.sources.kafka.tso import later_by
from applier.verify.comparison import TableComparison
from applier.verify.difference import TableResult
from applier.verify.moment import Sides
from applier.verify.scope import Scope
from applier.verify.table_pair import TablePair

POLL_S: Final = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long rows may be on their way: ``tries`` times up to ``wait_s``."""

    tries: int = 5
    wait_s: float = 10.0
    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


def look_again(sides: Sides, pairs: Mapping[TableName, TablePair], results: list[TableResult], *, keeps_rows: bool) -> Ts:
    """Replace the differences of the tables by what differs now; return the checkpoint at which they were read."""
    with sides.moment() as ts:
        for result in results:
            if result.differences:
                comparison = TableComparison(pairs[result.name], sides, len(result.differences))
                keys = [each.key for each in result.differences]
                result.differences = list(comparison.look_up(keys, keeps_rows=keeps_rows))
            elif _is_whole(pairs, result):
                again = TableComparison(pairs[result.name], sides, 0).compare_in(ts, Scope())
                result.upstream, result.sink, result.is_cut = again.upstream, again.sink, again.is_cut
    return ts


def wait_for_rows(sides: Sides, pairs: Mapping[TableName, TablePair], results: list[TableResult], patience: Patience) -> None:
    """Look again until nothing differs, or ``tries`` times, each when the sink has passed upstream's time of the comparison before."""
    for _ in range(patience.tries):
        if not any(result.differences or _is_whole(pairs, result) for result in results):
            return
        _wait_for_checkpoint(sides, later_by(NO_TS, sides.upstream.clock_ms()), patience)
        look_again(sides, pairs, results, keeps_rows=False)


def _is_whole(pairs: Mapping[TableName, TablePair], result: TableResult) -> bool:
    """Return whether a table without a key differed: it can only be compared as a whole."""
    return not (result.is_equal or result.problem or pairs[result.name].key)


def _wait_for_checkpoint(sides: Sides, ts: Ts, patience: Patience) -> None:
    """Wait until the sink's checkpoint has passed ``ts``, at most ``wait_s``: upstream's clock may not be the one of the timestamps."""
    deadline_s = patience.now() + patience.wait_s
    while patience.now() < deadline_s:
        sides.sink.begin()
        try:
            checkpoint_ts = sides.sink.checkpoint_ts() or NO_TS
        finally:
            sides.sink.end()
        if is_past(ts, checkpoint_ts):
            return
        patience.sleep(POLL_S)
