"""A Python worker's garbage is collected after each task: what modules have made is not looked at again and again."""

import gc

import pytest

from applier.spark.worker import prepare_worker


@pytest.fixture
def thawed():
    gc.unfreeze()
    yield
    gc.unfreeze()


def test_what_is_there_at_the_first_task_of_a_kind_is_left_alone_and_later_garbage_is_not(thawed):
    prepare_worker("one kind")
    assert gc.get_freeze_count() > 0
    gc.unfreeze()
    prepare_worker("one kind")
    assert gc.get_freeze_count() == 0
    prepare_worker("another kind")
    assert gc.get_freeze_count() > 0
