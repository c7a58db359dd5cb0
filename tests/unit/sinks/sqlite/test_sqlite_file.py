"""What can be wrong with the file of a sink, named with a remedy."""

import pytest

from applier.model.errors import (
    ConfigError,
    FatalSinkError,
)
from applier.sinks.settings import SinkSettings
from applier.sinks.sqlite.sink import SqliteSink
from tests.unit.sinks.sqlite.sqlite_replica import settings


def test_a_file_that_is_no_database_is_named_with_a_remedy(path):
    path.write_bytes(b"not a database, but long enough to be looked at as one" * 100)
    with SqliteSink(settings(path)) as sink, pytest.raises(FatalSinkError, match="not an SQLite database") as raised:
        sink.migrate()
    assert raised.value.facts["path"] == str(path)
    assert raised.value.remedy


def test_a_directory_that_does_not_exist_is_named_with_a_remedy(tmp_path):
    path = tmp_path / "nowhere" / "replica.db"
    with SqliteSink(settings(path)) as sink:
        for failing in (sink.migrate, sink.acquire):
            with pytest.raises(FatalSinkError, match="directory of the database file does not exist") as raised:
                failing()
            assert raised.value.remedy


def test_reading_a_file_that_does_not_exist_makes_none(path):
    with SqliteSink(settings(path)) as sink, pytest.raises(FatalSinkError, match="no database file"):
        sink.load()
    assert not path.exists()


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///:memory:"])
def test_a_database_in_memory_is_refused(url):
    with pytest.raises(ConfigError):
        SqliteSink(SinkSettings(url=url))


def test_an_unknown_time_zone_is_refused(path):
    with pytest.raises(ConfigError):
        SqliteSink(settings(path, time_zone="Mars/Olympus"))


def test_a_relative_path_means_the_directory_of_the_start(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    sink = SqliteSink(SinkSettings(url="sqlite:///replica.db"))
    monkeypatch.chdir("/")
    assert sink.writer.sessions.path == tmp_path / "replica.db"
