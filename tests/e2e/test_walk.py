"""Each page that has commands is walked: its shell blocks, as they stand, with the installed wheel, on a Kafka, two MariaDBs and a MySQL.

The second MariaDB plays TiDB, and the test plays TiCDC and Dumpling. What the pages say of them is not tested.
"""

import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import pytest
from sqlalchemy.engine import make_url

from tests.rig.changefeed import PARTITIONS, Changefeed, now, write_dump
from tests.rig.clean_server import drop
from tests.rig.database import PASSWORD, USER, Database, Kind
from tests.rig.mysql_oracle import connect, read_schemas
from tests.rig.primary import Primary, own_primary
from tests.rig.program import ROOT
from tests.rig.walk import Walk, install_wheel, let_run_stay, mysql_client, pages_with_commands, walking

pytestmark = pytest.mark.slow

CREATE = "CREATE TABLE `orders` (id BIGINT PRIMARY KEY, customer VARCHAR(40), total DECIMAL(10,2))"
INSERT = "INSERT INTO `orders` VALUES (1, 'Ada', 19.90), (2, 'Grace', 5.00)"
ORDERS = [(1, "Ada", "24.90"), (2, "Grace", "5.00")]
NO_TIDB = "there is no TiDB, TiCDC or TiUP here: the test plays them"
NO_INDEX = "downloads from the package index"
OWN_TEST = {
    "the demo": "tests/e2e/test_demo_command.py",
    "the live demo": "tests/e2e/test_live_demo.py",
    "the image": ".ci/containers",
    "the installation by pip": ".ci/check-wheel",
}
NOT_WALKED = {
    "containers.md": "builds an image and needs a registry or a Kubernetes cluster: .ci/containers and tests/docker/test_kubernetes.py",
    "spark_cluster.md": "needs a Spark cluster: tests/e2e/test_spark_submit.py",
}
WALKED = set()


def walks(page):
    """Note that a test walks this page."""
    WALKED.add(page)
    return pytest.mark.parametrize("page", [page])


@dataclass(frozen=True)
class Servers:
    """``sink`` is a MariaDB with a binlog, which is a primary too; ``tidb`` plays TiDB."""

    kafka: str
    topic: str
    feed: Changefeed
    sink: Primary
    tidb: Database
    mysql: Database


def where(url: str) -> str:
    """Return ``host:port`` of an address."""
    return f"{make_url(url).host}:{make_url(url).port}"


def empty(url: str) -> None:
    with closing(connect(url)) as connection, connection.cursor() as cursor:
        drop(cursor, [*read_schemas(connection, ""), "applier"])
        cursor.execute("DROP USER IF EXISTS applier")
        connection.commit()


def rows(url: str, table: str = "shop.orders"):
    with closing(connect(url)) as connection, connection.cursor() as cursor:
        cursor.execute(f"SELECT id, customer, CAST(total AS CHAR) FROM {table} ORDER BY id")
        return list(cursor.fetchall())


@pytest.fixture(scope="module")
def programs(tmp_path_factory) -> Path:
    return install_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def sink() -> Iterator[Primary]:
    with own_primary(Kind.MARIADB) as primary:
        yield primary


@pytest.fixture
def servers(kafka, sink, databases) -> Iterator[Servers]:
    topic = f"walk_{uuid4().hex[:8]}"
    kafka.create_topic(topic, PARTITIONS)
    tidb, mysql = databases.plain(Kind.MARIADB), databases.plain(Kind.MYSQL)
    # Other tests use these servers too, and pages name all schemas.
    for url in (tidb.url, mysql.url):
        empty(url)
    sink.run(f"CREATE USER applier IDENTIFIED BY '{PASSWORD}'", "GRANT ALL ON *.* TO applier")
    servers = Servers(kafka.bootstrap_servers, topic, Changefeed(kafka.bootstrap_servers, topic), sink, tidb, mysql)
    yield servers
    kafka.delete_topic(topic)
    for url in (sink.url, tidb.url, mysql.url):
        empty(url)


def run_on(database: Database, *statements: str) -> None:
    with closing(connect(database.url)) as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
        connection.commit()


def until(walk: Walk, is_reached) -> None:
    """Let ``applier run`` get there."""
    give_up = time.monotonic() + 60
    while not is_reached():
        assert time.monotonic() < give_up, walk.run_said()
        time.sleep(0.05)


def fed(servers: Servers) -> int:
    """Let a changefeed begin, then upstream's rows of the dump; return the timestamp of the dump."""
    servers.feed.row(now(), id=1, customer="Ada", total="1.00")
    return now()


def test_every_page_with_commands_is_walked_or_says_why_not():
    assert pages_with_commands() == WALKED | set(NOT_WALKED)
    assert not WALKED & set(NOT_WALKED)
    for place in OWN_TEST.values():
        assert (ROOT / place).is_file()


