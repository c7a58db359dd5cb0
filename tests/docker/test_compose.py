"""docker/compose.yaml: nothing is published beyond loopback, the applier has no rights, its configuration is one that the program reads."""

from pathlib import Path

import yaml

from applier.config import load_config

DOCKER = Path(__file__).parents[2] / "docker"
SERVICES = yaml.safe_load((DOCKER / "compose.yaml").read_text(encoding="utf-8"))["services"]
OURS = {name: service for name, service in SERVICES.items() if "applier:local" in service["image"]}


def test_every_port_is_published_on_loopback_only():
    published = [port for service in SERVICES.values() for port in service.get("ports", ())]
    assert published
    assert all(port.startswith("127.0.0.1:") for port in published)


def test_every_container_of_the_applier_runs_without_rights_on_a_read_only_root():
    assert OURS.keys() == {"applier", "applier-tidb", "migrate", "upstream"}
    for service in OURS.values():
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]


def test_a_stop_leaves_more_time_than_the_program_takes(monkeypatch):
    # The container's path of it is not here; the environment comes before the file.
    monkeypatch.setenv("APPLIER_SINK__PASSWORD_FILE", str(DOCKER / "secrets" / "sink-password"))
    config = load_config(DOCKER / "config" / "applier.toml")
    assert int(SERVICES["applier"]["stop_grace_period"].removesuffix("s")) > config.run.shutdown_timeout_s


def test_every_mounted_file_exists():
    mounts = [mount.split(":") for service in SERVICES.values() for mount in service.get("volumes", ())]
    files = [source for source, *_ in mounts if source.startswith("./")]
    assert files
    assert all((DOCKER / source).exists() for source in files)
