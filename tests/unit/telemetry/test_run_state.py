"""What the state of a run says about its age and its progress."""

from dataclasses import FrozenInstanceError, replace

import pytest

from applier.model.position import DIGITS, NO_TS
from applier.sources.ticdc.tso import TSO_TIMELINE
from applier.telemetry.run_state import RunState, lag_s
from tests.builders.run_state import NOON_S, STATE, A


def test_a_tso_of_the_future_has_a_negative_lag_and_a_clock_that_differs_a_little_has_none():
    assert lag_s(A, NOON_S - 3600.0, TSO_TIMELINE) == 0.0
    assert lag_s(A, NOON_S - 3601.0, TSO_TIMELINE) == -3601.0


def test_the_lag_is_counted_from_the_upstreams_clock_and_is_not_negative_for_clocks_that_differ():
    assert STATE.lag_s(NOON_S + 2.5) == 2.5
    assert STATE.lag_s(NOON_S - 10.0) == 0.0
    assert RunState().lag_s(NOON_S) is None
    assert lag_s(A, NOON_S + 1.0, TSO_TIMELINE) == 1.0
    assert lag_s(NO_TS, NOON_S, TSO_TIMELINE) is None
    assert lag_s(A, NOON_S, DIGITS) is None


@pytest.mark.parametrize(("ddl_since_s", "silent_s", "is_alive"), [(None, 60, True), (None, 61, False), (1.0, 1e6, True)])
def test_a_run_without_progress_is_not_alive_unless_it_runs_a_ddl(ddl_since_s, silent_s, is_alive):
    state = replace(STATE, ddl_since_s=ddl_since_s, progress_s=100.0)
    assert state.is_alive(100.0 + silent_s, 60) is is_alive


def test_a_state_is_never_changed():
    with pytest.raises(FrozenInstanceError):
        STATE.phase = "idle"
