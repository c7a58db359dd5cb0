"""The bookkeeping's tables, and whole replicas, in SQLite, in MariaDB and in MySQL, empty for each test."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Connection, Engine, NullPool, create_engine, text

from applier.model.position import NO_TS
from applier.sinks.bookkeeping import migration
from applier.sinks.bookkeeping.bookkeeping import Bookkeeping
from applier.sinks.mysql import bookkeeping as mysql
from applier.sinks.registry import open_sink
from applier.sinks.sqlite import bookkeeping as sqlite
from tests.contract.replica_on_database import CREATE, SHOP, DatabaseReplica, settings
from tests.rig.clean_server import clean_server, drop_bookkeeping
from tests.rig.database import Kind

BOOKS_BY_DIALECT = {"sqlite": Bookkeeping("replica", sqlite.DIALECT), "mysql": Bookkeeping("replica", mysql.DIALECT)}


EVERY_DATABASE = ["sqlite", *(pytest.param(kind, marks=pytest.mark.integration) for kind in Kind)]


@pytest.fixture(params=EVERY_DATABASE, ids=str)
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Engine]:
    if request.param == "sqlite":
        engine = create_engine(f"sqlite:///{tmp_path}/replica.db", poolclass=NullPool)
    else:
        url = request.getfixturevalue("databases").plain(request.param).least_privileged_url
        clean_server(url)
        engine = create_engine(url, poolclass=NullPool)
        with engine.begin() as connection:
            connection.execute(text("CREATE SCHEMA IF NOT EXISTS applier CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"))
    with engine.begin() as connection:
        migration.upgrade(connection, BOOKS_BY_DIALECT[engine.dialect.name])
    yield engine
    if request.param != "sqlite":
        clean_server(url)


@pytest.fixture
def connection(engine: Engine) -> Iterator[Connection]:
    with engine.begin() as connection:
        yield connection


@pytest.fixture
def books(engine: Engine) -> Bookkeeping:
    return BOOKS_BY_DIALECT[engine.dialect.name]


@pytest.fixture(params=EVERY_DATABASE, ids=str)
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[DatabaseReplica]:
    """A database on which no replica has begun, and the sink on it."""
    if request.param == "sqlite":
        url = root_url = f"sqlite:///{tmp_path}/replica.db"
    else:
        database = request.getfixturevalue("databases").plain(request.param)
        url, root_url = database.least_privileged_url, database.url
        clean_server(root_url, SHOP)
    with open_sink(settings(url)) as sink:
        yield DatabaseReplica(sink, url, root_url)
    if request.param != "sqlite":
        clean_server(root_url, SHOP)


@pytest.fixture
def fresh(opened: DatabaseReplica) -> DatabaseReplica:
    """A database without bookkeeping."""
    if not opened.is_file:
        drop_bookkeeping(opened.root_url)
    return opened


@pytest.fixture
def owned(opened: DatabaseReplica) -> DatabaseReplica:
    """A replica that this run owns; it has not begun."""
    opened.sink.migrate()
    opened.sink.acquire()
    return opened


@pytest.fixture
def replica(owned: DatabaseReplica) -> DatabaseReplica:
    """A replica with an empty table ``shop.t``, at checkpoint 5."""
    owned.fence = owned.sink.begin(NO_TS).fence
    owned.run_ddl(f"CREATE DATABASE {SHOP}", 4, table="")
    owned.run_ddl(CREATE, 5)
    return owned
