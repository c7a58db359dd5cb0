"""Variables of the environment: what is text, what is JSON, and which variable an error names."""

import os

import pytest

from applier.config import load_config
from applier.model.errors import ConfigError

ENOUGH = {
    "APPLIER_SOURCE__BOOTSTRAP_SERVERS": "k:9092",
    "APPLIER_SOURCE__TOPICS": "t",
    "APPLIER_SINK__URL": "mysql+pymysql://u@h/",
}


def load(**environment: str):
    return load_config(None, environment=ENOUGH | environment)


@pytest.mark.parametrize("password", ["{half", "[1, 2]", '{"a": 1}', "null", "0123"])
def test_a_password_that_looks_like_json_is_text(password):
    config = load(APPLIER_SINK__PASSWORD=password, APPLIER_SOURCE__KAFKA__SASL_PASSWORD=password)
    assert config.sink.password.get_secret_value() == password
    assert config.source.kafka == {"sasl.password": password}


def test_a_whole_section_may_be_one_variable():
    assert load(APPLIER_RUN='{"memory": "1GiB", "lease_s": 3}', APPLIER_RUN__LEASE_S="4").run.model_dump(include={"memory", "lease_s"}) == {
        "memory": 1024**3,
        "lease_s": 4,
    }


def test_a_section_that_is_no_table_names_its_variable():
    with pytest.raises(ConfigError, match="run must be a table") as caught:
        load(APPLIER_RUN="fast")
    assert caught.value.facts["environment"] == "APPLIER_RUN"


def test_properties_given_as_json_keep_their_underscores_and_their_case():
    assert load(APPLIER_SPARK__CONF='{"spark.executorEnv.MY_VAR": "x"}').spark.conf == {"spark.executorEnv.MY_VAR": "x"}


def test_broken_json_is_not_quoted():
    with pytest.raises(ConfigError, match="APPLIER_SOURCE__KAFKA starts like JSON") as caught:
        load(APPLIER_SOURCE__KAFKA='{"sasl.password": "hunter2"')
    assert "hunter2" not in str(caught.value)


def test_the_process_environment_is_read_where_no_other_is_given(monkeypatch):
    for name, text in ENOUGH.items():
        monkeypatch.setenv(name, text)
    assert load_config(None).source.topics == ("t",)


def test_a_loaded_configuration_reads_nothing_more(monkeypatch):
    config = load()
    monkeypatch.setenv("APPLIER_NAME", "other")
    assert type(config).model_validate(dict(config)).name == "replica"


def test_a_pipe_is_no_configuration_file(tmp_path):
    os.mkfifo(tmp_path / "applier.toml")
    with pytest.raises(ConfigError, match="Is not a regular file"):
        load_config(tmp_path / "applier.toml", environment=ENOUGH)


@pytest.mark.parametrize(
    ("environment", "variables"),
    [
        ({"APPLIER_SUNK__URL": "x", "APPLIER_SUNK__NAME": "x"}, "APPLIER_SUNK__NAME APPLIER_SUNK__URL"),
        ({"APPLIER_RUN__MEMROY": "1GiB"}, "APPLIER_RUN__MEMROY"),
        ({"APPLIER_RUN": '{"memroy": "1GiB"}'}, "APPLIER_RUN"),
        ({"APPLIER_SOURCE__KAFKA__GROUP_INSTANCE_ID": "x"}, "APPLIER_SOURCE__KAFKA__GROUP_INSTANCE_ID"),
    ],
)
def test_an_error_names_the_very_variables_that_are_set(environment, variables):
    with pytest.raises(ConfigError) as caught:
        load(**environment)
    assert caught.value.facts["environment"] == variables
