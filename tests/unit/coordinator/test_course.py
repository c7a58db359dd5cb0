"""What the records of a stream weigh, and how many it has per unit of upstream time."""

import pytest

from applier.coordinator.pace import BYTES_PER_DDL, GUESS, HURRY, LEAST_PER_RECORD, SHRINKING, Course
from applier.model.range_report import RangeId, RangeReport, ResumePoint
from tests.timeline.scenario import P0


def read(course, records, first, last, *, resolved=0):
    hold = (ResumePoint(0, first), ResumePoint(records - 1, last)) if last else ()
    course.follow(RangeReport(range=RangeId(P0, 0, records), resolved_ts=resolved, resume_points=hold), records)
    return course


def weighing_one():
    """A course whose records have one byte each."""
    course = Course()
    course.bytes_per_record = 1.0
    return course


def test_nothing_is_known_until_events_of_two_times_were_read():
    course = read(weighing_one(), 1, 1000, 1000, resolved=1001)
    assert (course.bytes_per_ts, course.first_ts) == (0.0, 1000)
    assert read(course, 10, 1100, 1105, resolved=1106).bytes_per_ts > 0
    assert course.first_ts == 1000


def test_time_passes_from_the_last_event_that_was_read_and_not_from_the_checkpoint():
    course = read(weighing_one(), 100, 10**17, 10**17 + 50, resolved=10**17 + 51)
    assert course.bytes_per_ts == 2.0
    assert read(course, 100, 10**17 + 60, 10**17 + 100, resolved=10**17 + 101).bytes_per_ts == pytest.approx(2.0)


def test_a_burst_weighs_as_little_as_it_was_short():
    course = weighing_one()
    for second in range(10):
        read(course, 10, 1000 * second + 1, 1000 * second + 1000, resolved=1000 * second + 1001)
    steady = course.bytes_per_ts
    read(course, 1000, 10_001, 10_002, resolved=10_003)
    read(course, 10, 10_010, 11_010, resolved=11_011)
    assert course.bytes_per_ts < 100 * steady


def test_more_and_more_is_read_of_a_stream_that_promises_nothing_until_it_does():
    course = read(weighing_one(), 100, 1, 101, resolved=102)
    for hurry in (HURRY, HURRY**2):
        read(course, 100, 103 + 100 * int(hurry), 203 + 100 * int(hurry))
        assert course._hurry == hurry
    read(course, 1, 10**6, 10**6, resolved=10**6 + 1)
    assert course._hurry == 1


def test_a_record_is_taken_for_a_batch_of_rows_until_one_was_read():
    course = Course()
    assert (course.expected_bytes(10), course.records_of(10 * GUESS), course.records_of(1)) == (10 * GUESS, 10, 1)


def test_large_records_count_at_once_and_small_ones_step_by_step():
    course = Course()
    course.weigh(10, 10 << 20)
    assert (course.expected_bytes(2), course.records_of(1 << 20)) == (2 << 20, 1)
    course.weigh(10, 10)
    assert course.bytes_per_record == (1 << 20) / SHRINKING
    for _ in range(9):
        course.weigh(1000, 0)
    assert course.bytes_per_record == LEAST_PER_RECORD


def test_ddls_count_although_they_leave_nothing_in_the_cache():
    course = Course()
    for _ in range(9):
        course.weigh(100, 0, ddls=50)
    assert course.bytes_per_record == BYTES_PER_DDL / 2