@walks("install.md")
def test_install(page, programs, tmp_path):
    with walking(page, programs, tmp_path, {}) as walk:
        printed = walk.types("applier --version")
        assert "quickstart" in printed
        assert list((tmp_path / "home").iterdir()), "the completion is in the reader's home"
        walk.skips("applier demo\n", OWN_TEST["the demo"])
        walk.skips("applier demo --live", OWN_TEST["the live demo"])
        walk.skips("docker build", OWN_TEST["the image"])


@walks("quickstart.md")
def test_quick_start(page, programs, tmp_path, servers):
    means = {
        "127.0.0.1:9092": servers.kafka,
        '"changefeed"': f'"{servers.topic}"',
        "mysql -h 127.0.0.1 -P 4000 -u root": mysql_client(servers.tidb.url),
        "docker exec mariadb mariadb -uroot -psecret": mysql_client(servers.sink.url),
        "mysql -h 127.0.0.1 -u applier": f"mariadb -h 127.0.0.1 -P {make_url(servers.sink.url).port} -u applier",
        "127.0.0.1:3306": where(servers.sink.url),
        "root@127.0.0.1:4000": f"{USER}@{where(servers.tidb.url)}",
    }
    servers.sink.run("DROP USER applier")
    with walking(page, programs, tmp_path, means) as walk:
        walk.skips("pipx install", OWN_TEST["the installation by pip"])
        walk.skips("TZ=UTC tiup", NO_TIDB)
        walk.skips("docker run -d --name kafka", "the servers of the tests run already")
        walk.types("mysql -h 127.0.0.1 -P 4000")
        walk.skips("tiup cdc", NO_TIDB)
        ts = fed(servers)
        write_dump(tmp_path / "dump", ts, "shop", CREATE, INSERT)
        walk.types("docker exec mariadb")
        walk.means |= {"420747102018863124": str(ts)}
        walk.writes_toml()
        walk.types("export APPLIER_SINK__PASSWORD")
        assert "loaded 1 table" in walk.types("applier load dump")
        # The other way, where the first one has not been: on an empty server.
        servers.sink.run("DROP SCHEMA shop", "DROP SCHEMA applier")
        walk.types("client() {")
        assert rows(servers.sink.url) == [(1, "Ada", "19.90"), (2, "Grace", "5.00")]
        walk.executes("applier load dump --declared --config applier.toml")
        with servers.feed.living():
            assert "checks passed" in walk.types("applier check")
            servers.feed.row(now(), id=1, customer="Ada", total="24.90")
            until(walk, lambda: rows(servers.sink.url) == ORDERS)
            assert "24.90" in walk.types("mysql -h 127.0.0.1 -P 4000")
            walk.executes(f"export APPLIER_UPSTREAM_PASSWORD={PASSWORD}")
            walk.types("applier verify")
            walk.stops_run()


@walks("README.md")
def test_readme(page, programs, tmp_path, servers):
    ts = fed(servers)
    means = {
        "kafka.example:9092": servers.kafka,
        '"changefeed"': f'"{servers.topic}"',
        "420747102018863124": str(ts),
        "mariadb.example:3306": where(servers.sink.url),
        "reader@tidb.example:4000": f"{USER}@{where(servers.tidb.url)}",
    }
    run_on(servers.tidb, "CREATE SCHEMA shop", "USE shop", CREATE, INSERT)
    with walking(page, programs, tmp_path, means) as walk:
        walk.skips("pipx install .", OWN_TEST["the installation by pip"])
        walk.skips("applier demo", OWN_TEST["the demo"])
        walk.skips("cdc cli", NO_TIDB)
        walk.skips("tiup dumpling", NO_TIDB)
        write_dump(tmp_path / "dump", ts, "shop", CREATE, INSERT)
        walk.writes_toml()
        walk.executes(f"export APPLIER_SINK__PASSWORD={PASSWORD} APPLIER_UPSTREAM_PASSWORD={PASSWORD}")
        with servers.feed.living():
            assert "checks passed" in walk.types("applier load dump")
            assert "alive" in walk.types("applier status")
            assert "shop.orders" in walk.types("applier status")
            walk.stops_run()


@walks("setting_up.md")
def test_setting_up(page, programs, tmp_path, servers):
    ts = fed(servers)
    write_dump(tmp_path / "dump", ts, "shop", CREATE, INSERT)
    with walking(page, programs, tmp_path, {}) as walk:
        url = f"mysql+pymysql://applier@{where(servers.sink.url)}/"
        printed = walk.types("applier init", "", "kafka", servers.kafka, servers.topic, url, "n")
        assert printed.index("applier load dump") < printed.index("applier check") < printed.index("applier run")
        walk.executes(f"export APPLIER_SINK__PASSWORD={PASSWORD}")
        assert "loaded 1 table" in walk.types("applier load dump")
        servers.sink.run("DROP SCHEMA applier")
        assert f"(ts {ts})" in walk.types("applier load dump --declared")
        with servers.feed.living():
            assert "checks passed" in walk.types("applier check")


