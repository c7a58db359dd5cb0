"""The small summaries of a range: the resume points that say from where to read again, and row counts by commit_ts."""

from bisect import bisect_right

from hypothesis import given
from hypothesis import strategies as st

from applier.model.position import Offset, Ts
from applier.model.range_report import ResumePoint
from applier.tasks.range_summary import MAX_RESUME_POINTS, MAX_ROW_COUNTS, count_rows, merge_resume_points


def first_at_least(points, value):
    return next((point.offset for point in points if point.value >= value), None)


def climbing(values):
    top, points = 0, []
    for offset, value in enumerate(values):
        if value > top:
            top = value
            points.append(ResumePoint(Offset(offset), Ts(value)))
    return points


@given(st.lists(st.integers(1, 5000), max_size=2000), st.integers(1, 5001))
def test_merged_hold_points_never_name_a_later_offset_than_the_exact_one(values, wanted):
    points = climbing(values)
    exact, merged = first_at_least(points, wanted), first_at_least(merge_resume_points(points), wanted)
    assert (exact is None) == (merged is None)
    assert exact is None or merged <= exact


def test_many_hold_points_are_thinned():
    points = climbing(range(1, 10_000))
    merged = merge_resume_points(points)
    assert len(merged) <= MAX_RESUME_POINTS
    assert (merged[0].offset, merged[-1].value) == (0, 9_999)


def test_few_hold_points_are_kept_as_they_are():
    points = climbing([5, 3, 9, 9, 2, 11])
    assert merge_resume_points(points) == (ResumePoint(Offset(0), Ts(5)), ResumePoint(Offset(2), Ts(9)), ResumePoint(Offset(5), Ts(11)))


@given(st.lists(st.integers(1, 300), max_size=1500))
def test_row_counts_are_cumulative_exact_and_end_with_all_rows(values):
    values.sort()
    counts = count_rows(values)
    assert len(counts) <= MAX_ROW_COUNTS + 1
    assert all(count.rows == bisect_right(values, count.ts) for count in counts)
    assert [c.ts for c in counts] == sorted({c.ts for c in counts})
    assert (counts[-1].ts, counts[-1].rows) == (values[-1], len(values)) if values else counts == ()
