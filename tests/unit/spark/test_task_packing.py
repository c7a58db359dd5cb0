"""Ranges share listening tasks: as few as their bytes need, at most as many as there are cores, of about equal work."""

import random

import pytest

from applier.model.position import Offset, Stream, Ts
from applier.model.range_report import RangeId
from applier.spark.failing_range import TASK_BYTES, pack
from applier.tasks.listen import ListenTask


def task(partition, expected_bytes):
    range_id = RangeId(Stream("feed", partition), Offset(0), Offset(10))
    return ListenTask(range=range_id, floor_ts=Ts(1), buckets=1, expected_bytes=expected_bytes)


def loads(groups):
    return [sum(one.expected_bytes for one in group) for group in groups]


@pytest.mark.parametrize("expected_bytes", [0, 1, TASK_BYTES // 200])
def test_hundreds_of_quiet_streams_share_one_task(expected_bytes):
    tasks = [task(number, expected_bytes) for number in range(200)]
    assert pack(tasks, 8) == [tasks]


def test_a_backlog_is_spread_over_all_cores_evenly():
    groups = pack([task(number, TASK_BYTES) for number in range(64)], 4)
    assert loads(groups) == [16 * TASK_BYTES] * 4


def test_there_are_no_more_tasks_than_their_bytes_are_worth():
    assert len(pack([task(number, TASK_BYTES // 2) for number in range(6)], 8)) == 3


def test_a_large_range_does_not_wait_behind_others():
    groups = pack([*[task(number, TASK_BYTES) for number in range(9)], task(9, 9 * TASK_BYTES)], 2)
    assert sorted(loads(groups)) == [9 * TASK_BYTES] * 2


def test_one_range_is_one_task_and_there_is_no_empty_one():
    only = task(0, 100 * TASK_BYTES)
    assert pack([only], 8) == [[only]]
    assert all(pack([task(0, 100 * TASK_BYTES), task(1, 0), task(2, 0)], 8))


@pytest.mark.parametrize("seed", range(20))
def test_every_range_is_in_one_group_in_its_order_and_no_group_has_much_more_than_its_share(seed):
    drawn = random.Random(seed)
    tasks = [task(number, drawn.choice([0, drawn.randrange(10 * TASK_BYTES)])) for number in range(drawn.randrange(1, 60))]
    most = drawn.randrange(1, 9)
    groups = pack(tasks, most)
    assert len(groups) <= most
    assert sorted((one for group in groups for one in group), key=tasks.index) == tasks
    assert all(group == sorted(group, key=tasks.index) for group in groups)
    share = max(sum(loads(groups)) / len(groups), *(one.expected_bytes for one in tasks))
    assert max(loads(groups)) <= 4 / 3 * share + len(tasks)
