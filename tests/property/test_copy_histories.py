"""Histories of a copy: writers move keys and a unique value between chunks, runs die; the replay makes the sink equal upstream.

The chunks come from the real planner. Upstream is a list of versions: the rows of one table after each transaction. A view is one version
at or behind the start. The sink takes chunks with REPLACE, which removes rows that hold the same unique value, and then the final images.
"""

from hypothesis import given, settings
from hypothesis import strategies as st

from applier.copy.planner import CopyPlanner
from applier.copy.port import ChunkDone, CopyTable, PlannedChunk
from applier.model.events import TableName
from applier.model.position import Ts

KEYS = range(8)
TABLE = CopyTable(name=TableName("shop", "seats"), definition="", digest="d", key=("id",), columns=("id", "u"), has_secondary_key=True)

Rows = dict[int, int]
"""The unique value of each key."""
Change = tuple[int, int | None]
"""A key and its value afterwards; None: deleted."""


@st.composite
def histories(draw: st.DrawFn) -> list[tuple[list[Change], Rows]]:
    """Return transactions: what each changes, and the rows after it. No version has a unique value twice."""
    rows: Rows = draw(st.dictionaries(st.sampled_from(KEYS), st.integers(0, 20), max_size=8))
    rows = {key: value for value, key in {value: key for key, value in rows.items()}.items()}
    found: list[tuple[list[Change], Rows]] = [([], rows)]
    for _ in range(draw(st.integers(0, 12))):
        rows, changes = dict(rows), []
        kind = draw(st.sampled_from(["put", "delete", "swap", "move"]))
        if kind == "put":
            key, value = draw(st.sampled_from(KEYS)), draw(st.integers(0, 20))
            if value not in rows.values():
                rows[key] = value
                changes.append((key, value))
        elif kind == "delete" and rows:
            key = draw(st.sampled_from(sorted(rows)))
            del rows[key]
            changes.append((key, None))
        elif kind == "swap" and len(rows) > 1:
            one, other = draw(st.permutations(sorted(rows)))[:2]
            rows[one], rows[other] = rows[other], rows[one]
            changes += [(one, rows[one]), (other, rows[other])]
        elif kind == "move" and rows and len(rows) < len(KEYS):
            key = draw(st.sampled_from(sorted(rows)))
            there = draw(st.sampled_from([free for free in KEYS if free not in rows]))
            rows[there] = rows.pop(key)
            changes += [(key, None), (there, rows[there])]
        found.append((changes, rows))
    return found


def replace(sink: Rows, key: int, value: int) -> None:
    for other in [other for other, held in sink.items() if held == value]:
        del sink[other]
    sink[key] = value


def bound_behind(rows: Rows, lower: int | None, count: int) -> int | None:
    """Answer as upstream does: the key that lies ``count`` rows behind ``lower``."""
    behind = [key for key in sorted(rows) if lower is None or key > lower]
    return behind[count - 1] if len(behind) > count - 1 else None


def copy(draw: st.DrawFn, versions: list[tuple[list[Change], Rows]], start: int, sink: Rows) -> int:
    """Copy with views of random versions behind ``start``, dying now and then; return the last version that a view has seen."""
    planned: list[PlannedChunk] = []
    while True:
        planner = CopyPlanner([TABLE], {TABLE.name: planned} if planned else {})
        while not planner.is_done:
            view = draw(st.integers(start, len(versions) - 1))
            while walk := planner.walk(draw(st.integers(1, 3))):
                upper = bound_behind(versions[view][1], None if walk.lower is None else int(walk.lower[0]), draw(st.integers(1, 4)))
                chunk = planner.bounded(walk, None if upper is None else (str(upper),))
                planned.append(PlannedChunk(chunk, None))
            tasks = planner.take(draw(st.integers(1, 3)))
            for task in tasks:
                seen = draw(st.integers(start, len(versions) - 1))
                lower, upper_key = task.chunk.lower, task.chunk.upper
                inside = {
                    key: value
                    for key, value in versions[seen][1].items()
                    if (lower is None or key > int(lower[0])) and (upper_key is None or key <= int(upper_key[0]))
                }
                for key, value in inside.items():
                    replace(sink, key, value)
                done = ChunkDone(len(inside), 1, Ts(seen))
                planned[task.chunk.number] = PlannedChunk(task.chunk, done)
                planner.done(task, done)
            if draw(st.integers(0, 5)) == 0:
                break  # the run dies, and the next one takes up what is stored
        else:
            return int(planner.high_ts)


@settings(max_examples=400, deadline=None)
@given(st.data())
def test_the_replay_of_what_lies_behind_the_start_makes_the_sink_equal_at_the_end_of_the_copy(data: st.DataObject) -> None:
    versions = data.draw(histories())
    start = data.draw(st.integers(0, len(versions) - 1))
    sink: Rows = {}
    upto = copy(data.draw, versions, start, sink)
    at = start
    while at < len(versions) - 1:
        # A segment of whole transactions: the last change of each key counts, deletes come first.
        end = data.draw(st.integers(at + 1, len(versions) - 1))
        final = {key: value for changes, _ in versions[at + 1 : end + 1] for key, value in changes}
        for key, value in final.items():
            if value is None:
                sink.pop(key, None)
        for key, value in final.items():
            if value is not None:
                replace(sink, key, value)
        at = end
        if at >= upto:
            assert sink == versions[at][1]
    assert at < upto or sink == versions[at][1]
