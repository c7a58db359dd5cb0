"""What Kafka's error codes mean: the few that a retry cannot help have their own message; all others count as "does not answer"."""

from typing import Any, Final, NamedTuple

from confluent_kafka import KafkaError, KafkaException

from applier.model.errors import SourceError
from applier.sources.kafka import error_code
from applier.sources.kafka.settings import KafkaSettings, unreachable


class KafkaErrorMeaning(NamedTuple):
    """What a code means, and what to do about it."""

    kind: str
    message: str
    remedy: str


_DAMAGED: Final = KafkaErrorMeaning(
    "damaged",
    "Kafka returned damaged records",
    "See the log of the partition's leader, and check its files with kafka-dump-log. Another replica of the partition may be intact. If "
    "none is, create the replica again from a dump (README)",
)
MEANINGS: Final = {
    KafkaError.TOPIC_AUTHORIZATION_FAILED: KafkaErrorMeaning(
        "unauthorized", "the user has no permission to read the topic", "Grant READ on the topic to this user"
    ),
    KafkaError.INVALID_MSG: _DAMAGED,  # the broker has found it so
    error_code.BAD_MESSAGE: _DAMAGED,
    error_code.BAD_COMPRESSION: _DAMAGED,
}


def failed(settings: KafkaSettings, what: str, cause: KafkaError | KafkaException, **place: Any) -> SourceError:
    """Return the error for a request for ``what`` that failed; ``place`` are its facts where a retry cannot help."""
    error = cause.args[0] if isinstance(cause, KafkaException) else cause
    meaning = MEANINGS.get(error.code())
    if meaning is None:
        return unreachable(settings, what, cause)
    return SourceError(meaning.message, remedy=meaning.remedy, kind=meaning.kind, **place, cause=settings.masked(error.str()))
