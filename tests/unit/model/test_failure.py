"""What a kind of failure does is said once, and an error keeps its kind apart from its facts."""

import pickle

import pytest

from applier.model.errors import ConfigError, NeedsOperator, ProtocolError, SourceError
from applier.model.failure import REACTIONS, FailureKind, Reaction
from applier.replica.recovery import is_transient, must_resume


@pytest.mark.parametrize("kind", FailureKind)
def test_what_a_run_does_follows_the_table_alone(kind):
    reaction = REACTIONS.get(kind, Reaction.STOP)
    error = SourceError("m", kind=kind)
    assert is_transient(error) is (reaction in {Reaction.RETRY, Reaction.RELOAD})
    assert must_resume(error) is (reaction is Reaction.RELOAD)


def test_the_facts_decide_nothing():
    error = SourceError("m")
    error.facts["kind"] = "unreachable"
    assert not is_transient(error)
    error = SourceError("m", kind=FailureKind.UNREACHABLE)
    error.facts.clear()
    assert is_transient(error)


def test_a_record_that_cannot_be_read_stops_a_run_whatever_its_kind():
    assert not is_transient(ProtocolError("m", kind="unreachable"))
    assert not must_resume(ProtocolError("m", kind="other_log"))


def test_an_error_keeps_its_kind_on_its_way_from_an_executor():
    error = pickle.loads(pickle.dumps(SourceError("m", kind=FailureKind.PURGED, at="x")))  # noqa: S301 - our own bytes
    assert (error.kind, error.facts, str(error)) == (FailureKind.PURGED, {"kind": "purged", "at": "x"}, "m [kind=purged, at=x]")


def test_a_refusal_of_the_configuration_is_never_transient():
    assert not is_transient(ConfigError("m", kind=FailureKind.UNREACHABLE))
    assert not is_transient(NeedsOperator("m"))
