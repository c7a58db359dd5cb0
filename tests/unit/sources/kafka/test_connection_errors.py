"""Connection errors of librdkafka: which of them end the wait, and what an operator sees of them."""

import pickle

import pytest
from confluent_kafka import KafkaError

from applier.model.errors import SourceError
from applier.replica.recovery import is_transient
from applier.sources.kafka.error_meaning import ConnectionErrors
from applier.sources.kafka.settings import KafkaSettings, unreachable

SECRET = "hunter-2"  # noqa: S105 - a mark that is looked for
SETTINGS = KafkaSettings(
    bootstrap_servers="b:1",
    topics=("t",),
    group_id="g",
    properties=(("sasl.password", SECRET), ("sasl.username", "us"), ("ssl.key.pem", "")),
)
WRONG_PASSWORD = KafkaError(KafkaError._AUTHENTICATION, "b:1: SASL authentication error: no (after 31ms in state AUTH_REQ)")
NO_TRUST = KafkaError(KafkaError._SSL, "b:1: SSL handshake failed")
DOWN = KafkaError(
    KafkaError._TRANSPORT, "b:1: Connect failed: Connection refused (after 0ms in state CONNECT, 3 identical error(s) suppressed)"
)
ALL_DOWN = KafkaError(KafkaError._ALL_BROKERS_DOWN, "1/1 brokers are down")


def heard(*errors: KafkaError) -> ConnectionErrors:
    found = ConnectionErrors(SETTINGS)
    for error in errors:
        found.add(error)
    return found


@pytest.mark.parametrize(
    ("error", "cause", "remedy"),
    [(WRONG_PASSWORD, "b:1: SASL authentication error: no", "sasl.password"), (NO_TRUST, "b:1: SSL handshake failed", "ssl.ca.location")],
)
def test_repeated_refusals_end_the_wait(error, cause, remedy):
    with pytest.raises(SourceError) as caught:
        heard(error, ALL_DOWN, DOWN, error).check()
    reported = pickle.loads(pickle.dumps(caught.value))  # noqa: S301 - our own bytes
    assert reported.facts == {"kind": "refused", "bootstrap_servers": "b:1", "cause": cause}
    assert remedy in reported.remedy
    assert reported.exit_code == 3
    assert not is_transient(reported)


def test_a_broker_that_dies_in_a_handshake_is_waited_for():
    heard(NO_TRUST, ALL_DOWN, DOWN).check()
    heard(*[DOWN] * 5).check()


def test_refusals_before_an_answer_do_not_count():
    errors = heard(WRONG_PASSWORD)
    errors.clear()
    assert errors.latest == ""
    errors.add(WRONG_PASSWORD)
    errors.check()


def test_the_newest_error_that_names_a_reason_is_kept():
    assert heard(DOWN, ALL_DOWN).latest == "b:1: Connect failed: Connection refused"
    assert heard(ALL_DOWN).latest == ""


def test_secrets_that_a_broker_repeats_are_masked_and_names_are_not():
    errors = heard(*[KafkaError(KafkaError._AUTHENTICATION, f"user us with {SECRET}: no")] * 2)
    assert errors.latest == "user us with ***: no"
    with pytest.raises(SourceError) as caught:
        errors.check()
    assert SECRET not in str(caught.value)
    assert unreachable(SETTINGS, "x", KafkaError(KafkaError._FAIL, f"{SECRET}!")).facts["cause"].endswith('str="***!"}')
