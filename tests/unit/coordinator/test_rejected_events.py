"""No position passes a rejected event before it is stored: that comes before every other step, and once."""

from dataclasses import replace

from applier.coordinator.step import ApplySegment, Evict, ExecuteDdl, SaveProgress
from applier.model.position import Offset, RecordPosition
from applier.model.rejected_event import WHOLE_RECORD, EventPosition, RejectedEvent
from tests.timeline.report import report_of
from tests.timeline.scenario import P0, P1, Scenario, ddl, resolved, row


def bad(offset, stream=P0):
    return RejectedEvent(position=EventPosition(stream, Offset(offset), WHOLE_RECORD), error="broken")


def read(scenario, *events):
    """Read what is planned; the rejected events are reported with the ranges that they lie in."""
    for range_id in scenario.coordinator.plan():
        report, _ = report_of(range_id, scenario.log[range_id.stream][range_id.start : range_id.end], scenario.coordinator.floor_ts)
        mine = tuple(e for e in events if e.position.stream == range_id.stream and range_id.start <= e.position.offset < range_id.end)
        scenario.coordinator.report(replace(report, rejected_events=mine))


def storing(scenario):
    """Return the next step, which must store rejected events; what is spent may be released before."""
    step = scenario.coordinator.next_step()
    while isinstance(step, Evict):
        scenario.confirm(step)
        step = scenario.coordinator.next_step()
    assert isinstance(step, SaveProgress)
    return step


def begun(*streams, log, events):
    s = Scenario(*(streams or (P0,)))
    s.write(P0, *log)
    s.list()
    read(s, *events)
    s.list()
    return s


def test_rejected_events_are_stored_before_the_segment_that_is_due():
    s = begun(log=[row(1), row(2), resolved(5)], events=[bad(1)])
    step = storing(s)
    assert (step.rejected_events, step.positions[P0].next_offset, step.positions[P0].resolved_ts) == ((bad(1),), 0, 5)
    s.confirm(step)
    segment = s.coordinator.next_step()
    assert isinstance(segment, ApplySegment)
    assert segment.window.upto_ts == 5


def test_rejected_events_are_stored_before_a_ddl_and_while_no_window_is_open():
    s = begun(log=[ddl(3, "CREATE TABLE a (id INT)"), resolved(5)], events=[bad(0)])
    s.confirm(storing(s))
    assert isinstance(s.coordinator.next_step(), ExecuteDdl)
    s = begun(P0, P1, log=[row(1), resolved(5)], events=[bad(0)])
    assert storing(s).rejected_events == (bad(0),), "though P1 has promised nothing"


def test_a_replica_is_not_caught_up_while_a_rejected_event_is_not_stored():
    s = begun(log=[resolved(5)], events=[bad(0)])
    ends = {P0: 1}
    s.coordinator.withdraw(storing(s))
    assert not s.coordinator.is_caught_up(ends)
    s.confirm(s.coordinator.next_step())
    s.steps()
    assert s.coordinator.is_caught_up(ends)


def test_what_is_reported_while_others_are_being_stored_is_stored_next():
    s = begun(log=[row(1), resolved(5)], events=[bad(0)])
    step = storing(s)
    s.write(P0, row(6), resolved(7))
    s.list()
    read(s, bad(2), bad(3))
    s.confirm(step)
    assert storing(s).rejected_events == (bad(2), bad(3))


def test_a_progress_step_takes_them_along():
    s = begun(log=[row(1)], events=[bad(0)])
    step = s.coordinator.progress_step()
    assert step.rejected_events == (bad(0),)
    s.confirm(step)
    assert s.coordinator.progress_step().rejected_events == ()


def test_a_ddl_names_the_place_of_its_first_arrival_in_its_lowest_stream():
    create = ddl(3, "CREATE TABLE a (id INT)")
    s = Scenario(P0, P1).write(P1, create, resolved(5)).write(P0, resolved(1), create, create, resolved(5))
    s.list()
    s.read()
    s.list()
    step = s.coordinator.next_step()
    while not isinstance(step, ExecuteDdl):
        s.confirm(step)
        step = s.coordinator.next_step()
    assert step.position == RecordPosition(P0, Offset(1))
