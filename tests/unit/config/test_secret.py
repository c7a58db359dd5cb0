"""Secrets from files, what is shown of them, and TLS to the database."""

import os
import pickle

import pytest

from applier.cli.option import read_config
from applier.config import load_config, remove_from_environment
from applier.database.session import Tls, TlsMode
from applier.model.errors import ConfigError

SECRET = "hunter-2-€"  # noqa: S105 - a mark that is looked for
ENOUGH = {
    "APPLIER_SOURCE__BOOTSTRAP_SERVERS": "k:9092",
    "APPLIER_SOURCE__TOPICS": "t",
    "APPLIER_SINK__URL": "mysql+pymysql://u@h/",
}


def load(environment=None, **overrides):
    return load_config(None, overrides, environment=ENOUGH | (environment or {}))


def refusal(environment=None, **overrides) -> str:
    with pytest.raises(ConfigError) as caught:
        load(environment, **overrides)
    assert caught.value.remedy or "input should be" in caught.value.message
    assert SECRET not in str(caught.value)
    return caught.value.message


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "secret"
    path.write_text(f"{SECRET}\r\n", encoding="utf-8")
    return str(path)


def test_the_password_of_the_sink_may_be_in_its_own_file(file):
    config = load(sink={"password_file": file})
    assert config.sink_settings().url == "mysql+pymysql://u:hunter-2-%E2%82%AC@h/"
    assert load({"APPLIER_SINK__PASSWORD_FILE": file}) == config


def test_any_property_of_librdkafka_may_be_in_its_own_file(file):
    config = load(source={"kafka": {"sasl.username": "u", "sasl.password.file": file}})
    assert config.source_settings().properties == (("sasl.password", SECRET), ("sasl.username", "u"))
    assert load({"APPLIER_SOURCE__KAFKA__SASL_PASSWORD_FILE": file}).source.kafka == {"sasl.password": SECRET}


def test_a_secret_of_several_lines_keeps_them(tmp_path):
    (tmp_path / "ca.pem").write_text("-----BEGIN\nabc\n-----END\n", encoding="utf-8")
    assert load(source={"kafka": {"ssl.ca.pem.file": str(tmp_path / "ca.pem")}}).source.kafka["ssl.ca.pem"] == "-----BEGIN\nabc\n-----END"


@pytest.mark.parametrize(
    ("content", "words"),
    [(None, "names a file that cannot be read: No such file"), (b"\n", "names an empty file"), (b"\xff", "not UTF-8 text")],
    ids=["missing", "empty", "binary"],
)
def test_a_file_without_a_secret_is_refused_by_its_key(content, words, tmp_path):
    path = tmp_path / SECRET
    if content is not None:
        path.write_bytes(content)
    assert refusal(sink={"password_file": str(path)}).startswith("sink.password_file ")
    assert words in refusal(sink={"password_file": str(path)})
    assert words in refusal(source={"kafka": {"sasl.password.file": str(path)}})
    assert refusal(source={"kafka": {"sasl.password.file": str(path)}}).startswith("source.kafka 'sasl.password.file' ")


def test_a_directory_is_no_secret(tmp_path):
    assert "Is a directory" in refusal(sink={"password_file": str(tmp_path)})


def test_a_secret_that_is_given_twice_is_refused(file):
    assert "sets both password and password_file" in refusal({"APPLIER_SINK__PASSWORD": SECRET}, sink={"password_file": file})
    both = {"sasl.password": SECRET, "sasl.password.file": file}
    assert "sets both 'sasl.password' and 'sasl.password.file'" in refusal(source={"kafka": both})


def test_a_property_that_the_applier_sets_cannot_come_from_a_file_either(file):
    assert "cannot set 'group.instance.id'" in refusal(source={"kafka": {"group.instance.id.file": file}})


@pytest.mark.parametrize("option", ["password", "passwd", "ssl_key_password"])
def test_a_secret_among_the_options_of_the_url_is_refused(option):
    assert f"holds a secret in its option '{option}'" in refusal(sink={"url": f"mysql+pymysql://u@h/?{option}={SECRET}"})


def test_what_is_read_from_files_is_in_no_repr_and_survives_pickling(file):
    config = load(sink={"password_file": file, "url": f"mysql+pymysql://u:other-{SECRET}@h/"}, source={"kafka": {"ssl.key.pem.file": file}})
    for value in (config, config.sink, config.source, config.sink_settings(), config.source_settings(), config.sink.address):
        assert SECRET not in f"{value!r}{value}"
    assert pickle.loads(pickle.dumps(config)) == config  # noqa: S301 - our own bytes


