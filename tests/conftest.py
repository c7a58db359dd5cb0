"""Servers for the tests, and the marks of the tests that need them.

Fast tests need no server. Integration tests ask for ``mysql_url`` or ``kafka`` and are skipped, with a plain word at the end of
the run, where there is no Docker engine. Under xdist each worker starts servers of its own: that takes seconds, and a test that
restarts its server disturbs no other.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from applier.simulator.broker import MockBroker
from tests.rig.certificate import Certificates, make_certificates
from tests.rig.kafka import Kafka, own_kafka, running_kafka
from tests.rig.least_privilege import make_user
from tests.rig.mariadb import Mariadb, own_mariadb, running_mariadb
from tests.rig.server import REQUIRE_SERVERS

# No deadlines: a machine under load is not a defect of the code.
settings.register_profile("applier", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("applier")

TESTS = Path(__file__).parent
TIERS = ("integration", "e2e")
SERVER_FIXTURES = {"kafka", "mariadb", "mysql_url", "least_privileged_url", "encrypted_kafka", "encrypted_mariadb"}


@pytest.fixture(scope="session")
def mariadb() -> Iterator[Mariadb]:
    """A MariaDB that can be restarted."""
    with running_mariadb() as server:
        yield server


@pytest.fixture(scope="session")
def mysql_url(mariadb: Mariadb) -> str:
    """SQLAlchemy URL of a MariaDB user with all privileges. The server is shared: use schemas of your own and drop them."""
    return mariadb.url


@pytest.fixture(scope="session")
def least_privileged_url(mysql_url: str) -> str:
    """The same server for the program under test: the user of sql/grants.sql, who may do what that file grants and nothing else.

    Give this URL to what is tested (``write_config(url=least_privileged_url)``, ``SinkSettings``), and leave ``mysql_url`` to whoever
    prepares, looks on, or compares (``clear_sink``, ``fence_of``, oracles, ``wrong_in``): schemas beside tests.rig.least_privilege's
    REPLICATED are closed to it.
    """
    return make_user(mysql_url)


@pytest.fixture(scope="session")
def kafka() -> Iterator[Kafka]:
    """A Kafka that can be restarted. It is shared: use topics of your own."""
    with running_kafka() as server:
        yield server


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """The certificates of the encrypted servers."""
    return make_certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="session")
def encrypted_mariadb(certificates: Certificates) -> Iterator[Mariadb]:
    """A MariaDB that takes connections with TLS only."""
    with own_mariadb(certificates) as server:
        yield server


@pytest.fixture(scope="session")
def encrypted_kafka(certificates: Certificates) -> Iterator[Kafka]:
    """A Kafka that wants TLS, SCRAM and privileges; its ``properties`` are those of an administrator's client."""
    with own_kafka(certificates) as server:
        yield server


@pytest.fixture(scope="session")
def mock_kafka() -> Iterator[str]:
    """``host:port`` of librdkafka's mock cluster in a process of its own. It is shared: use topics of your own (four partitions each)."""
    with MockBroker() as broker:
        yield broker.bootstrap_servers


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark each test by its directory and its fixtures."""
    for item in items:
        tier = item.path.relative_to(TESTS).parts[0]
        if tier in TIERS:
            item.add_marker(tier)
        if SERVER_FIXTURES & set(getattr(item, "fixturenames", ())):
            item.add_marker("integration")


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Where servers are required, a skipped integration test fails the run, whoever skipped it."""
    if os.environ.get(REQUIRE_SERVERS) and _skipped_integration(session.config) and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say plainly what was not tested."""
    if skipped := _skipped_integration(config):
        terminalreporter.write_sep("=", f"{len(skipped)} INTEGRATION TESTS WERE SKIPPED", yellow=True, bold=True)
        for reason in sorted({_reason(report) for report in skipped}):
            terminalreporter.write_line(reason)


def _skipped_integration(config: pytest.Config) -> list[pytest.TestReport]:
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    return [report for report in reporter.stats.get("skipped", []) if "integration" in report.keywords] if reporter else []


def _reason(report: pytest.TestReport) -> str:
    return report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
