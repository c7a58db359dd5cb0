"""``applier demo`` refuses options before it begins: it would take a minute until they were met."""

import socket

from applier.cli.main import run


def test_a_port_without_the_live_demo_is_refused(capsys, tmp_path):
    assert run(["demo", "--dir", str(tmp_path / "d"), "--port", "4711"]) == 2
    assert "needs --live" in capsys.readouterr().err
    assert not (tmp_path / "d").exists()


def test_a_port_in_use_is_refused_before_the_demo_begins(capsys, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert run(["demo", "--dir", str(tmp_path / "d"), "--live", "--port", port]) == 2
    shown = capsys.readouterr().err
    assert f"port: {port}" in shown
    assert "--port" in shown
    assert not (tmp_path / "d").exists()
