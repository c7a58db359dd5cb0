"""What Kafka's settings of topics do to a replica: a compacted topic loses rows.

Compaction keeps the last record of each key. The key of a row's record is its transaction and table, so that of a transaction's rows in
one table the last one is left; nothing in the records shows it. So the settings are asked for: of each topic when it is first seen, and
of all of them now and then.

Which topics the user may read: asked of the brokers, since a topic without records shows nothing.
"""

import time
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final, NamedTuple

from confluent_kafka import KafkaException, TopicCollection
from confluent_kafka.admin import AclOperation, AdminClient, ConfigResource, ResourceType  # type: ignore[attr-defined] # its stubs forget the last two  # type: ignore[attr-defined] # its stubs forget the first one

from applier.model.errors import NeedsOperator, Remedy
from applier.model.failure import FailureKind
from applier.sources.kafka.error_meaning import refusals_as_config_errors
from applier.sources.kafka.settings import LOGGER, KafkaSettings

INTERVAL_S: Final = 60.0
"""Between two questions about all topics. Kafka compacts closed segments of a log only, minutes after the setting at the earliest."""

TIMEOUT_S: Final = 5.0
MOCK_CLUSTER: Final = "mockCluster"
"""The cluster id of librdkafka's mock cluster begins so. It has no controller to ask for topic ids and settings."""
POLICY: Final = "cleanup.policy"
COMPACT: Final = "compact"

REMEDY: Final = Remedy(
    "kafka.set-cleanup-policy-delete",
    "Set cleanup.policy=delete for the topic: `kafka-configs.sh --bootstrap-server … --alter --entity-type topics --entity-name … "
    "--add-config cleanup.policy=delete`. Then compare the replica with `applier verify`: records that are gone do not come back",
)


class TopicPolicies(NamedTuple):
    """How topics are kept: their ``cleanup.policy``, and for those whose settings the brokers do not tell, the reason."""

    known: Mapping[str, str]
    unexamined: Mapping[str, str]

    @property
    def compacted(self) -> list[str]:
        """The topics that lose rows."""
        return [topic for topic, policy in self.known.items() if COMPACT in policy]  # "compact", or "compact,delete"


def compaction_error(topic: str, policy: str) -> NeedsOperator:
    """Return the error for a topic that loses rows."""
    return NeedsOperator(
        "the topic is compacted: Kafka deletes records that the replica needs",
        remedy=REMEDY,
        kind=FailureKind.COMPACTED,
        topic=topic,
        policy=policy,
    )


def is_mock(metadata: Any) -> bool:
    """Whether these are the metadata of a mock cluster."""
    return str(metadata.cluster_id).startswith(MOCK_CLUSTER)


def topic_policies(settings: KafkaSettings, admin: AdminClient, topics: Collection[str]) -> TopicPolicies | None:
    """Ask for the policies of topics; None: a mock cluster does not have one. A broker that does not answer tells nothing."""
    known: dict[str, str] = {}
    try:
        if is_mock(admin.list_topics(next(iter(topics), None), timeout=TIMEOUT_S)):
            return None
    except KafkaException as error:
        return TopicPolicies(known, dict.fromkeys(topics, settings.masked(error.args[0].str())))
    unexamined: dict[str, str] = {}
    resources = [ConfigResource(ResourceType.TOPIC, topic) for topic in topics]
    for resource, answer in admin.describe_configs(resources, request_timeout=TIMEOUT_S).items():
        try:
            known[str(resource.name)] = str(answer.result()[POLICY].value)
        except KafkaException as error:
            unexamined[str(resource.name)] = settings.masked(error.args[0].str())
    return TopicPolicies(known, unexamined)


class TopicSettings:
    """Examines the topics of one source. Not thread-safe. ``policies``: asks for the policies of topics; None: the brokers have none.

    ``clock`` is of any clock that does not step back.
    """

    def __init__(self, policies: Callable[[Collection[str]], TopicPolicies | None], clock: Callable[[], float] = time.monotonic) -> None:
        self._policies, self._clock = policies, clock
        self._asked_s: dict[str, float] = {}
        self._unexamined: set[str] = set()

    def check(self, topics: Collection[str]) -> None:
        """Examine the topics that are due. NeedsOperator if one of them is compacted."""
        now_s = self._clock()
        due = [topic for topic in topics if topic not in self._asked_s or now_s - self._asked_s[topic] >= INTERVAL_S]
        found = self._policies(due) if due else None
        self._asked_s |= dict.fromkeys(due, now_s)
        if found is not None:
            self._note(found.unexamined)
            for topic in found.compacted:
                raise compaction_error(topic, found.known[topic])

    def _note(self, unexamined: Mapping[str, str]) -> None:
        # Not an error: a user who may read a topic need not be allowed to see its settings. Lost records still show as gaps of offsets.
        for topic, reason in unexamined.items():
            if topic not in self._unexamined:
                LOGGER.warning("topic_not_examined", extra={"topic": topic, "reason": reason})
        self._unexamined |= unexamined.keys()


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
