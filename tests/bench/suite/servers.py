"""The servers of a measurement: those that the environment names, else new ones: processes, or containers where none are installed."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from tests.bench.suite.checkout import ROOT
from tests.rig.database import GIVEN as GIVEN_DATABASE
from tests.rig.database import Kind, own_database
from tests.rig.kafka import GIVEN as GIVEN_KAFKA
from tests.rig.kafka import own_kafka
from tests.rig.port import free_port

OPTIONS = "--innodb-buffer-pool-size=1G --innodb-log-file-size=1G"
"""What a test server lacks: memory for the rows of a backlog, and a redo log that does not stop writers every second."""
EXPORT = re.compile(r"export (\w+)=(\S+)")
NEEDED = {"mariadbd": "mariadb-server", "java": "default-jre-headless", "mvn": "maven"}


@dataclass(frozen=True, slots=True)
class Servers:
    """``kafka`` is host:port, ``database`` the SQLAlchemy URL of a user with all privileges."""

    kafka: str
    database: str


@contextmanager
def servers() -> Iterator[Servers]:
    """Yield servers that answer; SystemExit that says what is missing if there are none to be had."""
    kafka, database = os.environ.get(GIVEN_KAFKA), os.environ.get(GIVEN_DATABASE)
    if kafka and database:
        yield Servers(kafka, database)
    elif kafka or database:
        raise SystemExit(f"set both {GIVEN_KAFKA} and {GIVEN_DATABASE}, or none of them")
    elif missing := _missing():
        with _containers(missing) as started:
            yield started
    else:
        with _processes() as started:
            yield started


def _missing() -> list[str]:
    path = f"{os.environ.get('PATH', '')}:/usr/sbin"
    return [program for program in NEEDED if shutil.which(program, path=path) is None]


@contextmanager
def _processes() -> Iterator[Servers]:
    """Start what ``make servers`` starts, on other ports."""
    ports = {"DATABASE": "mariadb", "DATABASE_PORT": str(free_port()), "KAFKA_PORT": str(free_port()), "RIG_OPTIONS": OPTIONS}
    command = [str(ROOT / "tests" / "rig" / "servers")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True, env=os.environ | ports) as process:
        try:
            found = dict(_exports(process))
            yield Servers(found[GIVEN_KAFKA], found[GIVEN_DATABASE])
        finally:
            process.terminate()
            process.wait()


def _exports(process: "subprocess.Popen[str]") -> Iterator[tuple[str, str]]:
    assert process.stdout is not None
    for _ in range(2):
        line = EXPORT.match(process.stdout.readline())
        if line is None:
            raise SystemExit("tests/rig/servers did not start the servers: see above")
        yield line[1], line[2]


@contextmanager
def _containers(missing: list[str]) -> Iterator[Servers]:
    """Start containers as the tests do."""
    try:
        with own_kafka() as kafka, own_database(Kind.MARIADB, options=OPTIONS) as database:
            yield Servers(kafka.bootstrap_servers, database.url)
    except (pytest.skip.Exception, pytest.fail.Exception) as error:
        packages = " ".join(NEEDED[program] for program in missing)
        message = f"no servers: {error}. Without Docker, {', '.join(missing)} must be installed (Debian: apt-get install {packages}),"
        raise SystemExit(f"{message} or {GIVEN_KAFKA} and {GIVEN_DATABASE} must name servers") from error
