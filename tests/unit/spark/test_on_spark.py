"""What only Spark itself can show: what it keeps of large plans, a range that kills its worker, a failure that was cached."""

import json
import os
import subprocess
import sys

import pytest

from tests.rig.program import DEADLINE_S, ROOT
from tests.rig.spark_segment import PARTITIONS, SEGMENTS

pytestmark = [pytest.mark.slow]

ROWS = 120
A_FEW_CONSTANTS = 100_000
"""Bytes. One plan of the test has some 3,000,000."""


def reported(case, directory):
    command = [sys.executable, "-m", "tests.rig.spark_segment", case, str(directory)]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    ended = subprocess.run(command, env=environment, cwd=ROOT, check=False, capture_output=True, text=True, timeout=DEADLINE_S)
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


def test_plans_of_many_tables_leave_nothing_on_disk_or_in_memory(tmp_path):
    found = reported("large_plans", tmp_path)
    assert found["states"] == ["committed"]
    assert found["rows"] == PARTITIONS * SEGMENTS
    assert found["files"] == 0
    assert found["kept_bytes"] < A_FEW_CONSTANTS


def test_a_range_that_kills_its_worker_fails_alone_with_its_place_and_does_not_take_the_others_with_it_again(tmp_path):
    found = reported("poisonous_range", tmp_path)
    for listened in found["listened"]:
        (failed,) = listened["failed"]
        assert (failed["kind"], failed["topic"], failed["partition"], failed["offset"], failed["end"]) == (
            "listener_died",
            "feed",
            1,
            0,
            40,
        )
        assert "crashed" in failed["cause"]
    assert set(found["listened"][1]["reads"].values()) == {1}, (
        "the second time each range is read once: nothing fails beside the failing range"
    )
    assert found["cached"] == [0, 2, 3, 4, 5]


def test_a_failed_read_in_the_cache_is_not_taken_for_the_range_and_the_range_is_read_again(tmp_path):
    found = reported("failure_in_cache", tmp_path)
    assert (found["first"]["state"], found["first"]["error"]) == ("reload", "JobAborted")
    assert "Kafka does not answer" in found["first"]["text"]
    assert (found["second"]["state"], found["rows"]) == ("committed", ROWS)
