"""The directory of the demo."""

import pytest

from applier.demo.directory import DemoDirectory
from applier.model.errors import ConfigError


@pytest.fixture
def files(tmp_path):
    files = DemoDirectory(tmp_path / "demo")
    files.clear()
    return files


def test_the_demo_writes_a_configuration_that_its_runs_can_read(files):
    config = files.write_config("127.0.0.1:5")
    assert config.source.bootstrap_servers == "127.0.0.1:5"
    assert config.sink_settings().url == f"sqlite:///{files.replica.resolve()}"
    assert config.spark.conf == {"spark.local.dir": str(files.spark.resolve())}


def test_a_second_demo_clears_what_the_first_one_left(files):
    files.write_config("h:1")
    files.spark.mkdir()
    for name in ("replica.db", "replica.db-wal", "oracle.db", "oracle_at_kill.db", "catchup.log", "notes.txt"):
        (files.path / name).write_text("x")
    files.clear()
    assert sorted(path.name for path in files.path.iterdir()) == ["applier.toml", "notes.txt"]


def test_a_directory_of_somebody_else_is_left_alone(tmp_path):
    (tmp_path / "replica.db").write_text("mine")
    with pytest.raises(ConfigError, match="not empty"):
        DemoDirectory(tmp_path).clear()
    assert (tmp_path / "replica.db").read_text() == "mine"
    # With another one, as the remedy says, the demo begins.
    DemoDirectory(tmp_path / "other").clear()
    assert (tmp_path / "other").is_dir()
