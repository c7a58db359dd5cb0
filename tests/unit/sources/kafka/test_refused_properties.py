"""Properties that librdkafka refuses: named with their remedy, never with their value."""

import pickle

import pytest

from applier.model.errors import ConfigError
from applier.model.position import Offset, Stream
from applier.model.range_report import RangeId
from applier.sources.factory import open_source
from applier.sources.kafka.reader import KafkaRangeReader
from applier.sources.kafka.settings import KafkaSettings
from applier.sources.open_protocol import OPEN_PROTOCOL
from applier.tasks.listen import ListenTask, RangeFailure, listen

SASL = ("security.protocol", "SASL_PLAINTEXT")
RANGE = RangeId(Stream("feed", 0), Offset(0), Offset(1))


def settings(*properties):
    return KafkaSettings(bootstrap_servers="127.0.0.1:1", topics=("feed",), group_id="g", properties=properties)


def refusal(*properties) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        open_source(settings(*properties))
    assert caught.value.exit_code == 2
    return caught.value


@pytest.mark.parametrize(
    ("properties", "name"),
    [
        ([SASL, ("sasl.mechanism", "nonsense")], "sasl.mechanism"),
        ([SASL, ("sasl.mechanisms", "NONSENSE")], "sasl.mechanisms"),
        ([("security.protocol", "weird-secret")], "security.protocol"),
        ([("client.id", "watcher"), ("session.timeout.ms", "abc-secret")], "session.timeout.ms"),
        ([("queued.max.messages.kbytes", "-4444")], "queued.max.messages.kbytes"),
        ([("security.protocol", "SSL"), ("ssl.key.pem", "key-secret")], "ssl.key.pem"),
        ([("plugin.library.paths", "no-such-secret")], "plugin.library.paths"),
        ([("error_cb", "cb-secret")], "error_cb"),
    ],
)
def test_a_refused_value_is_named_by_its_property_and_not_quoted(properties, name):
    error = refusal(*properties)
    assert error.message == f"librdkafka refuses the value of source.kafka.{name}"
    assert error.facts == {"key": f"source.kafka.{name}"}
    assert "CONFIGURATION.md" in error.remedy
    assert not any(value in str(error) for _, value in properties if value != "SSL")
    assert error.__cause__ is None
    assert error.__suppress_context__


def test_an_unknown_property_is_named():
    error = refusal(("no.such.thing", "secret"))
    assert error.message == "librdkafka has no property 'no.such.thing'"
    assert error.facts == {"key": "source.kafka.no.such.thing"}
    assert "secret" not in str(error)


def test_a_property_that_is_missing_is_named():
    error = refusal(SASL, ("sasl.mechanism", "SCRAM-SHA-256"))
    assert error.message == ("librdkafka also needs source.kafka.sasl.password, source.kafka.sasl.username")


def test_properties_that_do_not_go_together_are_all_named():
    error = refusal(("session.timeout.ms", "9000"), ("max.poll.interval.ms", "1000"))
    assert error.message == "librdkafka refuses the values of source.kafka.max.poll.interval.ms, source.kafka.session.timeout.ms"


def test_what_quotes_a_part_of_a_secret_is_not_repeated():
    oauth = ("sasl.oauthbearer.config", "principal=me rest-of-the-secret")
    error = refusal(SASL, ("sasl.mechanism", "OAUTHBEARER"), ("enable.sasl.oauthbearer.unsecure.jwt", "maybe-secret"), oauth)
    assert "secret" not in str(error)


def test_an_executor_reports_a_refused_property_as_the_drivers_error():
    reader = pickle.loads(pickle.dumps(KafkaRangeReader(settings(SASL, ("sasl.mechanism", "nonsense")))))  # noqa: S301 - our own bytes
    (failure,) = listen([ListenTask(range=RANGE, floor_ts=0, buckets=1)], reader, OPEN_PROTOCOL)
    assert isinstance(failure, RangeFailure)
    assert isinstance(pickle.loads(pickle.dumps(failure.error)), ConfigError)  # noqa: S301 - our own bytes
    assert failure.error.facts == {"key": "source.kafka.sasl.mechanism"}
