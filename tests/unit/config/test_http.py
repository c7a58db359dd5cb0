"""``[http]`` and ``[log]``: where the daemon answers, and what it logs."""

import json

import pytest

from applier.config import HttpConfig, LogConfig, load_config
from applier.config.http import Listen
from applier.model.errors import ConfigError

MINIMAL = '[source]\nbootstrap_servers = "h:1"\ntopics = ["t"]\n[sink]\nurl = "sqlite:///r.db"\n'


def load(tmp_path, text, **environment):
    path = tmp_path / "applier.toml"
    path.write_text(MINIMAL + text, encoding="utf-8")
    return load_config(path, environment=environment)


def test_it_answers_on_loopback_by_default():
    assert HttpConfig().listen == Listen("127.0.0.1", 9464)


@pytest.mark.parametrize(
    ("written", "listen"),
    [
        ("9000", Listen("127.0.0.1", 9000)),
        ('"9000"', Listen("127.0.0.1", 9000)),
        ('"0.0.0.0:9464"', Listen("0.0.0.0", 9464)),  # noqa: S104 - an operator may
        ('"[::1]:9464"', Listen("::1", 9464)),
        ('"metrics.local:80"', Listen("metrics.local", 80)),
        ('"off"', None),
    ],
)
def test_the_operator_chooses_where_it_answers(tmp_path, written, listen):
    assert load(tmp_path, f"[http]\nlisten = {written}\n").http.listen == listen


def test_the_environment_can_set_it(tmp_path):
    assert load(tmp_path, "", APPLIER_HTTP__LISTEN="off").http.listen is None


@pytest.mark.parametrize("written", ['"nine"', '"host:"', '"host:70000"', '"a b:1"', "-1", '""', "[1]"])
def test_what_is_no_address_is_refused_with_a_remedy(tmp_path, written):
    with pytest.raises(ConfigError, match=r"http\.listen is not a listen address") as caught:
        load(tmp_path, f"[http]\nlisten = {written}\n")
    assert "127.0.0.1:9464" in caught.value.remedy


@pytest.mark.parametrize(
    ("host", "reached_at"),
    [("0.0.0.0", "127.0.0.1"), ("::", "::1"), ("10.1.2.3", "10.1.2.3")],  # noqa: S104 - see above
)
def test_a_server_on_all_addresses_is_reached_on_loopback(host, reached_at):
    assert Listen(host, 1).reached_at == reached_at


def test_the_log_is_text_of_level_info_by_default(tmp_path):
    assert LogConfig() == LogConfig(format="text", level="info")
    with pytest.raises(ConfigError, match=r"log\.level is invalid"):
        load(tmp_path, '[log]\nlevel = "loud"\n')


TOKEN = "0123456789abcdef"  # noqa: S105 - of the tests


def http_of(tmp_path, **keys):
    return load(tmp_path, "[http]\n" + "".join(f"{name} = {json.dumps(value)}\n" for name, value in keys.items())).http


def test_without_a_token_there_are_no_commands(tmp_path):
    assert http_of(tmp_path).secret == ""


def test_a_token_is_read_from_its_file_and_never_shown(tmp_path):
    (tmp_path / "token").write_text(TOKEN + "\n", encoding="utf-8")
    http = http_of(tmp_path, token_file=str(tmp_path / "token"))
    assert http.secret == TOKEN
    assert TOKEN not in repr(http)


@pytest.mark.parametrize(
    ("keys", "words"),
    [({"token": "short"}, "16 characters"), ({"token": TOKEN, "token_file": __file__}, "both"), ({"names": ["http://x"]}, "names")],
)
def test_a_token_that_is_easily_guessed_and_a_name_that_is_none_are_refused(tmp_path, keys, words):
    with pytest.raises(ConfigError) as caught:
        http_of(tmp_path, **keys)
    assert words in str(caught.value)
