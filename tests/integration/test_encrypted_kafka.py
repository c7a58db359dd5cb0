"""A Kafka that wants TLS and SCRAM: who gets in, and how soon and how plainly the others are refused."""

import time
from collections.abc import Callable
from uuid import uuid4

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from applier.check.kafka import _settings
from applier.model.errors import SourceError
from applier.model.finding import Severity
from applier.model.position import Listing, Offset, PartitionExtent, Stream
from applier.model.range_report import RangeId
from applier.replica.recovery import is_transient
from applier.sources.factory import open_source
from applier.sources.kafka.reader import KafkaRangeReader
from applier.sources.kafka.settings import KafkaSettings
from applier.sources.kafka.topic_settings import TopicPolicies, topic_policies
from applier.sources.peek import read_whole
from tests.rig.certificate import Certificates
from tests.rig.kafka import Kafka

WRONG = "wrong-secret"


@pytest.fixture(scope="module")
def topic(encrypted_kafka: Kafka) -> str:
    name = f"encrypted-{uuid4().hex[:8]}"
    encrypted_kafka.create_topic(name, partitions=2)
    return name


def settings(kafka: Kafka, topic: str, **changes: str) -> KafkaSettings:
    properties = kafka.properties | {name.replace("_", "."): value for name, value in changes.items()}
    return KafkaSettings(
        bootstrap_servers=kafka.bootstrap_servers,
        topics=(topic,),
        group_id="g",
        properties=tuple(properties.items()),
        unreachable_after_s=60,
    )


def refusal(settings: KafkaSettings) -> SourceError:
    with open_source(settings) as source, pytest.raises(SourceError) as caught:
        source.listing()
    assert WRONG not in str(caught.value)
    return caught.value


def test_a_client_with_the_right_password_reads_over_an_encrypted_connection(encrypted_kafka: Kafka, topic: str) -> None:
    with open_source(settings(encrypted_kafka, topic)) as source:
        assert sorted(source.listing().extents) == [Stream(topic, 0), Stream(topic, 1)]
        assert list(source.topics.ids()) == [topic]


def test_settings_that_the_user_may_not_see_are_named_as_not_examined(encrypted_kafka: Kafka, topic: str) -> None:
    kept = settings(encrypted_kafka, topic)
    assert topic_policies(kept, AdminClient(kept.client()), [topic]) == TopicPolicies({topic: "delete"}, {})
    reader = settings(Kafka(encrypted_kafka.bootstrap_servers, encrypted_kafka.server, encrypted_kafka.make_reader(topic, "g")), topic)
    found = topic_policies(reader, AdminClient(reader.client()), [topic])
    assert found is not None
    assert (list(found.known), list(found.unexamined)) == ([], [topic])
    (finding,) = list(_settings(reader, Listing({Stream(topic, 0): PartitionExtent(Offset(0), Offset(0))})))
    assert (finding.level, finding.is_examined, "DESCRIBE_CONFIGS" in finding.remedy) == (Severity.ERROR, False, True)


def test_reading_is_the_only_privilege_that_is_needed_and_its_lack_is_reported(encrypted_kafka: Kafka, topic: str) -> None:
    reader = Kafka(encrypted_kafka.bootstrap_servers, encrypted_kafka.server, encrypted_kafka.make_reader(topic, "g"))
    with open_source(settings(reader, topic)) as source:
        assert set(source.listing().extents) == {Stream(topic, 0), Stream(topic, 1)}
        assert list(source.topics.ids()) == [topic]
        assert source.times.time_ms(Stream(topic, 0), Offset(0)) is None
    other = f"{topic}-closed"
    encrypted_kafka.create_topic(other)
    error = refusal(settings(reader, other))
    assert (error.facts["kind"], error.facts["topic"]) == ("unauthorized", other)
    assert "READ" in error.remedy


