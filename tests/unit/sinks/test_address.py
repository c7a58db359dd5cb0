"""The URL of a sink: which are allowed, and why others are refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import URL

from applier.config import load_config
from applier.model.errors import ConfigError
from applier.mysql.address import HARMLESS, connect_timeout_of
from applier.sinks.registry import open_sink, sink_url
from applier.sinks.settings import SinkSettings

SERVER = "mysql+pymysql://u@h/"
SECRET = "hunter2"  # noqa: S105 - a mark that is looked for


def refusal(url: str) -> ConfigError:
    """The ConfigError of a URL: the same words from the configuration and from the sink."""
    with pytest.raises(ConfigError) as of_sink:
        open_sink(SinkSettings(url=url))
    environment = {"APPLIER_SOURCE__BOOTSTRAP_SERVERS": "k:1", "APPLIER_SOURCE__TOPICS": "t", "APPLIER_SINK__URL": url}
    with pytest.raises(ConfigError) as of_config:
        load_config(None, environment=environment)
    assert of_config.value.message == of_sink.value.message.replace("the sink's url", "sink.url")
    assert of_sink.value.remedy in of_config.value.remedy
    assert of_config.value.exit_code == 2
    for error in (of_sink.value, of_config.value):
        assert (error.__cause__, error.__suppress_context__) == (None, True)
        assert SECRET not in f"{error}{error!r}{error.facts}"
    return of_config.value


@pytest.mark.parametrize(
    ("option", "remedy"),
    [
        ("autocommit=true", "the applier decides what is committed together"),
        ("autocommit=false", "the applier decides what is committed together"),
        ("autocommit", "the applier decides what is committed together"),
        ("charset=latin1", "utf8mb4"),
        ("collation=utf8mb4_bin", "utf8mb4"),
        ("use_unicode=0", "utf8mb4"),
        ("init_command=SET+autocommit=1", "source.time_zone"),
        ("sql_mode=ANSI", "of its sessions itself"),
        ("read_timeout=1", "timeouts"),
        ("write_timeout=1", "timeouts"),
        ("client_flag=65536", "sets the driver's options"),
        ("local_infile=1", "sets the driver's options"),
        ("cursorclass=x", "sets the driver's options"),
        ("conv=x", "sets the driver's options"),
        ("defer_connect=1", "sets the driver's options"),
        ("read_default_file=/etc/my.cnf", "password_file"),
        ("host=other", "before the '?'"),
        ("db=shop", "before the '?'"),
        ("ssl_ca=ca.pem", "tls_ca"),
        ("ssl_disabled=false", "tls_mode"),
        ("ssl_verify_cert=false", "tls_mode"),
        ("conect_timeout=5", "Did you mean 'connect_timeout'?"),
        ("program=x", "Did you mean 'program_name'?"),
        ("zzz=1", "options are: bind_address, connect_timeout, program_name, unix_socket"),
    ],
)
def test_an_option_that_could_break_a_session_is_refused_with_what_to_use_instead(option, remedy):
    error = refusal(f"{SERVER}?{option}")
    assert error.message == f"sink.url has an unsupported option: {option.partition('=')[0]!r}"
    assert remedy in error.remedy


def test_every_option_of_the_driver_is_either_harmless_or_refused():
    import inspect  # noqa: PLC0415 - used here only

    import pymysql  # noqa: PLC0415 - used here only

    for option in inspect.signature(pymysql.Connection.__init__).parameters:
        if option not in {"self", *HARMLESS}:
            assert option in refusal(f"{SERVER}?{option}={SECRET}").message


def test_harmless_options_are_taken():
    url = sink_url(f"{SERVER}?unix_socket=/run/s&bind_address=10.0.0.1&program_name=orders&connect_timeout=5")
    assert connect_timeout_of(url, 10) == 5
    assert connect_timeout_of(sink_url(SERVER), 10) == 10
    assert sink_url("mysql+pymysql://u@/?unix_socket=/run/s").host in {None, ""}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("connect_timeout=0", "a wrong value"),
        ("connect_timeout=61", "a wrong value"),
        ("connect_timeout=1.5", "a wrong value"),
        ("connect_timeout=", "one value"),
        ("program_name=a&program_name=b", "one value"),
    ],
)
def test_the_value_of_an_option_is_checked(options, words):
    assert words in refusal(f"{SERVER}?{options}").message


@pytest.mark.parametrize("password", [f"p@{SECRET}", f"@{SECRET}", f"p@{SECRET}/x", f"p@1:{SECRET}", f"p@s?{SECRET}", f"p@s#{SECRET}@"])
def test_a_password_with_a_bare_at_sign_is_named_and_never_quoted(password):
    error = refusal(f"mysql+pymysql://u:{password}@h:3306/")
    assert "contains an '@' that is not encoded as %40" in error.message
    assert "%40" in error.remedy
    assert "password_file" in error.remedy
    assert "APPLIER_SINK__PASSWORD" in error.remedy


def test_a_port_that_is_no_number_may_be_a_part_of_a_password():
    assert "%3A" in refusal(f"mysql+pymysql://u@h:{SECRET}/").remedy


@pytest.mark.parametrize("password", ["p/w", "p:w", "p#w", "p?w=1", "p%40w", "p+ w", "p&w"])
def test_other_bare_signs_are_a_part_of_the_password(password):
    url = sink_url(f"mysql+pymysql://u:{password}@h:3306/")
    assert (url.password, url.host, url.port, dict(url.query)) == (password.replace("%40", "@"), "h", 3306, {})


def test_a_user_may_hold_an_at_sign():
    url = sink_url("mysql+pymysql://applier@tenant:p@h:3306/")
    assert (url.username, url.password, url.host) == ("applier@tenant", "p", "h")


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_any_password_of_the_environment_arrives_as_it_is(password):
    environment = {
        "APPLIER_SOURCE__BOOTSTRAP_SERVERS": "k:1",
        "APPLIER_SOURCE__TOPICS": "t",
        "APPLIER_SINK__URL": SERVER,
        "APPLIER_SINK__PASSWORD": password,
    }
    config = load_config(None, environment=environment)
    assert sink_url(config.sink_settings().url).password == password
    assert config.sink.address == SERVER


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("sqlite:///replica.db?mode=ro", "has an option, and a SQLite sink takes no options: 'mode'"),
        ("sqlite:///replica.db?uri=true", "has an option, and a SQLite sink takes no options: 'uri'"),
        ("sqlite:///replica.db?timeout", "has an option, and a SQLite sink takes no options: 'timeout'"),
        ("sqlite:///file:replica.db?mode=ro&uri=true", "names the file as a URI"),
        ("sqlite:///file:x?mode=memory&uri=true", "names no file"),
        ("sqlite://data/replica.db", "names a host"),
        (f"sqlite://u:{SECRET}@/replica.db", "names a host"),
        ("sqlite+aiosqlite:///replica.db", "not supported: 'sqlite+aiosqlite'"),
        ("mysql+mysqldb://u@h/", "not supported: 'mysql+mysqldb'"),
        ("mysql+asyncmy://u@h/", "not supported: 'mysql+asyncmy'"),
        ("mariadb+mariadbconnector://u@h/", "not supported: 'mariadb+mariadbconnector'"),
        ("tidb://u@h/", "not supported: 'tidb'"),
    ],
)
def test_what_is_not_supported_is_refused(url, words):
    assert words in refusal(url).message


@pytest.mark.parametrize("name", ["a b.db", "100%.db", "a?b.db", "a#b@c:d.db", "ü.db"])
def test_a_file_may_have_any_name(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    url = URL.create("sqlite", database=name).render_as_string().replace("?", "%3F")
    with open_sink(SinkSettings(url=url)) as sink:
        sink.migrate()
    assert (tmp_path / name).exists()


def test_a_directory_may_have_any_name(tmp_path, monkeypatch):
    (tmp_path / "is it 100%?").mkdir()
    monkeypatch.chdir(tmp_path / "is it 100%?")
    with open_sink(SinkSettings(url="sqlite+pysqlite:///replica.db")) as sink:
        sink.migrate()
    assert (tmp_path / "is it 100%?" / "replica.db").exists()
