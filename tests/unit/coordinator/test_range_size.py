"""How long a range is: bounded by bytes, whatever a record weighs."""

from applier.coordinator.range_size import FIRST_RECORDS, GROWTH, MOST_RECORDS, RANGE_BYTES, RangeSize


def test_a_range_is_as_long_as_a_bounded_number_of_bytes_allows():
    size = RangeSize()
    assert (size.records, size.expected_bytes(10)) == (FIRST_RECORDS, 0)
    size.learn(FIRST_RECORDS, 0)
    assert size.records == FIRST_RECORDS * GROWTH
    size.learn(100, 100 * 1024)
    assert size.records == RANGE_BYTES // 1024
    size.learn(10, 10 * RANGE_BYTES)
    assert (size.records, size.expected_bytes(2)) == (1, 2 * RANGE_BYTES)
    size.learn(1, 1)
    assert size.records == GROWTH
    for _ in range(9):
        size.learn(size.records, 0)
    assert size.records == MOST_RECORDS
