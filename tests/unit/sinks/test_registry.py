"""The sink is chosen by the URL."""

from pathlib import Path

import pytest

from applier.model.errors import ConfigError
from applier.sinks.mysql.sink import MysqlSink
from applier.sinks.registry import open_sink
from applier.sinks.settings import SinkSettings


@pytest.mark.parametrize("scheme", ["mysql+pymysql", "mariadb+pymysql"])
def test_the_mysql_family_is_one_sink_and_opening_it_connects_to_nothing(scheme: str) -> None:
    with open_sink(SinkSettings(url=f"{scheme}://nobody@127.0.0.1:1/")) as sink:
        assert isinstance(sink, MysqlSink)


def test_sqlite_is_the_embedded_sink(tmp_path: Path) -> None:
    with open_sink(SinkSettings(url=f"sqlite:///{tmp_path}/replica.db")) as sink:
        assert type(sink).__name__ == "SqliteSink"


@pytest.mark.parametrize(
    ("url", "nearest"),
    [
        ("mysql://u:secret@h/", "mysql+pymysql"),
        ("mariadb://h/", "mariadb+pymysql"),
        ("sqlit:///x.db", "sqlite"),
        ("postgresql://u:secret@h/", "Write mysql+pymysql://"),
    ],
)
def test_another_scheme_is_refused_with_the_nearest_choice_and_without_the_password(url: str, nearest: str) -> None:
    with pytest.raises(ConfigError) as caught:
        open_sink(SinkSettings(url=url))
    assert nearest in caught.value.remedy
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("url", ["", "no url", "mysql+pymysql://u:secret@h:port/"])
def test_what_is_no_url_is_refused_without_quoting_it(url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        open_sink(SinkSettings(url=url))
    assert "secret" not in repr(caught.value) + str(caught.value.__cause__)
