"""How a run ends is stored in the sink: at a signal, at an error, at a defect, and never over the end of another run."""

import json
import signal
import socket

import pytest

from applier.cli.main import run
from applier.config import load_config
from applier.model.errors import ConfigError, FatalSinkError, NeedsOperator, Remedy, RetryableSinkError, SourceError
from applier.model.failure import FailureKind
from applier.model.position import Ts
from applier.replica.shutdown import Shutdown
from applier.run import daemon
from applier.run.assembly import open_components
from applier.run.ending import TRY_AGAIN, end_stored, ending_on_sigterm, outlasting_retries
from applier.sinks.registry import open_sink
from applier.sinks.settings import SinkSettings
from applier.sources.binlog.position import BinlogPosition
from applier.sources.binlog.timeline import StoredTimeline
from applier.sources.ticdc.tso import TSO_TIMELINE
from applier.status import query
from applier.telemetry.monitor import Monitor
from applier.telemetry.observer import SilentObserver


@pytest.fixture
def settings(tmp_path):
    settings = SinkSettings(url=f"sqlite:///{tmp_path}/replica.db")
    with open_sink(settings) as sink:
        sink.migrate()
        sink.acquire()
        sink.begin(Ts(5))
    return settings


def end_of(settings):
    with open_sink(settings) as sink:
        found = sink.bookkeeping.overview().last_end
    return None if found is None else found.end


def ended_with(settings, error, command="run"):
    with pytest.raises(type(error)), end_stored(command, settings):
        raise error
    return end_of(settings)


def test_an_error_is_stored_with_its_code_its_facts_and_its_remedy(settings):
    end = ended_with(
        settings, NeedsOperator("the DDL cannot be expressed", remedy=Remedy("test.remedy", "Skip it"), commit_ts=7, table=None)
    )
    assert (end.command, end.exit_code, end.error_class, end.message) == ("run", 6, "NeedsOperator", "the DDL cannot be expressed")
    assert (end.facts, end.remedy) == ({"commit_ts": "7"}, "Skip it")


def test_the_error_of_a_run_is_stored_in_the_words_of_its_own_source(settings):
    error = NeedsOperator("no", remedy=Remedy("test.remedy", "`applier ddl skip --ts …`"), commit_ts=BinlogPosition(0, 42, 157).number)
    error.timeline = StoredTimeline(base_name="mariadb-bin")
    end = ended_with(settings, error)
    assert (end.facts, end.remedy) == ({"commit_position": "mariadb-bin.000042:157"}, "`applier ddl skip --ts mariadb-bin.000042:157`")


def test_an_error_takes_the_timeline_of_its_run_along(tmp_path):
    source = {"bootstrap_servers": "127.0.0.1:1", "topics": ["feed"]}
    config = load_config(None, {"source": source, "sink": {"url": f"sqlite:///{tmp_path}/replica.db"}}, environment={})
    monitor, error = Monitor(SilentObserver()), NeedsOperator("no")

    with pytest.raises(NeedsOperator), open_components(config, config.source_settings(), config.sink_settings(), monitor):
        raise error
    assert error.timeline is TSO_TIMELINE


def test_of_a_defect_only_the_class_is_stored_because_its_text_may_hold_values(settings):
    end = ended_with(settings, ValueError("the value is hunter2"))
    assert (end.exit_code, end.error_class) == (1, "ValueError")
    assert "hunter2" not in end.message


def test_an_orderly_shutdown_is_stored_with_its_signal(settings):
    shutdown = Shutdown()
    with end_stored("run", settings, shutdown):
        shutdown.signal = "SIGTERM"
    assert (end_of(settings).exit_code, end_of(settings).message) == (0, "stopped by SIGTERM")


def test_ctrl_c_and_sigterm_end_a_catch_up_with_the_code_of_the_signal(settings):
    assert ended_with(settings, KeyboardInterrupt(), "catchup").exit_code == 130
    with pytest.raises(SystemExit) as ended, end_stored("catchup", settings), ending_on_sigterm():
        signal.raise_signal(signal.SIGTERM)
    assert (ended.value.code, end_of(settings).exit_code) == (143, 143)


def test_a_command_that_a_pause_refuses_leaves_the_stored_end_as_it_is(settings):
    ended_with(settings, FatalSinkError("full"))
    assert ended_with(settings, NeedsOperator("the replica is paused", kind=FailureKind.PAUSED), "catchup").message == "full"


def test_a_sink_that_cannot_be_reached_hides_no_error_and_makes_no_file(tmp_path):
    absent = SinkSettings(url=f"sqlite:///{tmp_path}/absent.db")
    with pytest.raises(ConfigError), end_stored("run", absent):
        raise ConfigError("wrong")
    assert not (tmp_path / "absent.db").exists()
    owned = SinkSettings(url=f"sqlite:///{tmp_path}/nowhere/absent.db")
    with pytest.raises(ConfigError), end_stored("run", owned):
        raise ConfigError("wrong")


def test_no_end_is_stored_over_a_run_that_lives_elsewhere(settings, monkeypatch):
    with open_sink(settings) as sink:
        sink.acquire()
        monkeypatch.setattr(socket, "gethostname", lambda: "elsewhere")
        assert ended_with(settings, FatalSinkError("full")) is None


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (RetryableSinkError("away"), TRY_AGAIN),
        (SourceError("away", kind=FailureKind.UNREACHABLE), TRY_AGAIN),
        (SourceError("gap", kind=FailureKind.RETENTION), 3),
    ],
)
def test_what_may_pass_ends_a_run_with_a_code_that_says_so(error, code):
    with pytest.raises(type(error)), outlasting_retries():
        raise error
    assert error.exit_code == code


def test_a_broker_that_stays_away_ends_a_run_with_75_and_status_says_why_though_the_run_has_never_owned_the_replica(
    tmp_path, settings, capsys, monkeypatch
):
    monkeypatch.setattr(daemon, "KAFKA_PATIENCE_S", 0.3)
    monkeypatch.setattr(query, "SOURCE_PATIENCE_S", 0.3)
    config = tmp_path / "applier.toml"
    sections = f'[source]\nbootstrap_servers = "127.0.0.1:1"\ntopics = ["t"]\n[sink]\nurl = "{settings.url}"\n[http]\nlisten = "off"\n'
    config.write_text(sections + "[run]\nretry_for_s = 0.1\n", encoding="utf-8")
    assert run(["run", "--config", str(config)]) == TRY_AGAIN
    assert "Kafka does not answer" in capsys.readouterr().err
    assert run(["status", "--config", str(config), "--json"]) == 2
    end = json.loads(capsys.readouterr().out)["last_end"]
    assert (end["command"], end["exit_code"], end["error_class"]) == ("run", TRY_AGAIN, "SourceError")
    assert end["remedy"]
