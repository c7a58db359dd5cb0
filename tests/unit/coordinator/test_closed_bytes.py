"""What waits to be written, and what lies ahead of W."""

from applier.coordinator.cache import Cache
from applier.model.range_report import RangeId, RangeReport
from tests.timeline.scenario import P0


def report(start, size, max_ts):
    return RangeReport(range=RangeId(P0, start, start + 1), resolved_ts=0, rows=1, bytes=size, max_ts=max_ts)


def test_a_range_is_closed_when_the_watermark_has_reached_its_last_row():
    cache, first, second = Cache(), report(0, 10, 5), report(1, 200, 9)
    cache.open_batch([first.range, second.range])
    cache.add(first)
    cache.add(second)
    counted = cache.closed
    counted.close(4)
    assert (counted.closed, counted.beyond) == (0, 210)
    counted.close(5)
    assert (counted.closed, counted.beyond) == (10, 200)
    counted.close(3)
    assert (counted.closed, counted.beyond) == (10, 200), "W has stepped back for a new partition"
    cache.remove((first.range, second.range))
    counted.close(9)
    assert (counted.closed, counted.beyond) == (0, 0)
