"""Which topics the user may read: asked of the brokers, since a topic without records shows nothing."""

from collections.abc import Collection
from typing import Final

from confluent_kafka import KafkaException, TopicCollection
from confluent_kafka.admin import AclOperation, AdminClient  # type: ignore[attr-defined] # its stubs forget the first one

from applier.sources.kafka.refused_property import refusals_as_config_errors
from applier.sources.kafka.settings import KafkaSettings
from applier.sources.kafka.topic_settings import is_mock

NEEDED: Final = frozenset({AclOperation.READ, AclOperation.ALL, AclOperation.ANY})


def unreadable_topics(settings: KafkaSettings, topics: Collection[str]) -> list[str] | None:
    """Return the topics that the user may not read; None if the brokers do not tell (old ones, and mock clusters)."""
    if not topics:
        return []
    with refusals_as_config_errors(settings):
        admin = AdminClient(settings.client())
    wanted, patience_s = sorted(topics), settings.unreachable_after_s
    try:
        # A mock cluster does not answer the question itself.
        if is_mock(admin.list_topics(wanted[0], timeout=patience_s)):
            return None
    except KafkaException:
        return None
    answers = admin.describe_topics(TopicCollection(wanted), include_authorized_operations=True, request_timeout=patience_s)
    unreadable = []
    for topic, answer in answers.items():
        try:
            operations = answer.result().authorized_operations
        except KafkaException:
            return None
        if not operations:
            return None
        if not NEEDED.intersection(operations):
            unreadable.append(str(topic))
    return unreadable
