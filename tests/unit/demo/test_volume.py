"""How much happens upstream."""

from applier.demo.simulator.history import History, HistoryOptions, volume_of

HISTORY = History(5, HistoryOptions(transactions=40, ddl_share=0.3))


def test_the_volume_is_what_the_history_holds():
    steps = list(HISTORY)
    volume = volume_of(HISTORY)
    assert (volume.rows, volume.ddls) == (sum(len(s.rows) for s in steps), sum(len(s.ddls) for s in steps))
    assert volume.transactions == sum(bool(s.rows) for s in steps)
    assert (volume.middle_ts, volume.last_ts) == (steps[len(steps) // 2].ts, steps[-1].ts)
