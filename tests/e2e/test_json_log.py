"""With JSON logs every line of standard error is one JSON object, also while Spark fails."""

import json
import subprocess
import sys
from uuid import uuid4

import pytest

from applier.demo.simulator.kafka_log import produce_log
from applier.model.position import Stream
from applier.telemetry.log_event import LogEvent
from tests.builders.handwritten import CREATE_SCHEMA, everywhere, log_of, resolved

pytestmark = [pytest.mark.e2e, pytest.mark.slow]


@pytest.fixture
def configuration(tmp_path, mock_kafka):
    topic = f"json-{uuid4().hex[:8]}"
    log = log_of(*everywhere(CREATE_SCHEMA), *everywhere(resolved(11)))
    produce_log([record._replace(stream=Stream(topic, record.stream.partition)) for record in log], mock_kafka)
    path = tmp_path / "applier.toml"
    path.write_text(
        f'[source]\nbootstrap_servers = "{mock_kafka}"\ntopics = ["{topic}"]\n[sink]\nurl = "sqlite:///{tmp_path}/replica.db"\n'
        '[log]\nformat = "json"\n[spark]\nmaster = "local[1]"\n[spark.conf]\n"spark.serializer" = "no.such.Serializer"\n',
        encoding="utf-8",
    )
    return path


def test_a_spark_that_does_not_start_leaves_json_only(configuration):
    command = [sys.executable, "-m", "applier", "catchup", "--config", str(configuration)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    entries = [json.loads(line) for line in done.stderr.splitlines()]
    spark, last = entries[-2:]
    assert (spark["message"], spark["source"], spark["cause"]) == (
        "foreign_output",
        "SparkContext",
        "java.lang.ClassNotFoundException: no.such.Serializer",
    )
    assert "\n\tat " in spark["output"]
    assert (last["message"], last["exit_code"], done.returncode) == ("command_failed", done.returncode, 1)
    assert {entry["message"] for entry in entries} <= set(LogEvent)
