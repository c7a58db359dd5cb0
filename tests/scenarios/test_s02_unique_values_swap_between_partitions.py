"""S2: two rows of two partitions exchange the values of a unique key in one transaction."""

import pytest

from applier.coordinator import Policy
from tests.builders.handwritten import KEY, UNIQUE, resolved, row
from tests.builders.stage import P0, P1, Stage, create
from tests.builders.wire import column

SEATS = create(10, columns="id INT PRIMARY KEY, seat INT NOT NULL, UNIQUE KEY one_seat (seat)")
UK = UNIQUE - 2  # unique, and not the handle key


def sits(ts, who, seat, *, was=None, deleted=False):
    head, value = row(ts, deleted=deleted, id=column(3, KEY, who), seat=column(3, UK, seat))
    return head, value if was is None else value | {"p": {"id": column(3, KEY, who), "seat": column(3, UK, was)}}


def seated(tmp_path):
    stage = Stage(tmp_path, policy=Policy(segment_rows=1)).everywhere(SEATS)
    return stage.write(P0, sits(20, 1, 100)).write(P1, sits(20, 2, 200)).everywhere(resolved(25))


@pytest.mark.parametrize("order", [(P0, P1), (P1, P0)])
def test_s2_a_swap_that_the_producer_splits_ends_with_both_rows(tmp_path, order):
    stage = seated(tmp_path)
    swaps = {P0: (sits(30, 1, 100, deleted=True), sits(30, 1, 200)), P1: (sits(30, 2, 200, deleted=True), sits(30, 2, 100))}
    for stream in order:
        stage.write(stream, *swaps[stream])
    stage.everywhere(resolved(40)).catch_up()
    assert stage.seen[-2:] == [([(1, 100), (2, 200)],), ([(1, 200), (2, 100)],)]


@pytest.mark.parametrize("order", [(P0, P1), (P1, P0)])
def test_s2_a_swap_in_raw_updates_ends_with_both_rows(tmp_path, order):
    stage = seated(tmp_path)
    swaps = {P0: sits(30, 1, 200, was=100), P1: sits(30, 2, 100, was=200)}
    for stream in order:
        stage.write(stream, swaps[stream])
    stage.everywhere(resolved(40)).catch_up()
    assert stage.seen[-2:] == [([(1, 100), (2, 200)],), ([(1, 200), (2, 100)],)]


def test_s2_a_value_that_is_freed_on_one_partition_and_taken_on_the_other_removes_no_row(tmp_path):
    stage = seated(tmp_path)
    stage.write(P1, sits(31, 2, 100, was=200)).write(P0, sits(30, 1, 300, was=100))
    stage.everywhere(resolved(40)).catch_up()
    assert stage.rows() == [(1, 300), (2, 100)]
