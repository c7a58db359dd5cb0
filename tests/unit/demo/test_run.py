"""What the demo's embedded broker can keep."""

import pytest
from rich.console import Console

from applier.demo import run
from applier.demo.directory import DemoDirectory
from applier.demo.report import DemoReport
from applier.demo.run import run_demo
from applier.demo.simulator.history import History, HistoryOptions
from applier.demo.simulator.wire_format import WireFormat
from applier.model.errors import ConfigError


def test_a_log_that_the_broker_would_not_keep_is_refused_before_anything_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(run, "KEPT_BYTES", 20_000)
    history = History(1, HistoryOptions(transactions=100))
    with pytest.raises(ConfigError, match="larger than the embedded broker keeps") as caught:
        run_demo(DemoDirectory(tmp_path / "demo"), history, DemoReport(Console(quiet=True)), None, WireFormat.CANAL_JSON)
    assert "--transactions" in caught.value.remedy
