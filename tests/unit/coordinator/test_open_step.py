"""At most one step is open."""

import pytest

from applier.coordinator.step import Evict, SaveProgress
from applier.coordinator.step_choice import OpenStep
from applier.model.errors import InvariantViolation


def test_a_step_is_confirmed_before_the_next_one():
    step, open_step = Evict(()), OpenStep()
    open_step.check_none()
    open_step.open(step, 3)
    with pytest.raises(InvariantViolation, match="not confirmed or withdrawn yet"):
        open_step.check_none()
    open_step.close(step)
    open_step.check_none()
    assert open_step.reports == 3


def test_another_step_than_the_open_one_cannot_be_confirmed():
    open_step = OpenStep()
    open_step.open(Evict(()), 0)
    with pytest.raises(InvariantViolation, match="not the open one"):
        open_step.close(SaveProgress(positions={}))
    with pytest.raises(InvariantViolation, match="not the open one"):
        OpenStep().close(Evict(()))


def test_only_a_segment_or_a_ddl_begins_a_new_checkpoint():
    open_step = OpenStep()
    assert open_step.begun_ts(4) == 4
    open_step.open(SaveProgress(positions={}), 0)
    assert open_step.begun_ts(4) == 4