@walks("start_over.md")
def test_start_over(page, programs, tmp_path, servers):
    with walking(page, programs, tmp_path, {"remove OLD": "remove old"}) as walk:
        walk.executes(f"export APPLIER_SINK__PASSWORD={PASSWORD}")
        ts = fed(servers)
        write_dump(tmp_path / "dump", ts, "shop", CREATE, INSERT)
        kafka_config(walk, servers)
        walk.executes("applier load dump; APPLIER_NAME=old applier load --declared --start-ts " + str(ts))
        shutil.rmtree(tmp_path / "dump")
        write_dump(tmp_path / "dump", now(), "shop", CREATE, INSERT.replace("19.90", "24.90"))
        with servers.feed.living():
            walk.types("applier replicas list", "changefeed")
            assert rows(servers.sink.url) == ORDERS
            walk.stops_run()
        assert "removed" in walk.types("applier replicas remove", "old")


def kafka_config(walk: Walk, servers: Servers, *, sink: str = "") -> None:
    """Write the configuration that the reader has by then: a topic to the MariaDB."""
    (walk.directory / "applier.toml").write_text(
        f'name = "changefeed"\n[source]\nbootstrap_servers = "{servers.kafka}"\ntopics = ["{servers.topic}"]\n'
        f'[sink]\nurl = "mysql+pymysql://applier@{where(servers.sink.url)}/"\n{sink}',
        encoding="utf-8",
    )


@walks("verify.md")
def test_verify(page, programs, tmp_path, servers):
    means = {"reader@tidb.example:4000": f"{USER}@{where(servers.tidb.url)}"}
    for database in (servers.tidb, servers.sink.database):
        run_on(database, "CREATE SCHEMA shop", "USE shop", CREATE, INSERT)
    with walking(page, programs, tmp_path, means) as walk:
        kafka_config(walk, servers)
        walk.executes(f"export APPLIER_SINK__PASSWORD={PASSWORD} APPLIER_UPSTREAM_PASSWORD={PASSWORD}")
        walk.executes(f"applier load --declared --start-ts {now()}")
        assert "1 table" in walk.types("applier verify")


@walks("quarantine.md")
def test_quarantine(page, programs, tmp_path, servers):
    means = {"changefeed/": f"{servers.topic}/", "458173202432000000": str(now())}
    with walking(page, programs, tmp_path, means) as walk:
        kafka_config(walk, servers, sink='on_rejected_row = "quarantine"\n')
        walk.executes(f"export APPLIER_SINK__PASSWORD={PASSWORD}")
        run_on(servers.sink.database, "CREATE SCHEMA shop", "USE shop", CREATE.replace("VARCHAR(40)", "VARCHAR(3)"))
        walk.executes(f"applier load --declared --start-ts {now()}")
        for number, customer in enumerate(("Ada", "Grace", "Edsger"), start=1):
            servers.feed.row(now(), id=number, customer=customer, total="1.00")
        servers.feed.resolve(now())
        walk.executes("applier catchup")
        walk.means |= {"81207": "1", "81311": "2"}
        run_on(servers.sink.database, "ALTER TABLE shop.orders MODIFY customer VARCHAR(40)")
        walk.types("applier quarantine list")
        assert rows(servers.sink.url) == [(1, "Ada", "1.00"), (2, "Grace", "1.00")]
        assert "shop.orders" not in walk.executes("applier quarantine list")
        # The next record cannot be read: it is at offset 1, after the resolved event.
        servers.feed.record(b"\0", b"\0", 2)
        servers.feed.flush()
        walk.means |= {"81400": "1"}
        walk.types("applier skip")
        assert f"{servers.topic}/2" in walk.types("applier skip list")


