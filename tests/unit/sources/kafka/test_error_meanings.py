"""Kafka's error codes: those that a retry cannot help have their own message; every other one may be transient."""

import pickle

import pytest
from confluent_kafka import KafkaError, KafkaException, Message

from applier.model.position import Offset, Stream
from applier.model.range_report import RangeId
from applier.replica.recovery import is_transient
from applier.sources.kafka.error_meaning import failed
from applier.sources.kafka.reader import Reading
from applier.sources.kafka.settings import KafkaSettings

SECRET = "hunter-2"  # noqa: S105 - a mark that is looked for
SETTINGS = KafkaSettings(bootstrap_servers="b:1", topics=("t",), group_id="g", properties=(("sasl.password", SECRET),))
FINAL = [
    (KafkaError.TOPIC_AUTHORIZATION_FAILED, "unauthorized", "READ"),
    (KafkaError.INVALID_MSG, "damaged", "kafka-dump-log"),
    (KafkaError._BAD_MSG, "damaged", "kafka-dump-log"),
    (KafkaError._BAD_COMPRESSION, "damaged", "kafka-dump-log"),
]


@pytest.mark.parametrize("wrapped", [KafkaError, lambda *reported: KafkaException(KafkaError(*reported))], ids=["error", "exception"])
@pytest.mark.parametrize(("code", "kind", "remedy"), FINAL)
def test_an_error_that_a_retry_cannot_help_has_its_own_message_and_its_place(code, kind, remedy, wrapped):
    error = pickle.loads(pickle.dumps(failed(SETTINGS, "it", wrapped(code, f"so it is, {SECRET}"), topic="t", offset=7)))  # noqa: S301
    assert error.facts == {"kind": kind, "topic": "t", "offset": 7, "cause": "so it is, ***"}
    assert remedy in error.remedy
    assert error.exit_code == 3
    assert not is_transient(error)


@pytest.mark.parametrize(
    "code", [KafkaError._TRANSPORT, KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.KAFKA_STORAGE_ERROR, KafkaError.UNKNOWN]
)
def test_every_other_error_is_transient(code):
    error = failed(SETTINGS, "range t/0@7..9", KafkaError(code), topic="t")
    assert (error.facts["kind"], error.message) == ("unreachable", "Kafka does not answer: range t/0@7..9")
    assert is_transient(error)


@pytest.mark.parametrize(("code", "kind"), [(code, kind) for code, kind, _ in FINAL])
def test_a_reader_with_such_an_error_does_not_wait_and_names_its_position(code, kind):
    range_id = RangeId(Stream("t", 3), Offset(5), Offset(9))
    reading = Reading(SETTINGS, [range_id])
    reading.open(1)
    refused = Message(topic="t", partition=3, error=KafkaError(code))
    (_, (failing, error)) = reading.take([Message(topic="t", partition=3, offset=6), refused])
    assert failing == range_id
    assert {name: error.facts[name] for name in ("kind", "topic", "partition", "offset")} == {
        "kind": kind,
        "topic": "t",
        "partition": 3,
        "offset": 7,
    }
    assert not reading
