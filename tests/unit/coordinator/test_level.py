"""Up to which time streams can be read together with so many bytes."""

import pytest

from applier.coordinator.pace import Course, level_of


@pytest.mark.parametrize(
    ("courses", "size", "level"),
    [
        ([Course(10, 2.0, 1000)], 20, 20),
        ([Course(0, 1.0, 1000), Course(0, 3.0, 1000)], 40, 10),
        ([Course(0, 1.0, 1000), Course(10, 1.0, 1000)], 30, 20),
        ([Course(0, 1.0, 1000), Course(90, 1.0, 1000)], 30, 30),
        ([Course(0, 1.0, 5), Course(0, 1.0, 1000)], 30, 25),
        ([Course(0, 1.0, 5), Course(0, 1.0, 5)], 30, 5),
    ],
    ids=["one", "two rates", "one begins later", "one is too far ahead", "one ends", "all end"],
)
def test_the_level_is_where_the_bytes_are_used_up(courses, size, level):
    assert level_of(courses, size) == pytest.approx(level)


def test_what_all_streams_have_up_to_the_level_is_what_was_given():
    courses = [Course(3 * number % 50, 1 + number % 7, 40 + number * 11 % 300) for number in range(100)]
    level = level_of(courses, 5_000)
    assert sum(min(course.size, max(0.0, course.rate * (level - course.begins))) for course in courses) == pytest.approx(5_000)
