"""Servers for the tests, and the marks of the tests that need them.

Fast tests need no server. Integration tests ask for ``mysql_url`` or ``kafka`` and are skipped, with a plain word at the end of
the run, where there is no Docker engine. Under xdist each worker starts servers of its own: that takes seconds, and a test that
restarts its server disturbs no other.

A test that asks for a database runs on every server of the MySQL family (``tests.rig.database.Kind``), once each. What is slow and shows
nothing of the server says so: ``@pytest.mark.usually_on("mariadb", reason="…")`` runs it on the other one in ``make soak`` only. What
exists on one of them only is marked ``on_one_server``.

What is marked ``soak`` is long: ``--soak`` runs that, and nothing else.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from applier.demo.simulator.broker import MockBroker
from tests.rig.certificate import Certificates, make_certificates
from tests.rig.database import Database, Databases, Kind
from tests.rig.kafka import Kafka, own_kafka, running_kafka
from tests.rig.server import REQUIRE_SERVERS

# PyMySQL reads the system's authorities for each connection, encrypted or not: 29 ms of CPU, without them 0.5. No server of these
# tests has a certificate of theirs; programs and workers that the tests start inherit this.
os.environ["SSL_CERT_FILE"] = os.environ["SSL_CERT_DIR"] = os.devnull

# No deadlines: a machine under load is not a defect of the code.
settings.register_profile("applier", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("applier")

TESTS = Path(__file__).parent
TIERS = ("integration", "e2e")
SERVER_FIXTURES = {"kafka", "encrypted_kafka", "databases", "database_kind"}
"""The tests that ask for the others ask for these."""


@pytest.fixture(scope="session")
def databases() -> Iterator[Databases]:
    """All database servers of this process, for tests that choose among them."""
    with Databases() as servers:
        yield servers


@pytest.fixture(scope="session")
def database_kind(request: pytest.FixtureRequest) -> Kind:
    """Which server of the MySQL family a test runs on: one after the other (``pytest_generate_tests``)."""
    return Kind(request.param)


@pytest.fixture(scope="session")
def database(databases: Databases, database_kind: Kind) -> Database:
    """A MariaDB or a MySQL that can be restarted."""
    return databases.plain(database_kind)


@pytest.fixture(scope="session")
def mysql_url(database: Database) -> str:
    """SQLAlchemy URL of a user with all privileges. The server is shared: use schemas of your own and drop them."""
    return database.url


@pytest.fixture(scope="session")
def least_privileged_url(database: Database) -> str:
    """The same server for the program under test: the user of sql/grants.sql, who may do what that file grants and nothing else.

    Give this URL to what is tested (``write_config(url=least_privileged_url)``, ``SinkSettings``), and leave ``mysql_url`` to code that
    prepares, looks on, or compares (``clear_sink``, ``fence_of``, oracles, ``wrong_in``): schemas beside tests.rig.least_privilege's
    REPLICATED are closed to it.
    """
    return database.least_privileged_url


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
def encrypted_database(databases: Databases, database_kind: Kind, certificates: Certificates) -> Database:
    """A MariaDB or a MySQL that takes connections with TLS only."""
    return databases.encrypted(database_kind, certificates)


@pytest.fixture(scope="session")
def encrypted_kafka(certificates: Certificates) -> Iterator[Kafka]:
    """A Kafka that wants TLS, SCRAM and privileges; its ``properties`` are those of an administrator's client."""
    with own_kafka(certificates) as server:
        yield server


@pytest.fixture(scope="session")
def mock_kafka() -> Iterator[str]:
    """``host:port`` of librdkafka's mock cluster in its own process. It is shared: use topics of your own (four partitions each)."""
    with MockBroker() as broker:
        yield broker.bootstrap_servers


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--soak", action="store_true", help="run what is marked soak, and nothing else")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Let a test that asks for a database run on each kind of server, or on the one that its mark names."""
    if "database_kind" in metafunc.fixturenames:
        metafunc.parametrize("database_kind", list(_kinds(metafunc.definition)), indirect=True, scope="session", ids=str)


def _kinds(definition: pytest.Item) -> Iterator[object]:
    only, usual = (definition.get_closest_marker(name) for name in ("on_one_server", "usually_on"))
    for kind in Kind:
        if only and kind is not _chosen(*only.args, **only.kwargs):
            continue
        is_soak = usual and kind is not _chosen(*usual.args, **usual.kwargs)
        yield pytest.param(kind, marks=pytest.mark.soak(reason="one server is enough for every day") if is_soak else ())


def _chosen(kind: str, *, reason: str) -> Kind:
    if not reason:
        raise pytest.UsageError("on_one_server and usually_on need a reason")
    return Kind(kind)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark each test by its directory and its fixtures; leave out what is long, or all that is not."""
    for item in items:
        tier = item.path.relative_to(TESTS).parts[0]
        if tier in TIERS:
            item.add_marker(tier)
        if SERVER_FIXTURES & set(getattr(item, "fixturenames", ())):
            item.add_marker("integration")
    left_out = [item for item in items if bool(item.get_closest_marker("soak")) is not config.getoption("soak")]
    items[:] = [item for item in items if bool(item.get_closest_marker("soak")) is config.getoption("soak")]
    config.hook.pytest_deselected(items=left_out)


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Where servers are required, a skipped integration test fails the run, whatever skipped it."""
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
