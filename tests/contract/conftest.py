"""The bookkeeping's tables in SQLite, in MariaDB and in MySQL, new for each test."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Connection, Engine, NullPool, create_engine, text

from applier.sinks.bookkeeping import migration
from applier.sinks.bookkeeping.bookkeeping import Bookkeeping
from tests.rig.database import Kind

BOOKS_BY_DIALECT = {"sqlite": Bookkeeping("replica", "sqlite"), "mysql": Bookkeeping("replica", "mysql")}


@pytest.fixture(params=["sqlite", *(pytest.param(kind, marks=pytest.mark.integration) for kind in Kind)], ids=str)
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Engine]:
    if request.param == "sqlite":
        engine = create_engine(f"sqlite:///{tmp_path}/replica.db", poolclass=NullPool)
    else:
        engine = create_engine(request.getfixturevalue("databases").plain(request.param).least_privileged_url, poolclass=NullPool)
        with engine.begin() as connection:
            connection.execute(text("DROP SCHEMA IF EXISTS applier"))
            connection.execute(text("CREATE SCHEMA applier CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"))
    with engine.begin() as connection:
        migration.upgrade(connection)
    yield engine
    if request.param != "sqlite":
        with engine.begin() as connection:
            connection.execute(text("DROP SCHEMA applier"))


@pytest.fixture
def connection(engine: Engine) -> Iterator[Connection]:
    with engine.begin() as connection:
        yield connection


@pytest.fixture
def books(engine: Engine) -> Bookkeeping:
    return BOOKS_BY_DIALECT[engine.dialect.name]
