"""Places in a binlog as timestamps of commands: ``--ts FILE:POS`` and ``--until-ts FILE:POS``."""

import pytest

from applier.cli.main import run
from applier.cli.option import event_text, read_config, ts_of_text
from applier.ddl import identity
from applier.model.events import DdlEvent
from applier.model.position import Offset, StreamPosition, Ts
from applier.model.rejected_event import EventPosition
from applier.sinks.progress import ProgressCommit
from applier.sinks.registry import open_sink
from applier.sinks.settings import SinkSettings
from applier.sources.binlog.position import STREAM, BinlogPosition
from applier.sources.binlog.state import SourceState
from applier.sources.binlog.timeline import StoredTimeline

GENERATION = 2
PLACE = BinlogPosition(GENERATION, 42, 1_000).number
STATE = SourceState(is_mariadb=True, server="1", generation=GENERATION, base_name="mariadb-bin", position=PLACE, gtid_set="0-1-7")
DDL = DdlEvent(commit_ts=Ts(PLACE - 1), schema="shop", table="orders", query="CREATE TABLE orders (id INT PRIMARY KEY)", ddl_type=3)


@pytest.fixture
def config(tmp_path):
    path, sink = tmp_path / "applier.toml", f"sqlite:///{tmp_path / 'replica.db'}"
    source = 'kind = "binlog"\nurl = "mysql+pymysql://applier@127.0.0.1:1/"\nstart = "mariadb-bin.000042:4"'
    path.write_text(f'[source]\n{source}\n[sink]\nurl = "{sink}"\n')
    with open_sink(SinkSettings(url=sink)) as opened:
        opened.migrate()
        opened.acquire()
        fence = opened.begin(Ts(BinlogPosition(GENERATION, 42, 4).number), STATE.text()).fence
        positions = {STREAM: StreamPosition(next_offset=Offset(PLACE), resolved_ts=Ts(PLACE))}
        commit = ProgressCommit(checkpoint_ts=DDL.commit_ts, positions=positions, source_state=STATE.text())
        opened.run_ddl(fence, identity(DDL), DDL, before=commit, after=commit)
    return path


def test_a_place_is_one_of_the_server_that_the_replica_follows_now(config):
    assert ts_of_text(read_config(config), "mariadb-bin.000042:1000") == PLACE
    assert ts_of_text(read_config(config), str(PLACE)) == PLACE


def test_a_file_of_another_name_is_refused(config, capsys):
    assert run(["catchup", "--config", str(config), "--until-ts", "binlog.000042:1000"]) == 2
    shown = capsys.readouterr().err
    assert "the replica follows no file binlog\n" in shown
    assert "Its files are called like mariadb-bin.000042." in shown


def test_ddls_and_rules_are_listed_as_they_are_given(config, capsys):
    assert run(["ddl", "list", "--config", str(config), "--ts", "mariadb-bin.000042:999"]) == 0
    assert capsys.readouterr().out.startswith("mariadb-bin.000042:999  done    shop.orders: CREATE TABLE")
    assert run(["skip", "--config", str(config), "--ts", "mariadb-bin.000042:2000"]) == 0
    assert run(["skip", "list", "--config", str(config)]) == 0
    assert "waiting  --ts mariadb-bin.000042:2000  all events" in capsys.readouterr().out
    assert run(["skip", "undo", "--config", str(config), "--ts", "mariadb-bin.000042:2000"]) == 0
    assert "not skipped any more: --ts mariadb-bin.000042:2000" in capsys.readouterr().out


def test_a_place_is_refused_for_topics(tmp_path, capsys):
    path = tmp_path / "applier.toml"
    path.write_text(f'[source]\nbootstrap_servers = "h:1"\ntopics = ["feed"]\n[sink]\nurl = "sqlite:///{tmp_path / "r.db"}"\n')
    assert run(["catchup", "--config", str(path), "--until-ts", "mariadb-bin.000042:1000"]) == 2
    assert "Give a TSO, such as 458173202432000001" in capsys.readouterr().err


def test_a_start_ts_is_refused_for_a_binlog(config, capsys):
    assert run(["catchup", "--config", str(config), "--start-ts", "458173202432000001"]) == 2
    assert "Set source.start, or load a dump with `applier load" in capsys.readouterr().err


@pytest.mark.parametrize("options", ["--stream binlog/0", "--position mariadb-bin.000042:4 --stream binlog/0", ""])
def test_half_a_place_is_refused(options, config, capsys):
    assert run(["quarantine", "show", "--config", str(config), *options.split()]) == 2
    assert "Give --stream and --offset; of a binlog, --position." in capsys.readouterr().err


def test_an_event_of_the_quarantine_is_named_by_its_place(config, capsys):
    place = EventPosition(STREAM, Offset(PLACE), 3)
    assert run(["quarantine", "drop", "--config", str(config), "--position", "mariadb-bin.000042:1000"]) == 2
    assert "this event is not in the quarantine" in capsys.readouterr().err
    assert event_text(place, StoredTimeline(base_name="mariadb-bin")) == "mariadb-bin.000042:1000#3"


def test_what_is_no_timestamp_is_refused(config, capsys):
    assert run(["catchup", "--config", str(config), "--until-ts", "noon"]) == 2
    assert "'noon' is neither a TSO" in capsys.readouterr().err
