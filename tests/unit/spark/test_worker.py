"""A worker shows what it does, and its garbage is collected after each task: what the modules have created is frozen before."""

import gc
import tempfile
from pathlib import Path

import pytest

from applier.planner.port import Phase, Statement
from applier.sinks import write_transaction as held_statements
from applier.spark import job as worker
from applier.spark.job import prepare_worker


@pytest.fixture
def thawed(monkeypatch, tmp_path):
    # The name of this process is not to change: it runs other tests.
    monkeypatch.setattr(worker, "NAME", tmp_path / "comm")
    monkeypatch.delenv(worker.LOCAL_DIRECTORIES, raising=False)
    gc.unfreeze()
    yield
    gc.unfreeze()


def test_objects_of_the_first_task_of_a_kind_are_frozen_and_later_ones_are_not(thawed):
    prepare_worker("one kind")
    assert gc.get_freeze_count() > 0
    gc.unfreeze()
    prepare_worker("one kind")
    assert gc.get_freeze_count() == 0
    prepare_worker("another kind")
    assert gc.get_freeze_count() > 0


def test_a_worker_is_named_after_the_kind_of_its_present_task(thawed):
    prepare_worker("listen")
    assert worker.NAME.read_text() == "applier listen"
    prepare_worker("write")
    assert worker.NAME.read_text() == "applier write"


def test_a_system_without_such_a_name_is_no_failure(monkeypatch, tmp_path):
    monkeypatch.setattr(worker, "NAME", tmp_path / "missing" / "comm")
    prepare_worker("listen")


@pytest.mark.parametrize("number", [0, 1])
def test_temporary_files_of_tasks_lie_in_the_local_directories_of_spark(thawed, monkeypatch, tmp_path, number):
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setenv(worker.LOCAL_DIRECTORIES, f"{tmp_path}/a,{tmp_path}/b")
    monkeypatch.setattr(worker.os, "getpid", lambda: 40 + number)
    monkeypatch.setattr(held_statements, "HELD_BYTES", 0)
    chosen = tmp_path / "ab"[number]
    prepare_worker("write")
    assert tempfile.gettempdir() == str(chosen)
    held = held_statements.HeldStatements()
    # Not the system's directory: where Spark's is missing, the task fails.
    with pytest.raises(FileNotFoundError):
        held.add(Statement(Phase.REPLACE, "orders", b"REPLACE", 1, 10, 10))
    chosen.mkdir()
    held.add(Statement(Phase.REPLACE, "orders", b"REPLACE", 1, 10, 10))
    assert Path(f"/proc/self/fd/{held._file.fileno()}").readlink().parent == chosen
    assert len(list(held)) == 2