def test_a_right_that_is_withdrawn_under_a_run_is_reported_by_its_executors_and_its_driver(encrypted_kafka: Kafka) -> None:
    topic = f"withdrawn-{uuid4().hex[:8]}"
    encrypted_kafka.create_topic(topic)
    writer = Producer({"bootstrap.servers": encrypted_kafka.bootstrap_servers} | encrypted_kafka.properties)
    for _ in range(9):
        writer.produce(topic, value=b"v", partition=0)
    assert writer.flush(60) == 0
    rights = Kafka(encrypted_kafka.bootstrap_servers, encrypted_kafka.server, encrypted_kafka.make_reader(topic, "g"))
    with open_source(settings(rights, topic)) as source:
        assert source.listing().extents[Stream(topic, 0)].end == 9
        whole = RangeId(Stream(topic, 0), Offset(0), Offset(9))
        assert sum(len(records) for _, records in read_whole(source.reader, [whole])) == 9
        encrypted_kafka.withdraw(topic)
        for ask in (lambda: list(read_whole(source.reader, [whole])), source.listing):
            error = in_the_end(ask)
            assert (error.facts["kind"], error.facts["topic"]) == ("unauthorized", topic)
            assert not is_transient(error)


def in_the_end(ask: Callable[[], object]) -> SourceError:
    """Ask until it is refused: the broker hears of a right that is withdrawn a moment later."""
    give_up = time.monotonic() + 120
    while time.monotonic() < give_up:
        try:
            ask()
        except SourceError as error:
            return error
        time.sleep(0.1)
    pytest.fail("it is never refused")


def test_an_authority_may_be_given_as_a_text(encrypted_kafka: Kafka, topic: str, certificates: Certificates) -> None:
    with open_source(settings(encrypted_kafka, topic, ssl_ca_location="", ssl_ca_pem=certificates.ca)) as source:
        assert source.listing().extents


def test_a_wrong_password_is_reported_as_such_and_not_as_a_time_out(encrypted_kafka: Kafka, topic: str) -> None:
    error = refusal(settings(encrypted_kafka, topic, sasl_password=WRONG))
    assert error.facts["kind"] == "refused"
    assert "invalid credentials with SASL mechanism SCRAM-SHA-512" in error.facts["cause"]
    assert "sasl.password" in error.remedy


def test_a_mechanism_that_the_broker_does_not_have_is_reported(encrypted_kafka: Kafka, topic: str) -> None:
    error = refusal(settings(encrypted_kafka, topic, sasl_mechanism="PLAIN"))
    assert error.facts["kind"] == "refused"
    assert "supported mechanisms: SCRAM-SHA-512" in error.facts["cause"]


def test_a_broker_that_the_authority_does_not_know_is_not_trusted(encrypted_kafka: Kafka, topic: str, certificates: Certificates) -> None:
    error = refusal(settings(encrypted_kafka, topic, ssl_ca_location=certificates.path("stranger.pem")))
    assert error.facts["kind"] == "refused"
    assert "certificate verify failed" in error.facts["cause"]
    assert "ssl.ca.location" in error.remedy


def test_a_broker_of_another_name_is_not_trusted(encrypted_kafka: Kafka, topic: str) -> None:
    port = encrypted_kafka.bootstrap_servers.rpartition(":")[2]
    error = refusal(settings(Kafka(f"localhost:{port}", encrypted_kafka.server, encrypted_kafka.properties), topic))
    assert error.facts["kind"] == "refused"
    assert "host's name" in error.remedy


def test_a_reader_on_an_executor_reports_the_same(encrypted_kafka: Kafka, topic: str) -> None:
    reader = KafkaRangeReader(settings(encrypted_kafka, topic, sasl_password=WRONG))
    with pytest.raises(SourceError) as caught:
        list(read_whole(reader, [RangeId(Stream(topic, 0), Offset(0), Offset(1))]))
    assert caught.value.facts["kind"] == "refused"
    assert WRONG not in str(caught.value)
