"""docker/compose.yaml: nothing is published beyond loopback, the applier has no rights, its configuration is one that the program reads."""

import os
import subprocess
import sys
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
    files = [source for source, *_ in mounts if source.startswith(("./", "../"))]
    assert files
    assert all((DOCKER / source).exists() for source in files)


def test_the_simulated_upstream_runs_with_the_package_and_its_mount_alone(tmp_path):
    """A container has the applier and its dependencies, and of the tests only what is mounted."""
    service = SERVICES["upstream"]
    for source, target, _mode in (mount.split(":") for mount in service["volumes"]):
        mounted = tmp_path / target.lstrip("/")
        mounted.parent.mkdir(parents=True)
        mounted.symlink_to((DOCKER / source).resolve())
    root = tmp_path / service["environment"]["PYTHONPATH"].lstrip("/")
    _python, _m, module = service["entrypoint"]
    files = "f'{name}={found.__file__}' for name, found in sys.modules.items() if hasattr(found, '__file__')"
    code = f"import sys, {module}.__main__; print(*({files}))"
    environment = {**os.environ, "PYTHONPATH": str(root)}
    shown = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    imported = dict(line.split("=", 1) for line in shown.stdout.split())
    ours = {name: file for name, file in imported.items() if name.startswith("tests.")}
    assert f"{module}.__main__" in ours
    assert all(file.startswith(str(root)) or file == "None" for file in ours.values()), ours
    assert not {"pytest", "docker", "testcontainers"} & imported.keys()
