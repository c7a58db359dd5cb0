"""S6: the program dies after one partition has promised much and the others little."""

import pytest

from applier.coordinator import Policy
from tests.builders.handwritten import resolved
from tests.builders.stage import P0, P1, Stage, create, put
from tests.rig.faulty_sink import DeathError, Faults, FaultySink


def a_partition_ahead(tmp_path):
    stage = (
        Stage(tmp_path, policy=Policy(segment_rows=5))
        .everywhere(create(10))
        .write(P0, *(put(ts, ts, 1) for ts in range(20, 60)), resolved(60))
    )
    return stage.write(P1, put(25, 1, 1), put(45, 2, 2), resolved(30))


def test_s6_rows_that_were_read_and_not_applied_are_read_again(tmp_path):
    stage = a_partition_ahead(tmp_path)
    assert stage.catch_up().checkpoint_ts == 30
    positions = stage.replica().stored_positions()
    # P0: the schema and the table, then the row at 30, which is kept until the checkpoint is above it.
    assert {stream.partition: place.next_offset for stream, place in positions.items()} == {0: 2 + 10, 1: 3}
    stage.write(P1, resolved(70)).write(P0, resolved(70)).catch_up()
    assert stage.rows() == sorted([(1, 1), (2, 2), *((ts, 1) for ts in range(20, 60))])


@pytest.mark.parametrize("when", ["death before", "death after"])
def test_s6_a_death_at_any_commit_loses_nothing(tmp_path, when):
    stage = a_partition_ahead(tmp_path)
    stage.write(P1, resolved(70)).write(P0, resolved(70))
    died = 0
    for run in range(50):
        dying = stage.replica()
        dying.wrap = lambda sink, nth=run % 4: FaultySink(sink, DiesAt(nth, when))
        try:
            dying.catch_up()
            break
        except DeathError:
            died += 1
    assert died > 3
    assert stage.rows() == sorted([(1, 1), (2, 2), *((ts, 1) for ts in range(20, 60))])


class DiesAt(Faults):
    """Dies at the ``nth`` write."""

    def __init__(self, nth, when):
        super().__init__(0)
        self._left, self._when = nth, when

    def draw(self):
        self._left -= 1
        return self._when if self._left < 0 else None
