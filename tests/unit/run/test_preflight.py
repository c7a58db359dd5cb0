"""What a run refuses before it opens anything."""

import time

import pytest

from applier.config import load_config
from applier.model.errors import ConfigError, FatalSinkError, NeedsOperator, RetryableSinkError, SourceError
from applier.model.failure import FailureKind
from applier.model.finding import of_error, ok, problem, warning
from applier.run.preflight import error_of, refuse_wrong_setup, stopping

AWAY = of_error("sink", RetryableSinkError("the database does not answer"))
SILENT = of_error("Kafka", SourceError("Kafka does not answer", kind=FailureKind.UNREACHABLE))
ABSENT = of_error("topics", SourceError("the topic does not exist", kind=FailureKind.UNKNOWN_TOPIC))
LACKS = problem("sink: privileges", "the user lacks SELECT", "GRANT SELECT")


def test_a_server_that_does_not_answer_stops_no_run():
    assert stopping([AWAY, SILENT, ok("memory", "enough"), warning("disk", "little", "Free some")]) == []
    assert stopping([AWAY, ABSENT, LACKS]) == [ABSENT, LACKS]


def test_a_finding_becomes_the_error_that_a_run_would_raise():
    assert error_of(ABSENT) is ABSENT.error
    assert isinstance(error_of(LACKS), FatalSinkError)
    primary = problem("primary: binlog", "binlog_format is not ROW", "SET GLOBAL binlog_format = ROW")
    assert error_of(primary).exit_code == NeedsOperator.exit_code
    assert error_of(problem("Java", "is not installed", "Install it")).exit_code == ConfigError.exit_code


def test_all_errors_are_told_at_once_and_within_the_time(tmp_path, monkeypatch):
    monkeypatch.setenv("PYSPARK_PYTHON", "/no/python")
    given = {"source": {"bootstrap_servers": "127.0.0.1:1", "topics": ["cdc"]}, "sink": {"url": f"sqlite:///{tmp_path}/absent/x.db"}}
    began = time.monotonic()
    with pytest.raises(FatalSinkError) as caught:
        refuse_wrong_setup(load_config(None, given, environment={}), within_s=2.0, command="run")
    assert time.monotonic() - began < 10
    assert f"mkdir -p {tmp_path}/absent" in caught.value.remedy
    assert "executors' Python: the Python of Spark's workers cannot run applier" in caught.value.facts["also"]
