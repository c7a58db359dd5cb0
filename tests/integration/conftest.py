"""A server of the MySQL family without a replica, and a replica of the schema ``SHOP`` on it. A module may have others of these names."""

from collections.abc import Iterator

import pytest

from tests.integration.mysql_replica import SHOP, Replica, clean, replica, run


@pytest.fixture
def url(mysql_url: str) -> Iterator[str]:
    """A server on which no replica has begun. May do everything."""
    clean(mysql_url)
    yield mysql_url
    clean(mysql_url)


@pytest.fixture
def shop(url: str, least_privileged_url: str) -> Iterator[Replica]:
    """A replica that has begun, and the empty schema that it replicates."""
    run(url, f"CREATE SCHEMA IF NOT EXISTS {SHOP}")
    with replica(least_privileged_url) as opened:
        yield opened
