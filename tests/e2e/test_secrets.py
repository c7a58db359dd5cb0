"""Encrypted servers from end to end, and where secrets are: nowhere but in the applier's own memory.

The user of the database is that of sql/grants.sql, and Kafka's may read and nothing else. Everything runs with tracebacks and debug
logs on.
"""

import json
import signal
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from http.client import HTTPConnection
from pathlib import Path
from uuid import uuid4

import pytest
from sqlalchemy import make_url

from applier.demo.simulator.kafka_log import create_topic, produce_log
from applier.model.errors import FatalSinkError
from applier.sinks.registry import open_sink
from applier.sinks.settings import SinkSettings
from tests.rig.database import Kind
from tests.rig.least_privilege import make_user
from tests.rig.port import free_port
from tests.rig.program import APPLIER, PROCESSES, Program, catchup, daemon, write_config
from tests.rig.upstream import NAME, clear_sink, small_upstream

pytestmark = [
    pytest.mark.slow,
    pytest.mark.usually_on("mariadb", reason="tests/integration/test_encrypted_database.py has the errors of each server"),
]

CONFIG, SOURCE, SINK = 2, 3, 4
MARK = "marked-secret"
"""Part of every secret that is made up here."""
SPARK_SECRET = f"{MARK}-of-spark"
NOBODY = "127.0.0.1:1"


NO_TLS = {Kind.MARIADB: "Access denied", Kind.MYSQL: "insecure transport"}
"""What a server says to a connection without TLS, if it takes others only."""


class RecordPosition:
    """Two encrypted servers, a feed, and the secrets of the way between them."""

    def __init__(self, directory, kafka, database, certificates):
        self.directory, self.kafka, self.database, self.certificates = directory, kafka, database, certificates
        self.port = free_port()
        own = make_url(make_user(database.url))
        self.password, self.url = own.password, own.set(password=None).render_as_string()
        self.world = small_upstream(91, f"secret-{uuid4().hex[:8]}", transactions=30)
        for topic, partitions in self.world.topics.items():
            create_topic(kafka.bootstrap_servers, topic, partitions, **kafka.properties)
        produce_log(self.world.log, kafka.bootstrap_servers, properties=kafka.properties)
        (topic,) = self.world.topics
        self.reader = kafka.make_reader(topic, f"applier-{NAME}")

    @property
    def secrets(self):
        return (self.password, self.reader["sasl.password"], SPARK_SECRET, MARK)

    def write(self, name, *, kafka=None, sink=None, **changes):
        """Write a configuration. ``kafka`` and ``sink`` go over the right keys; None takes a key away."""
        directory = self.directory / name
        directory.mkdir()
        (directory / "sasl").write_text(self.reader["sasl.password"] + "\n", encoding="utf-8")
        (directory / "sink").write_text(self.password + "\n", encoding="utf-8")
        properties = {name: value for name, value in self.reader.items() if name != "sasl.password"}
        properties |= {"sasl.password.file": str(directory / "sasl")} | (kafka or {})
        keys = {"tls_ca": self.certificates.path("ca.pem"), "password_file": str(directory / "sink")} | (sink or {})
        places = {"servers": self.kafka.bootstrap_servers, "url": self.url, "topics": list(self.world.topics)} | changes
        path = write_config(directory, **places)
        text = path.read_text(encoding="utf-8")
        text = text.replace("[sink]\n", f"[source.kafka]\n{_lines(properties)}[sink]\n{_lines(keys)}")
        path.write_text(f'{text}"spark.hadoop.fs.some.password" = "{SPARK_SECRET}"\n[http]\nlisten = {self.port}\n', encoding="utf-8")
        return path

    def shown(self, text):
        return [secret for secret in self.secrets if secret in text]


def _lines(values):
    return "".join(f"{json.dumps(name)} = {json.dumps(value)}\n" for name, value in values.items() if value is not None)


@pytest.fixture(scope="module")
def place(tmp_path_factory, encrypted_kafka, encrypted_database, certificates):
    clear_sink(encrypted_database.url)
    yield RecordPosition(tmp_path_factory.mktemp("secrets"), encrypted_kafka, encrypted_database, certificates)
    clear_sink(encrypted_database.url)