@pytest.fixture
def tls_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("ca", "c", "k"):
        (tmp_path / name).touch()


@pytest.mark.parametrize(
    ("section", "key"),
    [
        ("sink", "tls_ca"),
        ("sink", "tls_cert"),
        ("source", "upstream_tls_ca"),
        ("source", "kafka.ssl.ca.location"),
        ("source", "kafka.ssl.key.location"),
    ],
)
def test_a_file_of_tls_that_is_not_there_is_refused_by_its_path(section, key):
    keys = {"kafka": {key.removeprefix("kafka."): "/nope.pem"}} if key.startswith("kafka.") else {key: "/nope.pem"}
    assert "names a file that cannot be read: /nope.pem (No such file or directory)" in refusal(**{section: keys})


def test_a_private_key_in_the_place_of_its_path_is_not_quoted():
    text = refusal(sink={"tls_key": f"-----BEGIN\n{SECRET}\n-----END"})
    assert "sink.tls_key is not a path" in text
    assert SECRET not in text


@pytest.mark.parametrize(
    ("keys", "tls"),
    [
        ({}, Tls()),
        ({"tls_ca": "ca"}, Tls(mode=TlsMode.VERIFY_IDENTITY, ca="ca")),
        ({"tls_ca": "ca", "tls_mode": "verify_ca"}, Tls(mode=TlsMode.VERIFY_CA, ca="ca")),
        ({"tls_mode": "verify_identity"}, Tls(mode=TlsMode.VERIFY_IDENTITY)),
        ({"tls_cert": "c", "tls_key": "k"}, Tls(mode=TlsMode.REQUIRED, cert="c", key="k")),
        ({"tls_ca": "ca", "tls_cert": "c"}, Tls(mode=TlsMode.VERIFY_IDENTITY, ca="ca", cert="c")),
        ({"tls_mode": "disabled"}, Tls(mode=TlsMode.DISABLED)),
    ],
)
@pytest.mark.usefixtures("tls_files")
def test_tls_is_as_strict_as_what_is_given_allows(keys, tls):
    assert load(sink=keys).sink_settings().tls == tls


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"tls_key": "k"}, "tls_key without tls_cert"),
        ({"tls_ca": "ca", "tls_mode": "required"}, 'which tls_mode = "required" ignores'),
        ({"tls_ca": "ca", "tls_mode": "preferred"}, 'which tls_mode = "preferred" ignores'),
        ({"tls_cert": "c", "tls_mode": "disabled"}, 'tls_mode = "disabled" does not require TLS'),
        ({"tls_mode": "strict"}, "sink.tls_mode is invalid: input should be 'disabled', 'preferred'"),
        ({"tls_ca": "ca", "url": "mysql+pymysql://u@h/?ssl_ca=other"}, "unsupported option: 'ssl_ca'"),
        ({"tls_mode": "required", "url": "sqlite:///replica.db"}, "for a SQLite file"),
    ],
)
@pytest.mark.usefixtures("tls_files")
def test_tls_that_would_promise_more_than_it_keeps_is_refused(keys, words):
    assert words in refusal(sink=keys)


def test_the_configuration_leaves_the_environment_once_it_is_read(monkeypatch, tmp_path):
    (tmp_path / "applier.toml").write_text("", encoding="utf-8")
    for name, text in ENOUGH.items():
        monkeypatch.setenv(name, text)
    monkeypatch.setenv("APPLIER_SINK__PASSWORD", SECRET)
    monkeypatch.setenv("applier_source__kafka__sasl_password", SECRET)
    monkeypatch.setenv("APPLIER_RUN", '{"memory": "1GiB"}')
    monkeypatch.setenv("APPLIER_FAILPOINT", "write.before_commit")

    assert read_config(tmp_path / "applier.toml").sink.password is not None
    assert not any(SECRET in text for text in os.environ.values())
    assert not {name.casefold() for name in (*ENOUGH, "APPLIER_RUN")} & {name.casefold() for name in os.environ}
    assert os.environ["APPLIER_FAILPOINT"] == "write.before_commit"


def test_what_is_no_configuration_stays_in_the_environment():
    environment = {"APPLIER_DEBUG": "1", "PATH": "/bin", "APPLIER_TEST_KAFKA": "h:1", "APPLIER_NAME": "n", "APPLIER_SINK__URL": "u"}
    remove_from_environment(environment)
    assert environment == {"APPLIER_DEBUG": "1", "PATH": "/bin", "APPLIER_TEST_KAFKA": "h:1"}
