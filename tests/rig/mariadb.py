"""A MariaDB for the tests: the server that ``APPLIER_TEST_MYSQL_URL`` names, a container, or a process."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pymysql

from tests.rig.certificate import Certificates
from tests.rig.port import free_port
from tests.rig.process_server import ProcessServer, wants_processes
from tests.rig.server import ContainerServer, GivenServer, NotReadyError, Server, choose_image, given_address, require_engine

GIVEN = "APPLIER_TEST_MYSQL_URL"
IMAGE = "APPLIER_TEST_MARIADB_IMAGE"
HOME_BUILT, OFFICIAL = "applier-test/mariadb:10.11", "mariadb:10.11"
USER = PASSWORD = "applier_test"  # noqa: S105  # settings/mariadb.sh makes this user on a server of the loopback interface


@dataclass(frozen=True, slots=True)
class Mariadb:
    """``url`` is the SQLAlchemy URL of a user with all privileges, without a database."""

    url: str
    server: Server

    def restart(self) -> None:
        """Stop the server in order and start it again: its connections are lost, what was committed is kept."""
        self.server.stop()
        self.server.start()

    def crash(self) -> None:
        """Kill the server (SIGKILL) and start it again."""
        self.server.kill()
        self.server.start()


@contextmanager
def running_mariadb() -> Iterator[Mariadb]:
    """Yield a MariaDB that answers; skip the test if there is none to be had."""
    if url := given_address(GIVEN):
        yield Mariadb(url, GivenServer(GIVEN))
        return
    with own_mariadb() as server:
        yield server


@contextmanager
def own_mariadb(certificates: Certificates | None = None) -> Iterator[Mariadb]:
    """Yield a new MariaDB, which nobody else uses: it may be killed. Skip the test if there is none to be had.

    With certificates it takes connections with TLS only.
    """
    port = free_port()
    environment = certificates.environment() if certificates else {}
    server = _process(port, environment) if wants_processes() else _container(port, environment)
    try:
        server.create()
        yield Mariadb(f"mysql+pymysql://{USER}:{PASSWORD}@127.0.0.1:{port}/", server)
    finally:
        server.remove()


def _process(port: int, environment: dict[str, str]) -> ProcessServer:
    return ProcessServer(script="mariadb.sh", port=port, environment=environment, ask=lambda: _select_one(port))


def _container(port: int, environment: dict[str, str]) -> ContainerServer:
    require_engine()
    image = choose_image(IMAGE, HOME_BUILT, OFFICIAL)
    return ContainerServer(image=image, script="mariadb.sh", port=port, environment=environment, ask=lambda: _select_one(port))


def _select_one(port: int) -> None:
    try:
        with pymysql.connect(host="127.0.0.1", port=port, user=USER, password=PASSWORD, connect_timeout=5) as connection:
            connection.cursor().execute("SELECT 1")
    except pymysql.Error as error:
        raise NotReadyError(error) from error
