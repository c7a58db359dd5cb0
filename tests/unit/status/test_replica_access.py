"""Who asks the sink for the page: one at a time, and nobody waits for ever."""

import pytest

from applier.model.errors import FatalSinkError, RetryableSinkError
from applier.sinks.settings import SinkSettings
from applier.status import replica_access
from applier.status.replica_access import SinkAccess


@pytest.fixture
def access(tmp_path):
    return SinkAccess(SinkSettings(url=f"sqlite:///{tmp_path}/replica.db"))


def test_a_request_does_not_wait_for_ever_for_another_one_that_a_silent_database_holds(access, monkeypatch):
    monkeypatch.setattr(replica_access, "PATIENCE_S", 0.01)
    with access._asking, pytest.raises(RetryableSinkError) as caught:
        access.ddls()
    assert caught.value.message == "the sink does not answer"


def test_a_question_that_failed_does_not_hold_up_the_next(access):
    for _ in range(2):
        with pytest.raises(FatalSinkError):
            access.quarantine()
