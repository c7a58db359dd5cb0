"""A primary of each kind, without a schema, and sinks of both dialects on which no replica has begun."""

from collections.abc import Iterator

import pytest

from tests.rig.database import Databases, Kind
from tests.rig.primary import Primaries, Primary
from tests.rig.upstream import clear_sink


@pytest.fixture(scope="session")
def primaries() -> Iterator[Primaries]:
    """The primaries of this process."""
    with Primaries() as servers:
        yield servers


@pytest.fixture
def primary(primaries: Primaries, database_kind: Kind) -> Primary:
    """A MariaDB and a MySQL, one after the other. It is shared: its binlog has what earlier tests did."""
    return primaries.of(database_kind)


@pytest.fixture
def mariadb_sink(databases: Databases) -> str:
    """URL of a MariaDB, whatever the primary is."""
    url = databases.plain(Kind.MARIADB).url
    clear_sink(url)
    return url


@pytest.fixture
def sqlite_sink(tmp_path) -> str:
    """URL of a new file."""
    return f"sqlite:///{tmp_path}/replica.db"
