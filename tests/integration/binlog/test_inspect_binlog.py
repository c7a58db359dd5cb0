"""``applier inspect`` shows the transactions of a binlog: by table, key, time, position and GTID."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from applier.cli.main import run

STATEMENTS = (
    "CREATE DATABASE inspected",
    "CREATE TABLE inspected.orders (id INT PRIMARY KEY, name VARCHAR(20))",
    "INSERT INTO inspected.orders VALUES (1, 'a'), (2, 'b')",
    "UPDATE inspected.orders SET id = 7 WHERE id = 2",
    "CREATE TABLE inspected.others (id INT PRIMARY KEY)",
    "DELETE FROM inspected.orders WHERE id = 1",
)


@pytest.fixture
def inspected(primary, tmp_path, capsys):
    """Return what shows objects, for options."""
    began = primary.place()
    primary.run(*STATEMENTS)
    path = tmp_path / "applier.toml"
    path.write_text(f'[source]\nkind = "binlog"\nurl = "{primary.url}"\n[sink]\nurl = "sqlite:///{tmp_path}/r.db"\n', encoding="utf-8")

    def show(*options, code=0):
        capsys.readouterr()
        assert run(["inspect", "--config", str(path), "--from", began, "--json", *options]) == code
        out, err = capsys.readouterr()
        return [one for one in map(json.loads, out.splitlines()) if one.get("type") != "resolved"] if code == 0 else err

    return show


def named(events):
    return [event["query"].split(" (")[0] if event["type"] == "ddl" else f"{event['op']} {event['table']}" for event in events]


def test_transactions_are_shown_with_place_gtid_and_time_and_chosen_by_each_of_them(inspected):
    events = inspected()
    assert named(events)[2:] == ["insert orders", "insert orders", "update orders", "CREATE TABLE inspected.others", "delete orders"]
    places = [event["position"] for event in events]
    assert len(set(places)) == len(events) - 1
    assert abs(datetime.fromisoformat(events[0]["time"]) - datetime.now(UTC)) < timedelta(minutes=10)
    assert named(inspected("--table", "inspected.orders", "--key", "7")) == ["update orders"]
    assert named(inspected("--position", places[3])) == ["insert orders", "insert orders"]
    assert inspected("--until", "2020-01-01T00:00:00Z") == []
    gtids = {event["gtid"] for event in events}
    if gtids != {None}:
        assert named(inspected("--gtid", events[-1]["gtid"])) == ["delete orders"]


def test_the_table_for_people_names_positions(inspected, capsys, tmp_path):
    position = inspected("--table", "inspected.others")[0]["position"]
    assert run(["inspect", "--config", str(tmp_path / "applier.toml"), "--position", position]) == 0
    header, line = capsys.readouterr().out.splitlines()
    assert header.split() == ["TIME", "(UTC)", "GTID", "OP", "POSITION", "TABLE", "KEY"]
    assert position in line
    assert "CREATE TABLE inspected.others" in line


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--ts", "458173202432000001"], "--ts is for topics"),
        (["--position", "42"], "is not a position in a binlog"),
        (["--gtid", "0-1"], "is not the GTID of one transaction"),
    ],
)
@pytest.mark.on_one_server("mariadb", reason="options are refused before a server is asked")
def test_options_that_name_nothing_in_a_binlog_are_refused(inspected, options, words):
    assert words in inspected(*options, code=2)
