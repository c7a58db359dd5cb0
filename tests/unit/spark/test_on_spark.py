"""What only Spark itself can show: what it keeps, what it does where its files or executors are lost, a range that kills its worker."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.rig.program import DEADLINE_S, ROOT
from tests.rig.spark_segment import CYCLES, DAMAGES, FLIPS, PARTITIONS, SEGMENTS

pytestmark = [pytest.mark.slow]

ROWS = 120
A_FEW_CONSTANTS = 100_000
"""Bytes. One plan of the test has some 3,000,000."""
FILES_OF_A_BATCH = 3
"""Of one task: the data, its index and its checksums."""


def reported(case, directory, *master):
    command = [sys.executable, "-m", "tests.rig.spark_segment", case, str(directory), *master]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    ended = subprocess.run(
        command, env=environment, cwd=ROOT, check=False, capture_output=True, text=True, timeout=DEADLINE_S, start_new_session=True
    )
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


def test_plans_of_many_tables_leave_nothing_on_disk_or_in_memory(tmp_path):
    found = reported("large_plans", tmp_path)
    assert found["states"] == ["committed"]
    assert found["rows"] == PARTITIONS * SEGMENTS
    assert found["files"] == 0
    assert found["kept_bytes"] < A_FEW_CONSTANTS
    assert [Path(directory).is_relative_to(tmp_path / "spark") for directory in found["temporary"]] == [True]


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


def test_released_batches_and_dropped_segments_leave_no_files_however_many_cycles_there_are(tmp_path):
    found = reported("many_cycles", tmp_path)
    assert (found["states"], found["rows"]) == (["committed"], PARTITIONS * 2 * CYCLES)
    assert found["prepared"]
    assert found["cached_files"] == FILES_OF_A_BATCH, "the last batch, which was not released"
    assert found["left_files"] == []


def test_files_of_shuffles_that_are_cut_or_deleted_between_the_jobs_lose_nothing_and_write_nothing_by_halves(tmp_path):
    found = reported("damaged_files", tmp_path)
    for number, attempts in enumerate(found["damages"]):
        before, segment = PARTITIONS * 2 * number, PARTITIONS
        assert attempts[-1]["state"] == "committed", DAMAGES[number]
        assert attempts[-1]["rows_now"] == before + 2 * segment
        for attempt in attempts[:-1]:
            assert attempt["error"] in {"IncompleteInput", "JobAborted"}
            assert attempt["rows_now"] in {before, before + segment}, "whole segments only"
    assert found["rows"] == PARTITIONS * 2 * len(DAMAGES)
    assert any(len(attempts) > 1 for attempts in found["damages"]), "Spark took a cut file for the end of the data, and nobody else did"


def test_a_byte_that_has_changed_in_a_file_of_a_shuffle_is_not_written_and_the_rows_are_read_again(tmp_path):
    found = reported("flipped_bits", tmp_path)
    for flip, attempts in zip(FLIPS, found["flips"], strict=True):
        assert [(one["state"], one["error"]) for one in attempts] == [("reload", "DamagedData"), ("committed", "NoneType")], flip
    rows = 2 * len(FLIPS)
    assert found["names"] == [str(7 ** (number % rows % 97 + 500) * (number + 1))[:10] for number in range(PARTITIONS * rows)]


def test_the_rows_of_an_executor_that_dies_between_the_jobs_are_read_again(tmp_path):
    found = reported("killed_executors", tmp_path, "local-cluster[2,1,512]")
    for number, outcome in enumerate(found["outcomes"], 1):
        assert (outcome["state"], outcome["rows_now"]) == ("committed", PARTITIONS * 4 * number), outcome
