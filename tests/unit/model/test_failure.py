"""What a kind of failure does is said once, and an error keeps its kind apart from its facts."""

import pickle
import re
from pathlib import Path

import pytest

import applier
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


def test_facts_decide_nothing_after_the_way_from_an_executor():
    lost, unreadable = SourceError("m", kind=FailureKind.PURGED), ProtocolError("m", kind="json", offset=7)
    lost.facts["kind"] = unreadable.facts["kind"] = "unreachable"
    lost, unreadable = pickle.loads(pickle.dumps((lost, unreadable)))  # noqa: S301 - our own bytes
    assert (lost.kind, lost.facts, must_resume(lost)) == (FailureKind.PURGED, {"kind": "unreachable"}, True)
    assert (unreadable.fault, unreadable.facts) == ("json", {"kind": "unreachable", "offset": 7})
    assert not is_transient(unreadable)


def test_the_kind_among_the_facts_is_read_only_where_it_is_shown():
    package = Path(applier.__file__).parent
    reading = re.compile(r"""facts(?:\.get\(|\[)["']kind""")
    found = {path.relative_to(package).as_posix() for path in package.rglob("*.py") if reading.search(path.read_text(encoding="utf-8"))}
    assert found == {"cli/inspect.py", "dataframe/changelog.py"}


def test_an_error_keeps_its_kind_on_its_way_from_an_executor():
    error = pickle.loads(pickle.dumps(SourceError("m", kind=FailureKind.PURGED, at="x")))  # noqa: S301 - our own bytes
    assert (error.kind, error.facts, str(error)) == (FailureKind.PURGED, {"kind": "purged", "at": "x"}, "m [kind=purged, at=x]")


def test_a_refusal_of_the_configuration_is_never_transient():
    assert not is_transient(ConfigError("m", kind=FailureKind.UNREACHABLE))
    assert not is_transient(NeedsOperator("m"))
