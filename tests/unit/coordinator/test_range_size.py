"""What the records of a stream weigh."""

from applier.coordinator.pace import GUESS, LEAST_PER_RECORD, SHRINKING, RangeSize


def test_a_record_is_taken_for_a_batch_of_rows_until_one_was_read():
    size = RangeSize()
    assert (size.expected_bytes(10), size.records_of(10 * GUESS), size.records_of(1)) == (10 * GUESS, 10, 1)


def test_large_records_count_at_once_and_small_ones_step_by_step():
    size = RangeSize()
    size.learn(10, 10 << 20)
    assert (size.expected_bytes(2), size.records_of(1 << 20)) == (2 << 20, 1)
    size.learn(10, 10)
    assert size.bytes_per_record == (1 << 20) / SHRINKING
    for _ in range(9):
        size.learn(1000, 0)
    assert size.bytes_per_record == LEAST_PER_RECORD
