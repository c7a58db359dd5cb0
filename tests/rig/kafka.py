"""A Kafka for the tests: the broker that ``APPLIER_TEST_KAFKA`` names, a container, or a process."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from secrets import token_hex

from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from applier.demo.simulator.kafka_log import wait_until_shown
from tests.rig.certificate import Certificates
from tests.rig.port import free_port
from tests.rig.process_server import ProcessServer, jars, wants_processes
from tests.rig.server import ContainerServer, GivenServer, NotReadyError, Server, choose_image, given_address, require_engine

GIVEN = "APPLIER_TEST_KAFKA"
IMAGE = "APPLIER_TEST_KAFKA_IMAGE"
HOME_BUILT, OFFICIAL, JARS = "applier-test/kafka:4.1.1", "apache/kafka:4.1.1", "kafka-4.1.1"
ADMIN, READER = "admin", "applier"
REQUEST_TIMEOUT_S = 30
SCRAM_ITERATIONS = 4096


@dataclass(frozen=True, slots=True)
class Kafka:
    """``bootstrap_servers`` is one broker, which does not create topics. ``properties``: what clients need besides."""

    bootstrap_servers: str
    server: Server
    properties: dict[str, str] = field(default_factory=dict)

    def create_topic(self, topic: str, partitions: int = 1, **config: str) -> None:
        """Create a topic; ``config`` holds topic properties with ``_`` for ``.`` (``retention_ms="1"``)."""
        properties = {name.replace("_", "."): value for name, value in config.items()}
        wanted = NewTopic(topic, num_partitions=partitions, replication_factor=1, config=properties)
        admin = self._admin()
        admin.create_topics([wanted], operation_timeout=REQUEST_TIMEOUT_S)[topic].result(REQUEST_TIMEOUT_S)
        wait_until_shown(admin, topic, partitions)

    def grow_topic(self, topic: str, partitions: int) -> None:
        """Raise the number of partitions to ``partitions``."""
        grown = NewPartitions(topic, partitions)
        admin = self._admin()
        admin.create_partitions([grown], operation_timeout=REQUEST_TIMEOUT_S)[topic].result(REQUEST_TIMEOUT_S)
        wait_until_shown(admin, topic, partitions)

    def set_topic(self, topic: str, **config: str) -> None:
        """Change properties of a topic, named as for ``create_topic``."""
        entries = [
            ConfigEntry(name.replace("_", "."), value, incremental_operation=AlterConfigOpType.SET) for name, value in config.items()
        ]
        admin = self._admin()
        changed = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
        for answer in admin.incremental_alter_configs([changed]).values():
            answer.result(REQUEST_TIMEOUT_S)

    def delete_records(self, topic: str, below: int, partition: int = 0) -> None:
        """Delete the records of a partition below an offset, as retention does."""
        admin = self._admin()
        for answer in admin.delete_records([TopicPartition(topic, partition, below)]).values():
            answer.result(REQUEST_TIMEOUT_S)

    def delete_topic(self, topic: str) -> None:
        """Delete a topic with all that it holds."""
        admin = self._admin()
        admin.delete_topics([topic], operation_timeout=REQUEST_TIMEOUT_S)[topic].result(REQUEST_TIMEOUT_S)

    def make_reader(self, topic: str, group: str) -> dict[str, str]:
        """Give a user what the README says that the applier needs, and nothing else; return the properties of a client."""
        admin, password = self._admin(), token_hex(16)
        credential = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, SCRAM_ITERATIONS)
        made = admin.alter_user_scram_credentials([UserScramCredentialUpsertion(READER, credential, password.encode())])
        allowed = [
            AclBinding(kind, name, ResourcePatternType.LITERAL, f"User:{READER}", "*", AclOperation.READ, AclPermissionType.ALLOW)
            for kind, name in ((ResourceType.TOPIC, topic), (ResourceType.GROUP, group))
        ]
        for answer in (*made.values(), *admin.create_acls(allowed).values()):
            answer.result(REQUEST_TIMEOUT_S)
        return self.properties | {"sasl.username": READER, "sasl.password": password}

    def withdraw(self, topic: str) -> None:
        """Take every right on a topic from that user."""
        admin = self._admin()
        kept = AclBindingFilter(
            ResourceType.TOPIC, topic, ResourcePatternType.LITERAL, f"User:{READER}", None, AclOperation.ANY, AclPermissionType.ANY
        )
        for answer in admin.delete_acls([kept]).values():
            assert answer.result(REQUEST_TIMEOUT_S)

    def restart(self) -> None:
        """Stop the broker in order and start it again; its log is kept."""
        self.server.stop()
        self.server.start()

    def crash(self) -> None:
        """Kill the broker (SIGKILL) and start it again."""
        self.server.kill()
        self.server.start()

    def _admin(self) -> AdminClient:
        """Return a client; the caller holds it until the answer is there, for its end ends what it was asked."""
        return AdminClient({"bootstrap.servers": self.bootstrap_servers} | self.properties)


@contextmanager
def running_kafka() -> Iterator[Kafka]:
    """Yield a Kafka that answers; skip the test if there is none to be had."""
    if bootstrap_servers := given_address(GIVEN):
        yield Kafka(bootstrap_servers, GivenServer(GIVEN))
        return
    with own_kafka() as server:
        yield server


@contextmanager
def own_kafka(certificates: Certificates | None = None) -> Iterator[Kafka]:
    """Yield a new Kafka, which nobody else uses: it may be killed. Skip the test if there is none to be had.

    With certificates it wants TLS, a user with a password, and privileges.
    """
    port = free_port()
    address = f"127.0.0.1:{port}"
    environment, properties = _protected(certificates) if certificates else ({}, {})
    ask = partial(_list_brokers, address, properties)
    server = _process(port, environment, ask) if wants_processes() else _container(port, environment, ask)
    try:
        server.create()
        yield Kafka(address, server, properties)
    finally:
        server.remove()


def _protected(certificates: Certificates) -> tuple[dict[str, str], dict[str, str]]:
    """Return what the server and what its clients must know."""
    password = token_hex(16)
    clients = {
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": certificates.path("ca.pem"),
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": ADMIN,
        "sasl.password": password,
    }
    return certificates.environment() | {"RIG_USER": ADMIN, "RIG_PASSWORD": password}, clients


def _process(port: int, environment: dict[str, str], ask: Callable[[], None]) -> ProcessServer:
    return ProcessServer(script="kafka.sh", port=port, environment=environment | {"RIG_KAFKA_LIBS": jars(JARS)}, ask=ask)


def _container(port: int, environment: dict[str, str], ask: Callable[[], None]) -> ContainerServer:
    require_engine()
    return ContainerServer(
        image=choose_image(IMAGE, HOME_BUILT, OFFICIAL),
        script="kafka.sh",
        port=port,
        environment=environment | {"RIG_ADVERTISED": f"127.0.0.1:{port}"},
        ask=ask,
    )


def _list_brokers(address: str, properties: dict[str, str]) -> None:
    # Its own client for each question: one that met a closed port waits with growing back-off.
    admin = AdminClient({"bootstrap.servers": address, "log_level": 0} | properties)
    try:
        has_broker = bool(admin.list_topics(timeout=2).brokers)
    except KafkaException as error:
        raise NotReadyError(error) from error
    if not has_broker:
        raise NotReadyError("the broker has not registered yet")
