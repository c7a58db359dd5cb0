"""``applier replicas``: what is listed, what a reset and a removal delete, and when they refuse."""

import json
from dataclasses import replace

import pytest

from applier.cli import replicas as command
from applier.cli.main import run
from applier.config import load_config
from applier.model.events import TableName
from applier.model.position import Offset, Stream, StreamPosition, Ts
from applier.sinks.loaded_dump import DECLARED, LoadedDump
from applier.sinks.progress import ProgressCommit
from applier.sinks.quarantine import SkipRule
from applier.sinks.registry import open_sink
from applier.sources.binlog.state import SourceState

TS = Ts(458173202432000001)


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "applier.toml"
    source = '[source]\nbootstrap_servers = "127.0.0.1:1"\ntopics = ["feed"]\n'
    path.write_text(f'name = "orders"\n{source}[sink]\nurl = "sqlite:///{tmp_path}/r.db"\n', encoding="utf-8")
    return path


def opened(config):
    return open_sink(load_config(config, environment={}).sink_settings())


@pytest.fixture
def begun(config):
    """A replica that has a checkpoint, a position, a known table, a load, a skip rule and a pause."""
    with opened(config) as sink:
        sink.migrate()
        sink.bookkeeping.loaded_dump.declare(LoadedDump(start_ts=TS, directory="", loader=DECLARED, loaded_by="me"))
        sink.acquire()
        progress = sink.begin(TS)
        position = {Stream("feed", 0): StreamPosition(next_offset=Offset(7), resolved_ts=TS)}
        commit = ProgressCommit(checkpoint_ts=Ts(TS + 1), positions=position, known_tables=frozenset({TableName("shop", "orders").fold()}))
        assert sink.save(progress.fence, commit).state == "committed"
        sink.bookkeeping.quarantine.add_skip_rule(SkipRule(commit_ts=Ts(TS + 9), decided_by="me"))
        sink.bookkeeping.pauses.begin("me")
    return config


def call(config, *words):
    return run(["replicas", *words, "--config", str(config)])


def listed(config, capsys):
    capsys.readouterr()
    assert call(config, "list", "--json") == 0
    return json.loads(capsys.readouterr().out)


def test_replicas_are_listed_with_what_is_stored_of_them(begun, capsys):
    (found,) = listed(begun, capsys)
    assert (found["name"], found["checkpoint_ts"], found["paused"]) == ("orders", TS + 1, True)
    assert found["stored"] == {"progress": 1, "stream": 1, "known_table": 1, "loaded_dump": 1, "skip_rule": 1, "pause": 1}
    assert call(begun, "list") == 0
    assert "orders: stopped, paused, checkpoint 2025-05-21 01:47:42.500Z" in capsys.readouterr().out


def test_a_reset_forgets_how_far_the_replica_is_and_keeps_decisions_and_epoch(begun, capsys):
    with opened(begun) as sink:
        epoch = sink.load().fence.epoch
    assert call(begun, "reset", "--yes") == 0
    shown = capsys.readouterr().out
    assert "deletes: 1 checkpoint, 1 position, 1 known table, 1 recorded load" in shown
    assert "keeps: every replicated table with its rows, 1 skip rule, 1 pause" in shown
    assert "applier load" in shown
    (found,) = listed(begun, capsys)
    assert (found["checkpoint_ts"], found["stored"]) == (None, {"skip_rule": 1, "pause": 1, "run_end": 1})
    with opened(begun) as sink:
        assert sink.bookkeeping.loaded_dump.read() is None
        assert "was reset by" in sink.bookkeeping.overview().last_end.end.message
        sink.acquire()
        assert sink.begin(TS).fence.epoch > epoch


def test_a_removal_leaves_nothing(begun, capsys):
    assert call(begun, "remove", "orders", "--yes") == 0
    assert listed(begun, capsys) == []
    assert call(begun, "remove", "orders", "--yes") == 2
    assert "no replica of this name" in capsys.readouterr().err


def test_a_replica_that_runs_is_left_alone(begun, capsys):
    with opened(begun) as sink:
        sink.acquire()
        for words in (("reset",), ("remove", "orders")):
            assert call(begun, *words, "--yes") == 5
            assert "Stop the run first" in capsys.readouterr().err
        assert sink.load() is not None
    assert call(begun, "reset", "--yes") == 0


@pytest.mark.parametrize(("typed", "code"), [("orders", 0), ("order", 2)])
def test_the_name_is_typed_on_a_terminal(begun, monkeypatch, capsys, typed, code):
    assert call(begun, "remove", "orders") == 2
    assert "Add --yes" in capsys.readouterr().err
    monkeypatch.setattr(command.sys.stdin, "isatty", lambda: True)
    monkeypatch.setattr(command.typer, "prompt", lambda *_, **__: typed)
    assert call(begun, "remove", "orders") == code
    assert (listed(begun, capsys) == []) == (code == 0)


def test_a_sink_without_bookkeeping_is_not_given_one(config, capsys, tmp_path):
    assert call(config, "list") == 4
    assert "applier migrate" in capsys.readouterr().err
    assert not (tmp_path / "r.db").exists()


def test_a_checkpoint_is_listed_as_the_source_of_that_replica_spells_it(begun, capsys):
    place = Ts((42 << 32) + 1_000)
    state = SourceState(is_mariadb=True, server="1", generation=0, base_name="mariadb-bin", position=place, gtid_set="0-1-7")
    with open_sink(replace(load_config(begun, environment={}).sink_settings(), name="of_a_log")) as sink:
        sink.acquire()
        sink.begin(place, state.text())
    assert call(begun, "list") == 0
    shown = capsys.readouterr().out
    assert "of_a_log: stopped" in shown
    assert "checkpoint mariadb-bin.000042:1000\n" in shown
    assert f"(ts {TS + 1})" in shown
