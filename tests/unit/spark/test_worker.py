"""A Python worker's garbage is collected after each task: what the modules have created is frozen, so that the collection is short."""

import gc

import pytest

from applier.spark.worker import prepare_worker


@pytest.fixture
def thawed():
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
