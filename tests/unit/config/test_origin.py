"""Files and environment: which goes over which, and what cannot be read."""

import pytest

from applier.config import load_config
from applier.model.errors import ConfigError
from tests.builders.configuration import MINIMAL, load, refusal


def test_the_environment_goes_over_the_file_and_the_caller_over_both(tmp_path):
    environment = {
        "APPLIER_NAME": "from_environment",
        "APPLIER_SOURCE__TOPICS": "a, b",
        "APPLIER_SOURCE__PARTITIONS": "2",
        "APPLIER_SOURCE__KAFKA__SASL_PASSWORD": "secret",
        "APPLIER_SPARK__CONF": '{"spark.executor.memoryOverhead": "1g"}',
        "APPLIER_RUN__MEMORY": "1GiB",
        "APPLIER_SINK__PASSWORD": "",
        "APPLIER_DEBUG": "1",
        "APPLIER_FAILPOINT": "write.before_commit",
        "PATH": "/bin",
    }
    config = load(tmp_path, MINIMAL, environment, run={"memory": "3GiB"})

    assert (config.name, config.source.topics, config.source.partitions) == ("from_environment", ("a", "b"), 2)
    assert config.source.kafka == {"sasl.password": "secret"}
    assert config.spark.conf == {"spark.executor.memoryOverhead": "1g"}
    assert config.run.memory == 3 * 1024**3
    assert config.sink.password is None


def test_lists_and_tables_in_the_environment_may_be_json(tmp_path):
    environment = {"APPLIER_SOURCE__TOPICS": '["a", "b"]', "APPLIER_SOURCE__PARTITIONS": '{"a": 1}', "APPLIER_DDL__ADD_INDEX": "skip"}
    config = load(tmp_path, MINIMAL, environment)
    assert (config.source.topics, config.source.partitions, config.ddl.policies) == (("a", "b"), {"a": 1}, {"add_index": "skip"})


def test_the_environment_alone_is_a_configuration():
    environment = {
        "APPLIER_SOURCE__BOOTSTRAP_SERVERS": "k:9092",
        "APPLIER_SOURCE__TOPICS": "t",
        "APPLIER_SINK__URL": "mariadb+pymysql://u@h/",
        "APPLIER_SINK__PASSWORD": "p",
    }
    assert load_config(None, environment=environment).sink_settings().url == "mariadb+pymysql://u:p@h/"


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ConfigError, match="the configuration file does not exist") as caught:
        load_config(tmp_path / "no.toml", environment={})
    assert caught.value.facts["file"] == tmp_path / "no.toml"


def test_a_directory_is_not_a_configuration_file(tmp_path):
    with pytest.raises(ConfigError, match="cannot be read: Is a directory"):
        load_config(tmp_path, environment={})


def test_a_file_that_is_not_toml_is_refused_with_the_line(tmp_path):
    assert "line 2" in refusal(tmp_path, "[source]\nbootstrap_servers\n").message


def test_a_file_that_is_not_utf8_is_refused(tmp_path):
    path = tmp_path / "applier.toml"
    path.write_bytes(b'name = "\xff"')
    with pytest.raises(ConfigError, match="not UTF-8"):
        load_config(path, environment={})


def test_broken_json_in_the_environment_names_the_variable(tmp_path):
    assert "APPLIER_SOURCE__TOPICS" in refusal(tmp_path, environment={"APPLIER_SOURCE__TOPICS": '["a"'}).message


def test_a_table_in_the_environment_and_single_properties_of_it_go_together(tmp_path):
    environment = {
        "APPLIER_SOURCE__KAFKA": '{"security.protocol": "SASL_SSL", "sasl.username": "u"}',
        "APPLIER_SOURCE__KAFKA__SASL_USERNAME": "v",
    }
    assert load(tmp_path, MINIMAL, environment).source.kafka == {"security.protocol": "SASL_SSL", "sasl.username": "v"}
