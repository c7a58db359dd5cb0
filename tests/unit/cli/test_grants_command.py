"""``applier grants``: the files of sql/ with the names of the configuration, each statement once for each schema."""

import pytest

from applier.cli.grants import Role
from applier.cli.main import run
from tests.rig.least_privilege import statements_of


@pytest.fixture
def config(tmp_path):
    def write(source="", sink='url = "mysql+pymysql://ap_plier:s3cret@db/"\nschema = "books"'):
        path = tmp_path / "applier.toml"
        topics = "" if "binlog" in source else 'bootstrap_servers = "k:1"\ntopics = ["t"]\n'
        path.write_text(f"[source]\n{topics}{source}\n[sink]\n{sink}\n", encoding="utf-8")
        return path

    return write


def printed(capsys, role, *options):
    assert run(["grants", role, *options]) == 0
    out = capsys.readouterr().out
    lines = [line for line in out.splitlines() if not line.startswith("--")]
    return out, [text.strip() for text in "\n".join(lines).split(";") if text.strip()]


@pytest.mark.parametrize(("role", "file"), [("sink", "grants.sql"), *((role, f"grants_{role}.sql") for role in list(Role)[1:])])
def test_without_a_configuration_the_file_is_printed_as_it_stands(monkeypatch, tmp_path, capsys, role, file):
    monkeypatch.chdir(tmp_path)
    out, statements = printed(capsys, role)
    assert statements == statements_of(file)
    assert ("name yours with --schema" in out) == (" shop.* " in "".join(f"{text} " for text in statements))


def test_the_sinks_user_bookkeeping_and_schemas_are_those_of_the_configuration(config, capsys):
    path = config('tables = ["shop.*", "my_bank.a*", "!my_bank.x"]\nroute = [{ from = "shop.*", to = "archive.{table}" }]')
    out, statements = printed(capsys, "sink", "--config", str(path), "--host", "10.0.0.%")
    assert ("s3cret" in out, "-- `shop` stands" in out) == (False, False)
    granted = [text for text in statements if text.startswith("GRANT")]
    assert {text.rpartition(" TO ")[2] for text in granted} == {"'ap_plier'@'10.0.0.%'"}
    places = [text.partition(" ON ")[2].partition(" TO ")[0] for text in granted]
    assert places == ["`books`.*", "*.*", "`archive`.*", "`my\\_bank`.*", "`archive`.*", "`my\\_bank`.*"]


def test_the_primarys_user_gets_upstreams_schemas(config, capsys):
    path = config('kind = "binlog"\nurl = "mysql+pymysql://reader@primary/"\ntables = ["shop.*"]')
    _, statements = printed(capsys, "binlog", "--config", str(path), "--schema", "a'`b")
    assert statements[-1] == "GRANT REFERENCES ON `a'``b`.* TO 'reader'@'%'"


def test_sqlite_has_no_users(config, tmp_path, capsys):
    path = config(sink=f'url = "sqlite:///{tmp_path}/r.db"')
    assert run(["grants", "sink", "--config", str(path)]) == 2
    assert "a SQLite file has no users" in capsys.readouterr().err
    assert run(["grants", "verify", "--config", str(path)]) == 0
