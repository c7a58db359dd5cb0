"""The servers of the rig do what the other integration tests rely on."""

from uuid import uuid4

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from sqlalchemy import NullPool, create_engine, text

from tests.rig.database import VERSIONS, Database, kind_of
from tests.rig.kafka import Kafka


@pytest.fixture
def topic() -> str:
    return f"rig-{uuid4().hex[:8]}"


def run_sql(url: str, *statements: str) -> list[tuple]:
    engine = create_engine(url, poolclass=NullPool)
    with engine.begin() as connection:
        results = [connection.execute(text(statement)) for statement in statements]
        return [tuple(row) for row in results[-1]] if results[-1].returns_rows else []


def produce(kafka: Kafka, topic: str, partition: int, *values: bytes) -> None:
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    for value in values:
        producer.produce(topic, value=value, partition=partition)
    assert producer.flush(30) == 0


def consume(kafka: Kafka, topic: str, partition: int, count: int) -> list[bytes]:
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap_servers, "group.id": "rig", "auto.offset.reset": "error"})
    consumer.assign([TopicPartition(topic, partition, 0)])
    messages = consumer.consume(count, timeout=30)
    consumer.close()
    assert [message.error() for message in messages] == [None] * count
    return [message.value() for message in messages]


def test_a_database_is_of_the_kind_and_version_that_the_project_names(database: Database):
    assert kind_of(database.url) is database.kind
    assert run_sql(database.url, "SELECT VERSION()")[0][0].startswith(f"{VERSIONS[database.kind].number}.")


def test_the_user_may_create_users_and_schemas_and_write_four_byte_text(mysql_url):
    schema = f"rig_{uuid4().hex[:8]}"
    rows = run_sql(
        mysql_url,
        f"CREATE SCHEMA {schema}",
        f"CREATE USER {schema}",
        f"GRANT SELECT ON {schema}.* TO {schema}",
        f"CREATE TABLE {schema}.t (a TEXT)",
        f"INSERT INTO {schema}.t VALUES ('\N{GRINNING FACE}')",
        f"SELECT a FROM {schema}.t",
    )
    run_sql(mysql_url, f"DROP SCHEMA {schema}", f"DROP USER {schema}")
    assert rows == [("\N{GRINNING FACE}",)]


@pytest.mark.parametrize("how", ["restart", "crash"])
def test_a_database_keeps_what_was_committed_and_its_address_over_a(how, database: Database):
    schema = f"rig_{uuid4().hex[:8]}"
    run_sql(database.url, f"CREATE SCHEMA {schema}", f"CREATE TABLE {schema}.t (a INT)", f"INSERT INTO {schema}.t VALUES (7)")
    getattr(database, how)()
    rows = run_sql(database.url, f"SELECT a FROM {schema}.t")
    run_sql(database.url, f"DROP SCHEMA {schema}")
    assert rows == [(7,)]


def test_kafka_gives_a_topic_the_partitions_that_were_asked_for_and_more_later(kafka: Kafka, topic):
    kafka.create_topic(topic, partitions=3)
    produce(kafka, topic, 2, b"x")
    kafka.grow_topic(topic, partitions=5)
    produce(kafka, topic, 4, b"y")
    assert consume(kafka, topic, 2, 1) + consume(kafka, topic, 4, 1) == [b"x", b"y"]
    kafka.delete_topic(topic)


@pytest.mark.parametrize("how", ["restart", "crash"])
def test_kafka_keeps_its_records_and_its_address_over_a(how, kafka: Kafka, topic):
    kafka.create_topic(topic)
    produce(kafka, topic, 0, b"one", b"two")
    getattr(kafka, how)()
    assert consume(kafka, topic, 0, 2) == [b"one", b"two"]
    kafka.delete_topic(topic)