@walks("binlog.md")
def test_binlog(page, programs, tmp_path, servers):
    sink = make_url(servers.mysql.url)
    means = {
        "mariadb-dump -h primary.example -u root": mysql_client(servers.sink.url, program="mariadb-dump"),
        "primary.example:3306": where(servers.sink.url),
        "applier@replica.example:3306": f"{sink.username}@{where(servers.mysql.url)}",
    }
    servers.sink.run("CREATE SCHEMA shop", "USE shop", CREATE, INSERT)
    with walking(page, programs, tmp_path, means) as walk:
        walk.writes_toml("primary.example")
        walk.executes(f"export APPLIER_SINK__PASSWORD={PASSWORD} APPLIER_SOURCE__PASSWORD={PASSWORD}")
        walk.types("mkdir dump")
        servers.sink.run("UPDATE shop.orders SET total = 24.90 WHERE id = 1")
        until(walk, lambda: rows(servers.mysql.url) == ORDERS)
        walk.stops_run()
        walk.skips("applier copy", "this replica has begun with a dump; tests/integration/binlog/test_copy.py begins with a copy")
        first = servers.sink.place()
        servers.sink.run("UPDATE shop.orders SET total = 1 WHERE id = 2")
        walk.means |= {"mariadb-bin.000042:1337": first, "0-1-4711": servers.sink.gtid()}
        servers.sink.run("INSERT INTO shop.orders VALUES (3, 'Edsger', 7.00)")
        walk.means |= {"mariadb-bin.000042:4711": servers.sink.place(), "2026-11-23T12:00:00Z": "2100-01-01T00:00:00Z"}
        walk.types("applier inspect")
        assert rows(servers.mysql.url) == [*ORDERS, (3, "Edsger", "7.00")]


@walks("add_table.md")
def test_add_table(page, programs, tmp_path, servers):
    sink = make_url(servers.mysql.url)
    means = {
        "mariadb-dump -h primary.example -u root": mysql_client(servers.sink.url, program="mariadb-dump"),
        "primary.example:3306": where(servers.sink.url),
        "applier@replica.example:3306": f"{sink.username}@{where(servers.mysql.url)}",
    }
    invoices = [text.replace("orders", "invoices") for text in (CREATE, INSERT)]
    servers.sink.run("CREATE SCHEMA shop", "USE shop", CREATE, INSERT, *invoices)
    run_on(servers.mysql, "CREATE SCHEMA shop", "USE shop", CREATE, INSERT)
    with walking(page, programs, tmp_path, means) as walk:
        walk.writes_toml()
        (tmp_path / "applier.toml").rename(tmp_path / "invoices.toml")
        walk.executes(f"export APPLIER_SINK__PASSWORD={PASSWORD} APPLIER_SOURCE__PASSWORD={PASSWORD}")
        walk.types("mariadb-dump")
        servers.sink.run("UPDATE shop.invoices SET total = 24.90 WHERE id = 1")
        until(walk, lambda: rows(servers.mysql.url, "shop.invoices") == ORDERS)
        walk.types("applier verify")
        walk.stops_run()


@walks("dataframe.md")
def test_dataframe(page, programs, tmp_path, servers):
    means = {
        "kafka:9092": servers.kafka,
        "--topic changefeed": f"--topic {servers.topic}",
        "/data/orders": str(tmp_path / "orders"),
        '{"id":5}': '{"id":1}',
        "2025-06-01T12:00:00Z": "2100-01-01T00:00:00Z",
    }
    servers.feed.row(now(), id=1, customer="Ada", total="24.90")
    servers.feed.resolve(now())
    with walking(page, programs, tmp_path, means) as walk:
        walk.skips("# the applier is installed already", NO_INDEX)
        walk.executes("export PYSPARK_PYTHON=$(command -v python)")
        assert "Ada" in walk.types("applier docs land_changelog.py")


@walks("upgrade.md")
def test_upgrade(page, programs, tmp_path, servers):
    with walking(page, programs, tmp_path, {"/opt": str(tmp_path / "opt")}) as walk:
        wheel = next(programs.parents[1].glob("dist/*.whl"))
        shutil.copy(wheel, tmp_path)
        walk.executes(f"export APPLIER_SINK__PASSWORD={PASSWORD}")
        kafka_config(walk, servers)
        servers.feed.resolve(now())
        walk.executes("applier load --declared --start-ts " + str(now()))
        walk.types("python3 -m venv")
        borrow(tmp_path / "opt" / "applier-2")
        walk.types("/opt/applier-2/bin/pip install")
        let_run_stay(tmp_path / "opt" / "applier-2" / "bin" / "applier")
        with servers.feed.living():
            walk.types("/opt/applier-2/bin/applier check")
            walk.stops_run()
        walk.skips("pip download", NO_INDEX)
        (tmp_path / "wheelhouse").mkdir()
        shutil.copy(wheel, tmp_path / "wheelhouse")
        walk.types("python3 -m venv")
        borrow(tmp_path / "opt" / "applier-3")
        walk.types("/opt/applier-3/bin/pip install --no-index")


def borrow(environment: Path) -> None:
    """Give an environment the packages of this one, except the applier and pip, as if the package index had brought them."""
    own = Path(next(path for path in sys.path if path.endswith("site-packages")))
    (packages,) = environment.glob("lib/python3*/site-packages")
    for path in own.iterdir():
        # Not the directory of the package: what pip wrote into it through the link would be in this environment.
        if not path.name.startswith(("applier", "cdc_applier")) and path.suffix != ".pth" and not (packages / path.name).exists():
            (packages / path.name).symlink_to(path)
