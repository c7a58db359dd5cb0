import pytest

from applier.model.errors import NeedsOperator, SourceError
from applier.model.failure import FailureKind
from applier.replica.state import CHECK_INTERVAL_S, TopicIdentity


class Topics:
    def __init__(self, **ids):
        self.known, self.asked = ids, 0

    def ids(self):
        self.asked += 1
        return self.known


def test_a_topic_with_another_id_than_the_recorded_one_is_refused():
    with pytest.raises(NeedsOperator) as caught:
        TopicIdentity(Topics(feed="new")).check({"feed": "old"})
    assert caught.value.facts == {"kind": "recreated", "topic": "feed", "recorded_id": "old", "present_id": "new"}


def test_a_topic_that_changes_before_anything_is_recorded_is_refused_too():
    source = Topics(feed="old")
    identity = TopicIdentity(source)
    identity.check({})
    source.known = {"feed": "new"}
    with pytest.raises(NeedsOperator):
        identity.check({})


def test_ids_are_kept_while_brokers_do_not_return_any():
    source = Topics(feed="old")
    identity = TopicIdentity(source)
    identity.check({})
    source.known = {}
    identity.check({})
    assert identity.ids == {"feed": "old"}


def test_a_doubt_makes_the_next_check_due_until_kafka_has_answered():
    class Away(Topics):
        def ids(self):
            self.asked += 1
            if self.asked == 2:
                raise SourceError("Kafka does not answer", kind=FailureKind.UNREACHABLE)
            return self.known

    source = Away(feed="old")
    identity = TopicIdentity(source, clock=lambda: 100.0)
    identity.check_if_due({})
    identity.make_check_due()
    with pytest.raises(SourceError):
        identity.check_if_due({})
    for _ in range(2):
        identity.check_if_due({})
        assert source.asked == 3


def test_topics_are_asked_for_once_in_each_interval():
    now, source = [100.0], Topics(feed="old")
    identity = TopicIdentity(source, clock=lambda: now[0])
    for step_s, asked in ((0.0, 1), (CHECK_INTERVAL_S - 1, 1), (1.0, 2), (0.1, 2), (3600.0, 3)):
        now[0] += step_s
        identity.check_if_due({})
        assert source.asked == asked
