"""What a run says when rows ahead of the watermark are refused, and the step behind that fails too."""

from dataclasses import dataclass

import pytest
import stamina

from applier.model.errors import RetryableSinkError, UnknownOutcome
from applier.sinks.progress import WriteOutcome, WriteState
from applier.telemetry.observer import SilentObserver
from tests.histories.test_any_history_ends_identical import assert_identical
from tests.histories.test_rows_ahead import world
from tests.rig.fake_source import FakeSource
from tests.rig.faulty_sink import Faults, FaultySink, FaultyWriter
from tests.rig.local_replica import sqlite_replica

LOST = WriteOutcome(state=WriteState.RELOAD, error=UnknownOutcome("connection lost"))


class Notes(SilentObserver):
    def __init__(self):
        self.notes = []

    def note(self, message, /, **facts):
        self.notes.append((message, facts))


class Once(Faults):
    """Refuses the first write of rows. ``is_over``: the transaction behind it has failed."""

    is_refused = is_over = False

    def draw(self):
        if self.is_refused:
            return None
        self.is_refused = True
        return self._noted("refused")


@dataclass(frozen=True)
class OnlyAhead(FaultyWriter):
    """Only rows ahead of the watermark meet faults."""

    def write(self, fence, statements, commit, quarantined=None):
        return self.writer.write(fence, statements, commit, quarantined)


class RefusedTwice(FaultySink):
    """A sink that refuses rows once, and fails once more when the window is moved."""

    def __init__(self, sink, faults, second):
        super().__init__(sink, faults)
        self._second = second

    @property
    def writer(self):
        return OnlyAhead(self._sink.writer, id(self._faults))

    def run_ddl(self, fence, identity, ddl, *, before, after):
        return self._sink.run_ddl(fence, identity, ddl, before=before, after=after)

    def save(self, fence, commit, quarantined=None):
        if self._faults.is_refused and not self._faults.is_over:
            self._faults.is_over = True
            if isinstance(self._second, Exception):
                raise self._second
            return self._second
        return self._sink.save(fence, commit, quarantined)


@pytest.mark.usefixtures("without_waiting")
def test_the_first_error_is_named_though_the_window_cannot_be_moved(tmp_path):
    history, producer, log, rows = world(100, growth=0)
    observer, faults = Notes(), Once(100)
    replica = sqlite_replica(tmp_path, FakeSource(log), rows=rows, observer=observer, wrap=lambda sink: RefusedTwice(sink, faults, LOST))
    stamina.set_testing(True, attempts=1)
    replica.catch_up()
    found = [(message, facts["reason"]) for message, facts in observer.notes if message in {"rows_refused", "recovering", "rows_wait"}]
    assert found == [("rows_refused", "deadlock found"), ("recovering", "connection lost")]
    assert_identical(history, producer.final_ts, replica.url)


@pytest.mark.usefixtures("without_waiting")
def test_the_first_error_is_named_before_the_second_one_ends_the_run(tmp_path):
    _, _, log, rows = world(100, growth=0)
    observer, faults, away = Notes(), Once(100), RetryableSinkError("the database is away")
    replica = sqlite_replica(tmp_path, FakeSource(log), rows=rows, observer=observer, wrap=lambda sink: RefusedTwice(sink, faults, away))
    stamina.set_testing(True, attempts=1)
    with pytest.raises(RetryableSinkError, match="away"):
        replica.catch_up()
    assert [facts for message, facts in observer.notes if message == "rows_refused"] == [{"reason": "deadlock found"}]
