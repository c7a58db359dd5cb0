"""A topic that is added later must have no history below the checkpoint."""

import pytest

from applier.coordinator.streams import NewTopics
from applier.model.errors import NeedsOperator
from applier.model.range_report import RangeId, RangeReport
from tests.timeline.scenario import OTHER, P0, P1


def report(stream, resolved_ts=0, early_ts=0):
    return RangeReport(range=RangeId(stream, 0, 5), resolved_ts=resolved_ts, early_ts=early_ts, early_offset=2)


def test_before_the_checkpoint_has_moved_every_topic_is_known():
    topics = NewTopics(())
    topics.join(P0, has_history=False)
    assert topics.is_known("t")


def test_a_new_topic_is_known_when_every_partition_has_promised_more_than_the_checkpoint_and_a_listing_shows_no_further_one():
    topics = NewTopics(["other"])
    topics.join(P0, has_history=True)
    topics.join(P1, has_history=True)
    topics.check(report(P0, 6), 5)
    topics.check(report(P1, 5), 5)
    topics.listed()
    assert not topics.is_known("t")
    topics.check(report(P1, 6), 5)
    assert not topics.is_known("t")
    topics.listed()
    assert topics.is_known("t")


def test_an_event_below_the_checkpoint_stops_until_the_partition_was_checked():
    topics = NewTopics(())
    topics.join(P0, has_history=True)
    topics.check(report(P0, early_ts=5), 5)
    with pytest.raises(NeedsOperator, match="missed its history") as caught:
        topics.check(report(P0, early_ts=4), 5)
    assert (caught.value.facts["offset"], caught.value.facts["commit_ts"]) == (2, 4)
    topics.check(report(P0, resolved_ts=6), 5)
    topics.check(report(P0, early_ts=4), 5)


def test_a_known_topic_is_not_checked():
    topics = NewTopics(["other"])
    topics.join(OTHER, has_history=True)
    topics.check(report(OTHER, early_ts=1), 5)
    assert topics.is_known("other")
