"""A MySQL or a MariaDB for the tests: the server that ``APPLIER_TEST_MYSQL_URL`` names, a container, or a process."""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Self

import pymysql
from sqlalchemy import make_url

from tests.rig.certificate import Certificates
from tests.rig.least_privilege import make_user
from tests.rig.port import free_port
from tests.rig.process_server import ProcessServer, require_program, wants_processes
from tests.rig.server import ContainerServer, GivenServer, NotReadyError, Server, choose_image, given_address, require_engine

GIVEN = "APPLIER_TEST_MYSQL_URL"
USER = PASSWORD = "applier_test"  # noqa: S105  # the scripts of settings/ make this user on a server of the loopback interface


class Kind(StrEnum):
    """Which server of the family. The values are the ids of the tests, and the names of the scripts in settings/."""

    MARIADB = "mariadb"
    MYSQL = "mysql"


@dataclass(frozen=True, slots=True)
class Version:
    """What is tested of a kind: the official image, the variable that names another one, and the server as a process."""

    number: str
    image: str
    image_variable: str
    program: str


VERSIONS = {
    Kind.MARIADB: Version("10.11", "mariadb:10.11", "APPLIER_TEST_MARIADB_IMAGE", "mariadbd"),
    Kind.MYSQL: Version("9.7", "mysql:9.7", "APPLIER_TEST_MYSQL_IMAGE", "mysqld"),
}
"""The README names these versions as tested."""


PROCESS_LIST = {Kind.MARIADB: "information_schema.processlist", Kind.MYSQL: "performance_schema.processlist"}
"""MySQL's own information_schema.processlist cannot be read while a session executes a statement with a character of four bytes."""


@dataclass(frozen=True)
class Database:
    """``url`` is the SQLAlchemy URL of a user with all privileges, without a database."""

    kind: Kind
    url: str
    server: Server

    @cached_property
    def least_privileged_url(self) -> str:
        """URL of the user of sql/grants.sql, which is made when it is first asked for."""
        return make_user(self.url)

    def restart(self) -> None:
        """Stop the server in order and start it again: its connections are lost, what was committed is kept."""
        self.server.stop()
        self.server.start()

    def crash(self) -> None:
        """Kill the server (SIGKILL) and start it again."""
        self.server.kill()
        self.server.start()


class Databases:
    """The servers of one test process, each started when it is first asked for, and kept until the end.

    Kept because pytest ends a parametrized fixture whenever another parameter comes, and a server takes seconds to start.
    """

    def __init__(self) -> None:
        self._running = ExitStack()
        self._plain: dict[Kind, Database] = {}
        self._encrypted: dict[Kind, Database] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self._running.close()

    def plain(self, kind: Kind) -> Database:
        """Return the shared server of a kind; skip the test if there is none to be had."""
        if kind not in self._plain:
            self._plain[kind] = self._running.enter_context(running_database(kind))
        return self._plain[kind]

    def encrypted(self, kind: Kind, certificates: Certificates) -> Database:
        """Return the shared server of a kind that takes connections with TLS only."""
        if kind not in self._encrypted:
            self._encrypted[kind] = self._running.enter_context(own_database(kind, certificates))
        return self._encrypted[kind]


def kind_of(url: str) -> Kind:
    """Ask a server which one it is."""
    parsed = make_url(url)
    password = "" if parsed.password is None else str(parsed.password)
    port = parsed.port or 3306
    with pymysql.connect(host=parsed.host, port=port, user=parsed.username, password=password, connect_timeout=30) as connection:
        cursor = connection.cursor()
        cursor.execute("SELECT VERSION()")
        ((version,),) = cursor.fetchall()
    return Kind.MARIADB if "mariadb" in version.casefold() else Kind.MYSQL


@contextmanager
def running_database(kind: Kind) -> Iterator[Database]:
    """Yield a server that answers: the given one if it is of this kind, else one of our own. Skip the test if there is none to be had."""
    if os.environ.get(GIVEN) and (url := given_address(GIVEN)) and kind_of(url) is kind:
        yield Database(kind, url, GivenServer(GIVEN))
        return
    with own_database(kind) as database:
        yield database


@contextmanager
def own_database(kind: Kind, certificates: Certificates | None = None, options: str = "") -> Iterator[Database]:
    """Yield a new server, which nobody else uses: it may be killed. Skip the test if there is none to be had.

    With certificates it takes connections with TLS only. ``options``: more of its command line.
    """
    port = free_port()
    environment = (certificates.environment() if certificates else {}) | {"RIG_OPTIONS": options}
    server = _process(kind, port, environment) if wants_processes() else _container(kind, port, environment)
    try:
        server.create()
        yield Database(kind, f"mysql+pymysql://{USER}:{PASSWORD}@127.0.0.1:{port}/", server)
    finally:
        server.remove()


def _process(kind: Kind, port: int, environment: dict[str, str]) -> ProcessServer:
    require_program(VERSIONS[kind].program)
    return ProcessServer(script=f"{kind}.sh", port=port, environment=environment, ask=lambda: _select_one(port))


def _container(kind: Kind, port: int, environment: dict[str, str]) -> ContainerServer:
    require_engine()
    version = VERSIONS[kind]
    image = choose_image(version.image_variable, f"applier-test/{version.image}", version.image)
    return ContainerServer(image=image, script=f"{kind}.sh", port=port, environment=environment, ask=lambda: _select_one(port))


def _select_one(port: int) -> None:
    try:
        with pymysql.connect(host="127.0.0.1", port=port, user=USER, password=PASSWORD, connect_timeout=5) as connection:
            connection.cursor().execute("SELECT 1")
    except pymysql.Error as error:
        raise NotReadyError(error) from error
