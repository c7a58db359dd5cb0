"""A server that a test may stop, kill and start again: in a container, or one that somebody started by hand.

Containers get an explicit command, mounted settings and a fixed port, so official and home-built images start alike and a
restarted server is found where it was.
"""

import gc
import os
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import docker
import docker.errors
import pytest
from testcontainers.core.config import testcontainers_config
from testcontainers.core.container import DockerContainer

SETTINGS = Path(__file__).parent / "settings"
START_TIMEOUT_S = 120
POLL_S = 0.2
REQUIRE_SERVERS = "APPLIER_TEST_REQUIRE_SERVERS"
"""Set by CI: a test that lacks its server fails instead of being skipped."""
RUN = "APPLIER_TEST_RUN"
"""Label of the containers of one run, so that CI can remove them whatever happened."""


class NotReadyError(Exception):
    """The server does not answer yet."""


class Server(Protocol):
    """What a test may do to a server. Each call returns when it is done: after ``start`` the server answers."""

    def start(self) -> None: ...
    def stop(self) -> None: ...
    def kill(self) -> None: ...


def unavailable(reason: str) -> None:
    """Skip the test, or fail it where servers are required."""
    if os.environ.get(REQUIRE_SERVERS):
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


def require_engine() -> None:
    """Skip (or fail) unless a Docker engine answers."""
    try:
        docker.from_env(timeout=60).close()
    except docker.errors.DockerException as error:
        reason = f"no Docker engine: {error}"
    else:
        return
    with warnings.catch_warnings():
        # docker leaves a socket behind that could not connect; found later, it would fail some other test.
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()
    unavailable(reason)


def choose_image(variable: str, home_built: str, official: str) -> str:
    """Return the image that the environment names, else that of docker/images/build, else the official one."""
    if named := os.environ.get(variable):
        return named
    client = docker.from_env(timeout=60)
    try:
        client.images.get(home_built)
    except docker.errors.ImageNotFound:
        return official
    finally:
        client.close()
    testcontainers_config.ryuk_disabled = True  # the reaper's image lies in a registry, and images are built here for want of one
    return home_built


def given_address(variable: str) -> str | None:
    """Return the address of a server that was started by hand, if ``variable`` names one."""
    address = os.environ.get(variable)
    if address and int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")) > 1:
        # The tables of the applier have fixed names: two workers would find each other's progress.
        unavailable(f"{variable} names one server for several xdist workers: run without -n")
    return address


@dataclass(frozen=True, slots=True)
class GivenServer:
    """A server started by hand: it can be used, not stopped."""

    variable: str

    def start(self) -> None:
        self._refuse()

    def stop(self) -> None:
        self._refuse()

    def kill(self) -> None:
        self._refuse()

    def _refuse(self) -> None:
        unavailable(f"this test stops its server, and {self.variable} names one that was started by hand")


class ContainerServer:
    """A server in a container. ``ask`` is its first query; it raises NotReadyError until the server answers."""

    def __init__(self, *, image: str, script: str, port: int, environment: dict[str, str], ask: Callable[[], None]) -> None:
        self._ask = ask
        self._container = (
            DockerContainer(image)
            .with_command(["/bin/sh", f"/rig/{script}"])
            .with_volume_mapping(SETTINGS, "/rig")
            .with_envs(RIG_PORT=str(port), **environment)
            .with_kwargs(labels={"applier.test": os.environ.get(RUN, "")}, entrypoint=[])
        )
        self._container.ports[f"{port}/tcp"] = ("127.0.0.1", port)  # type: ignore[assignment]  # docker's form for one interface

    def create(self) -> None:
        """Make the container and wait for the first answer. Skips where the image cannot be had."""
        try:
            self._container.start()
        except docker.errors.ImageNotFound as error:
            unavailable(f"no image {self._container.image}: {error.explanation}")
        except docker.errors.APIError as error:
            if "registry" not in str(error):
                raise
            unavailable(f"no image {self._container.image}: {error.explanation}")
        self._wait()

    def remove(self) -> None:
        self._container.stop()

    def output(self, *command: str) -> bytes:
        """Run a program of the image in the container; return what it prints."""
        code, (out, errors) = self._container.get_wrapped_container().exec_run(list(command), demux=True)
        assert code == 0, errors
        return out or b""

    def start(self) -> None:
        self._container.get_wrapped_container().start()
        self._wait()

    def stop(self) -> None:
        self._container.get_wrapped_container().stop(timeout=60)

    def kill(self) -> None:
        wrapped = self._container.get_wrapped_container()
        wrapped.kill()
        wrapped.wait()

    def address(self) -> str:
        """Return where another container finds this one."""
        wrapped = self._container.get_wrapped_container()
        wrapped.reload()
        return wrapped.attrs["NetworkSettings"]["Networks"]["bridge"]["IPAddress"]

    def _wait(self) -> None:
        deadline = time.monotonic() + START_TIMEOUT_S
        while True:
            try:
                self._ask()
            except NotReadyError as error:
                self._give_up_if_dead(error, is_late=time.monotonic() > deadline)
                time.sleep(POLL_S)
            else:
                return

    def _give_up_if_dead(self, error: NotReadyError, *, is_late: bool) -> None:
        wrapped = self._container.get_wrapped_container()
        wrapped.reload()
        if is_late or wrapped.status != "running":
            log = wrapped.logs(tail=60).decode(errors="replace")
            pytest.fail(f"{self._container.image} is {wrapped.status} and does not answer: {error}\n{log}", pytrace=False)
