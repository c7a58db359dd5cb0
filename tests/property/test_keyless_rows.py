"""A multiset over replays: what ``planner.keyless`` counts is what upstream did, however often and wherever a producer goes back."""

from array import array
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from applier.model.events import RowKind
from applier.model.position import Offset, Ts
from applier.model.range_report import RepeatPoint
from applier.planner.column_match import origins_of
from applier.planner.keyless import KeylessRows, Repeats, counted_rows, net_rows
from tests.builders.planning import STREAM, Row, chunk, shape

SHAPE = shape(("n", 3, 65))
RETURN = "return"

changes = st.lists(st.tuples(st.sampled_from(list(RowKind)), st.integers(0, 2)), min_size=1, max_size=5)


@st.composite
def sent_events(draw):
    """Return what upstream did, and what a producer sends of it: it stops anywhere, and begins again with a transaction sent before."""
    history = draw(st.lists(changes, min_size=1, max_size=6))
    events = [Row(10 * number, kind, (value,), shape=SHAPE) for number, group in enumerate(history, 1) for kind, value in group]
    log: list = []
    sent = 0
    for is_last in [*[False] * draw(st.integers(0, 4)), True]:
        again = draw(st.sampled_from([event.commit_ts for event in events[: sent + 1]]))
        begin = next(at for at, event in enumerate(events) if event.commit_ts == again)
        # Older rows show that a producer went back; where there are none, its promises do.
        if log and (draw(st.booleans()) or not isinstance(log[-1], Row) or again >= log[-1].commit_ts):
            log.append(RETURN)
        end = len(events) if is_last else draw(st.integers(begin, len(events)))
        log += events[begin:end]
        sent = max(sent, end)
        if end == len(events) or (end == sent and end and events[end].commit_ts > events[end - 1].commit_ts):
            log.append(events[end - 1].commit_ts + 1)
    return events, log


@given(sent_events())
def test_what_is_counted_is_what_upstream_did(case) -> None:
    events, log = case
    points: list[RepeatPoint] = []
    rows: list[Row] = []
    for offset, item in enumerate(log):
        if isinstance(item, Row):
            rows.append(Row(item.commit_ts, item.kind, item.values, offset=offset, shape=SHAPE))
        else:
            points.append(RepeatPoint(Offset(offset), Ts(0 if item == RETURN else item), is_return=item == RETURN))
    assert counted(rows, points) == net(events)


def counted(rows: list[Row], points: list[RepeatPoint]) -> Counter:
    if not rows:
        return Counter()
    taken = chunk(*rows)
    keyless = KeylessRows()
    keyless.feed(taken, array("i", taken.origin))
    images = {number: (str(row.values[0]),) for number, row in enumerate(rows)}
    deleted, inserted = net_rows(counted_rows(keyless.finish(), origins_of(taken), images, Repeats({STREAM: points})))
    found = Counter(images[row] for row in inserted)
    found.subtract(images[row] for row in deleted)
    return Counter({image: number for image, number in found.items() if number})


def net(events: list[Row]) -> Counter:
    wanted: Counter = Counter()
    for event in events:
        wanted[(str(event.values[0]),)] += 1 if event.kind is RowKind.UPSERT else -1
    return Counter({image: number for image, number in wanted.items() if number})
