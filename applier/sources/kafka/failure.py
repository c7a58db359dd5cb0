"""What Kafka's answers mean: the few that no patience helps with, told for what they are; all others may pass by themselves."""

from typing import Any, Final, NamedTuple

from confluent_kafka import KafkaError, KafkaException

from applier.model.errors import SourceError
from applier.sources.kafka.settings import KafkaSettings, unreachable


class KafkaErrorMeaning(NamedTuple):
    """What a code means, and what to do."""

    kind: str
    message: str
    remedy: str


_DAMAGED: Final = KafkaErrorMeaning(
    "damaged",
    "records cannot be read from kafka: they are damaged",
    "See the log of the partition's leader, and check its files with kafka-dump-log; another replica of the partition may be whole. If "
    "none is, make the replica anew from a dump (README)",
)
MEANINGS: Final = {
    KafkaError.TOPIC_AUTHORIZATION_FAILED: KafkaErrorMeaning(
        "unauthorized", "the topic may not be read", "Grant READ on the topic to this user"
    ),
    KafkaError.INVALID_MSG: _DAMAGED,  # the broker has found it so
    KafkaError._BAD_MSG: _DAMAGED,  # noqa: SLF001 - librdkafka's own codes begin with an underscore
    KafkaError._BAD_COMPRESSION: _DAMAGED,  # noqa: SLF001
}


def failed(settings: KafkaSettings, what: str, cause: KafkaError | KafkaException, **place: Any) -> SourceError:
    """Make the error for what Kafka has answered when it was asked for ``what``; ``place`` are its facts, if it is final."""
    error = cause.args[0] if isinstance(cause, KafkaException) else cause
    meaning = MEANINGS.get(error.code())
    if meaning is None:
        return unreachable(settings, what, cause)
    return SourceError(meaning.message, remedy=meaning.remedy, kind=meaning.kind, **place, cause=settings.masked(error.str()))
