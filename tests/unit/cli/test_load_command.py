"""``applier load --declared`` records that another program has loaded the sink, and the check asks for it before."""

import json
import sqlite3
from contextlib import closing

import pytest

from applier.check.shared_facts import SharedFacts
from applier.check.sink import BEGINNING, examine_sink
from applier.cli.main import run
from applier.config import load_config
from applier.model.events import TableName
from applier.model.finding import Severity
from applier.model.position import DIGITS, Ts
from applier.planner.table_check import ListedTables
from applier.sinks.registry import open_sink
from applier.sources.binlog.catalogue import UpstreamCatalogue
from applier.sources.binlog.kit import BinlogKit
from applier.sources.kit import DeclaredStart
from tests.rig.dump_directory import TS, dumpling


@pytest.fixture
def config(tmp_path):
    """Write a configuration with these lines in [source]; return its path."""

    def write(*lines):
        path = tmp_path / "applier.toml"
        source = "\n".join(["[source]", 'bootstrap_servers = "127.0.0.1:1"', 'topics = ["cdc"]', *lines])
        path.write_text(f'{source}\n[sink]\nurl = "sqlite:///{tmp_path}/replica.db"\n', encoding="utf-8")
        return path

    return write


def loaded(path):
    with open_sink(load_config(path, environment={}).sink_settings()) as sink:
        return sink.bookkeeping.loaded_dump.read()


def beginning(path):
    shared = SharedFacts()
    shared.set_tables(frozenset())
    return next(one for one in examine_sink(load_config(path, environment={}), shared, patience_s=1) if one.check == BEGINNING)


def test_the_check_fails_until_the_load_is_declared(config, capsys):
    path = config(f"start_ts = {TS}")
    assert beginning(path).level is Severity.ERROR
    assert run(["load", "--declared", "--config", str(path)]) == 0
    shown = capsys.readouterr().out
    assert (str(TS) in shown, "Nothing was loaded or compared" in shown, f"applier check --config {path}" in shown) == (True, True, True)
    assert (loaded(path).start_ts, loaded(path).is_whole, loaded(path).is_declared) == (TS, True, True)
    assert (beginning(path).level, "declared" in beginning(path).detail) == (Severity.OK, True)


def test_a_dump_tells_the_position_that_is_declared(config, tmp_path, capsys):
    path, directory = config(), dumpling(tmp_path / "dump")
    assert run(["load", str(directory), "--declared", "--json", "--config", str(path)]) == 0
    assert json.loads(capsys.readouterr().out) == {"start_ts": TS, "declared": True, "empty": False, "tables": None}
    assert (loaded(path).start_ts, loaded(path).directory) == (TS, str(directory))


def test_a_declaration_may_be_corrected(config):
    path = config()
    for ts in (TS, TS + 7):
        assert run(["load", "--declared", "--start-ts", str(ts), "--config", str(path)]) == 0
    assert loaded(path).start_ts == TS + 7


@pytest.mark.parametrize(
    ("lines", "options", "words"),
    [
        ((), ["--declared"], "Give its TSO with --start-ts"),
        ((f"start_ts = {TS}",), ["--declared", "--start-ts", str(TS + 1)], "--start-ts and source.start_ts differ"),
        ((), ["--declared", "--start-ts", str(TS), "--overwrite"], "--declared loads nothing"),
        ((), [], "the dump is missing"),
    ],
)
def test_a_declaration_without_a_position_and_a_load_without_a_dump_are_refused(config, capsys, lines, options, words):
    assert run(["load", *options, "--config", str(config(*lines))]) == 2
    assert words in capsys.readouterr().err


def test_the_check_warns_where_only_an_empty_upstream_is_right(config):
    found = beginning(config())
    assert (found.level, "`applier load DUMP`" in found.remedy) == (Severity.WARNING, True)


def test_a_tso_is_no_place_in_a_binlog(tmp_path, capsys):
    path = tmp_path / "applier.toml"
    source = '[source]\nkind = "binlog"\nurl = "mysql+pymysql://applier@127.0.0.1:1/"\nstart = "now"'
    path.write_text(f'{source}\n[sink]\nurl = "sqlite:///{tmp_path}/replica.db"\n', encoding="utf-8")
    assert run(["load", "--declared", "--start-ts", str(TS), "--config", str(path)]) == 2
    assert "the source is a binlog" in capsys.readouterr().err
    told = beginning(path).detail
    assert ("no load is recorded" in told, "start_ts" in told) == (True, False)


@pytest.fixture
def end_of_log(tmp_path, monkeypatch):
    """Write a configuration of a binlog whose end is declared; ``listed``: what upstream answers about the tables there."""

    def write(*listed):
        answers = list(listed)
        starts = (DeclaredStart(Ts(at), "now", DIGITS, is_end=True) for at in range(5, 15))
        monkeypatch.setattr(BinlogKit, "declared_start", lambda *_: next(starts))
        monkeypatch.setattr(UpstreamCatalogue, "listed_at", lambda *_: answers[0] if len(answers) == 1 else answers.pop(0))
        path = tmp_path / "applier.toml"
        source = '[source]\nkind = "binlog"\nurl = "mysql+pymysql://applier@127.0.0.1:1/"\nstart = "now"'
        path.write_text(f'{source}\n[sink]\nurl = "sqlite:///{tmp_path}/replica.db"\n', encoding="utf-8")
        return path

    return write


ORDERS = TableName("shop", "orders")


def declare(path):
    return run(["load", "--declared", "--config", str(path)])


def test_an_upstream_without_tables_is_recorded_as_empty(end_of_log, capsys):
    path = end_of_log(ListedTables({}, is_whole=True))
    assert (declare(path), "upstream has no table there" in capsys.readouterr().out) == (0, True)
    assert (loaded(path).loader, loaded(path).is_declared, loaded(path).start_ts) == ("empty", True, 5)
    assert "upstream had no table" in beginning(path).detail


def test_an_upstream_that_hides_its_tables_is_not_recorded_as_empty(end_of_log):
    path = end_of_log(ListedTables({}, is_whole=False))
    assert (declare(path), loaded(path).loader) == (0, "declared")


def test_a_declaration_stops_where_the_sink_lacks_a_table(end_of_log, capsys):
    path = end_of_log(ListedTables({ORDERS: ORDERS}, is_whole=True))
    assert declare(path) == 6
    assert "shop.orders" in capsys.readouterr().err
    assert loaded(path) is None


def test_the_end_of_the_log_is_asked_for_again_until_no_ddl_comes_in_between(end_of_log, tmp_path, capsys):
    with closing(sqlite3.connect(tmp_path / "replica.db")) as connection:
        connection.execute('CREATE TABLE "shop.orders" (id INTEGER PRIMARY KEY)')
    path = end_of_log(None, None, ListedTables({ORDERS: ORDERS}, is_whole=True))
    assert (declare(path), "all 1 table of upstream" in capsys.readouterr().out) == (0, True)
    assert loaded(path).start_ts == 7


def test_an_end_without_a_quiet_point_in_time_is_recorded_and_not_compared(end_of_log, capsys):
    path = end_of_log(*[None] * 5)
    assert (declare(path), "Nothing was loaded or compared" in capsys.readouterr().out) == (0, True)
    assert (loaded(path).start_ts, loaded(path).loader) == (9, "declared")
