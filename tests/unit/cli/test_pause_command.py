"""``applier pause`` and ``applier resume``: what an operator is told, and that a second word changes nothing."""

import pytest

from applier.cli.main import run


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "applier.toml"
    path.write_text(
        f'name = "orders"\n[source]\nbootstrap_servers = "127.0.0.1:1"\ntopics = ["feed"]\n[sink]\nurl = "sqlite:///{tmp_path}/r.db"\n',
        encoding="utf-8",
    )
    return str(path)


def test_a_pause_and_its_end_say_what_follows(config, capsys):
    run(["migrate", "-c", config])
    capsys.readouterr()
    assert run(["pause", "-c", config]) == 0
    said = capsys.readouterr().out
    assert said.startswith("paused: orders. No run is alive.")
    assert said.endswith(f"To continue: applier resume --config {config}\n")
    assert run(["pause", "-c", config]) == 0
    assert capsys.readouterr().out.startswith("already paused: orders, by ")
    assert run(["resume", "-c", config]) == 0
    assert capsys.readouterr().out.startswith("resumed: orders. ")
    assert run(["resume", "-c", config]) == 0
    assert capsys.readouterr().out == "orders is not paused\n"


def test_a_sink_without_bookkeeping_says_how_to_make_it(config, capsys):
    assert run(["pause", "-c", config]) == 4
    assert "applier migrate" in capsys.readouterr().err
