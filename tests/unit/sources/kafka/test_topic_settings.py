"""A compacted topic loses rows: its settings are asked for when it is first seen, and now and then."""

import logging

import pytest

from applier.model.errors import NeedsOperator
from applier.sources.kafka.topic_settings import INTERVAL_S, TopicPolicies, TopicSettings


class Brokers:
    """Answers for topics; a policy that is None is not shown."""

    def __init__(self, **policies):
        self.policies, self.asked, self.now_s = policies, [], 0.0

    def __call__(self, topics):
        self.asked.append(sorted(topics))
        known = {topic: self.policies[topic] for topic in topics if self.policies[topic] is not None}
        return TopicPolicies(known, dict.fromkeys(set(topics) - known.keys(), "no"))

    def settings(self):
        return TopicSettings(self, lambda: self.now_s)


@pytest.mark.parametrize("policy", ["compact", "compact,delete", "delete,compact"])
def test_a_topic_that_is_compacted_stops_the_run_by_its_name(policy):
    with pytest.raises(NeedsOperator) as caught:
        Brokers(first="delete", feed=policy).settings().check(["first", "feed"])
    assert (caught.value.facts, caught.value.exit_code) == ({"kind": "compacted", "topic": "feed", "policy": policy}, 6)
    assert "cleanup.policy=delete" in caught.value.remedy


def test_topics_are_asked_for_at_once_when_they_appear_and_all_of_them_now_and_then():
    brokers = Brokers(a="delete", b="delete")
    settings = brokers.settings()
    for now_s, topics in ((0.0, ["a"]), (1.0, ["a"]), (2.0, ["a", "b"]), (INTERVAL_S, ["a", "b"]), (INTERVAL_S + 2, ["a", "b"])):
        brokers.now_s = now_s
        settings.check(topics)
    assert brokers.asked == [["a"], ["b"], ["a"], ["b"]]


def test_a_policy_that_changes_while_the_topic_is_read_is_noticed():
    brokers = Brokers(a="delete")
    settings = brokers.settings()
    settings.check(["a"])
    brokers.policies["a"] = "compact"
    settings.check(["a"])
    brokers.now_s = INTERVAL_S
    with pytest.raises(NeedsOperator):
        settings.check(["a"])


def test_a_topic_whose_settings_are_not_shown_is_logged_once(caplog):
    brokers = Brokers(a=None, b="delete")
    settings = brokers.settings()
    with caplog.at_level(logging.WARNING):
        for now_s in (0.0, INTERVAL_S):
            brokers.now_s = now_s
            settings.check(["a", "b"])
    assert [(record.message, record.topic, record.reason) for record in caplog.records] == [("topic_not_examined", "a", "no")]


def test_brokers_without_settings_are_no_reason_to_stop():
    TopicSettings(lambda _: None).check(["a"])
