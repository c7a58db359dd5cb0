"""Rejected events wait until a transaction has stored them."""

from applier.coordinator.step_choice import UnstoredEvents
from applier.model.rejected_event import STORED_AT_ONCE, EventPosition, RejectedEvent
from tests.timeline.scenario import P0


def test_events_are_stored_in_order_and_a_bounded_number_at_once():
    events = [RejectedEvent(position=EventPosition(P0, offset, 0), error="") for offset in range(STORED_AT_ONCE + 2)]
    unstored = UnstoredEvents()
    assert not unstored
    unstored.add(events[:5])
    unstored.add(events[5:])
    assert unstored.next_batch() == tuple(events[:STORED_AT_ONCE])
    unstored.drop(STORED_AT_ONCE)
    assert (unstored.next_batch(), len(unstored)) == (tuple(events[STORED_AT_ONCE:]), 2)
