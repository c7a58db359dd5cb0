"""A worker shows what it does, and its garbage is collected after each task: what the modules have created is frozen before."""

import gc

import pytest

from applier.spark import worker
from applier.spark.worker import prepare_worker


@pytest.fixture
def thawed(monkeypatch, tmp_path):
    # The name of this process is not to change: it runs other tests.
    monkeypatch.setattr(worker, "NAME", tmp_path / "comm")
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