def test_a_daemon_between_encrypted_servers_shows_its_secrets_to_no_process_and_no_log(place):
    # One secret from the environment, the others from files.
    config = place.write("right", sink={"password_file": None})
    with daemon(config, APPLIER_DEBUG="1", APPLIER_SINK__PASSWORD=place.password) as program:
        assert program.reaches(lambda: checkpoint_of(place.database.url) == place.world.final_ts), program.wait()
        driver, *others = program.alive()
        commands = [seen(process, "cmdline") for process in (driver, *others)]
        environments = [seen(process, "environ") for process in others]
        assert place.password in seen(driver, "environ"), "this is how a secret would be seen"
        answers = [answer(place.port, path) for path in ("/status", "/metrics", "/", "/ddls", "/quarantine", "/last-end", "/history")]
        with Program([*APPLIER, "status", "--config", config, "--json"], config.parent, APPLIER_SINK__PASSWORD=place.password) as asking:
            status = asking.wait()
        assert status.result["checkpoint_ts"] == place.world.final_ts
        program.send(signal.SIGTERM)
        ended = program.wait()
    assert ended.code == 0, ended.stderr
    assert "offsets_not_shown" not in ended.stderr
    for kind in ("org.apache.spark.deploy.SparkSubmit", "applier.run.worker_daemon\npyspark.worker"):
        assert any(kind in command for command in commands), commands
    assert [
        found for text in (*commands, *environments, *answers, status.stdout, ended.stdout, ended.stderr) if (found := place.shown(text))
    ] == []
    assert place.world.wrong_in(place.database.url) == []


def seen(process, what):
    """Read what every process of the same user may read; '' if the process has just ended."""
    with suppress(FileNotFoundError, ProcessLookupError):
        return (PROCESSES / str(process) / what).read_bytes().replace(b"\0", b"\n").decode(errors="replace")
    return ""


def answer(port, path):
    connection = HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        assert response.status == 200
        return response.read().decode()
    finally:
        connection.close()


def checkpoint_of(url):
    with open_sink(SinkSettings(url=url, name=NAME)) as sink, suppress(FatalSinkError):  # its tables are not there yet
        progress = sink.load()
        return 0 if progress is None else progress.checkpoint_ts
    return 0


def failures(place):
    """Return configurations that fail, with the exit code, and words of message and remedy."""
    stranger, wrong = place.certificates.path("stranger.pem"), {"password_file": None, "password": f"{MARK}-1"}
    kafka = {"sasl.password.file": None, "sasl.password": f"{MARK}-2"}
    return [
        (place.write("sink-password", sink=wrong), SINK, "Access denied", "password_file"),
        (place.write("sink-authority", sink={"tls_ca": stranger}), SINK, "certificate verify failed", "tls_ca"),
        (
            place.write("sink-without-tls", sink={"tls_ca": None, "tls_mode": "disabled"}),
            SINK,
            NO_TLS[place.database.kind],
            "tls_mode",
        ),
        (place.write("sink-away", url=f"mysql+pymysql://applier:{MARK}-3@{NOBODY}/"), SINK, "Can't connect", "Check host and port"),
        (place.write("kafka-password", kafka=kafka), SOURCE, "invalid credentials", "sasl.password"),
        (place.write("kafka-authority", kafka={"ssl.ca.location": stranger}), SOURCE, "certificate verify failed", "ssl.ca.location"),
        (place.write("kafka-away", servers=NOBODY), SOURCE, "Kafka does not answer", "source.bootstrap_servers"),
        (place.write("mechanism", kafka={"sasl.mechanism": f"{MARK}-4"}), CONFIG, "sasl.mechanism", "CONFIGURATION.md"),
        (place.write("key", kafka={"ssl.key.pem": f"{MARK}-5"}), CONFIG, "ssl.key.pem", "CONFIGURATION.md"),
        (place.write("twice", sink={"password": f"{MARK}-6"}), CONFIG, "password_file", "Remove one of them"),
        (place.write("no-file", sink={"password_file": f"/{MARK}-7"}), CONFIG, "sink.password_file", "Check the path"),
        (place.write("option", url=f"{place.url}?ssl_key_password={MARK}-8"), CONFIG, "sink.url", "password_file"),
    ]


def test_no_failure_shows_a_secret(place):
    def run_until_it_fails(config: Path):
        with catchup(config, APPLIER_DEBUG="1") as program:
            return program.wait()

    cases = failures(place)
    with ThreadPoolExecutor(3) as pool:
        ends = list(pool.map(run_until_it_fails, [config for config, *_ in cases]))
    for (config, code, words, remedy), ended in zip(cases, ends, strict=True):
        name = config.parent.name
        assert (name, ended.code, ended.stdout) == (name, code, ""), ended.stderr
        assert words in ended.stderr, (name, ended.stderr)
        assert remedy in ended.stderr.rpartition("remedy: ")[2], (name, ended.stderr)
        assert place.shown(ended.stderr) == [], name
