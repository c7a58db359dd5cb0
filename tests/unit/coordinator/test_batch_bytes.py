"""What one plan had read is freed together."""

from applier.coordinator.cache import BatchBytes
from applier.model.range_report import RangeId
from tests.timeline.scenario import P0

A, B, C = (RangeId(P0, at, at + 1) for at in range(3))


def test_the_bytes_of_a_batch_count_until_its_last_range_is_released():
    batches = BatchBytes()
    batches.open([A, B])
    batches.open([C])
    batches.add(A, 10)
    batches.add(C, 5)
    batches.release(A)
    assert batches.bytes == 15, "B is still being read"
    batches.add(B, 7)
    batches.release(C)
    assert batches.bytes == 17
    batches.release(B)
    assert batches.bytes == 0


def test_a_range_that_could_not_be_read_counts_in_its_next_batch():
    batches = BatchBytes()
    batches.open([A])
    batches.release(A)
    batches.open([A, B])
    batches.add(A, 3)
    batches.release(B)
    assert batches.bytes == 3
