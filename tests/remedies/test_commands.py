"""What somebody types wrongly, and the command that works after the remedy."""

from pathlib import Path

import pytest

from tests.builders.handwritten import CREATE_SCHEMA, resolved
from tests.rig.walked_feed import CREATE, WalkedFeed, begun, order


@pytest.fixture
def feed(newcomer):
    return begun(newcomer)


@pytest.fixture
def alone(newcomer):
    """A configuration, and nothing else."""
    newcomer.configure()
    return newcomer


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("catchup --until-ts 458173202432000001 --until-time 2025-06-01T12:00:00Z", "catchup --until-ts 458173202432000001"),
        ("catchup --until-time noon", "catchup --until-time 2025-06-01T12:00:00Z"),
        ("skip", "skip --ts 25"),
        ("skip --ts 25 --table orders", "skip --ts 25 --table shop.orders"),
        ("skip --ts 15", "skip --ts 15 --table shop.orders"),
        ("skip --stream {topic} --offset 4", "skip --stream {topic}/0 --offset 4"),
        ("skip --stream other/0 --offset 4", "skip --stream {topic}/0 --offset 4"),
        ("skip --stream {topic}/0 --offset 0", "skip --stream {topic}/0 --offset 4"),
        ("skip --stream {topic}/0 --offset 4 --event 7", "skip --stream {topic}/0 --offset 4 --event 0"),
        ("skip --stream {topic}/0 --offset 400", "inspect"),
        ("inspect --topic other", "inspect --topic {topic}"),
        ("inspect --follow --limit 3", "inspect --limit 3"),
        ("quarantine show --stream {topic}/0 --offset 4", "quarantine list --all"),
        ("ddl done", "ddl list"),
        ("ddl done --ts 3", "ddl list"),
    ],
)
def test_a_command_works_after_the_remedy_of_its_options(wrong, right, newcomer, feed):
    feed.write(order(21, 1))
    feed.everywhere(resolved(30))
    newcomer.fails(wrong.format(topic=feed.topic), 2)
    newcomer.succeeds(right.format(topic=feed.topic))


def test_a_partition_is_chosen_among_those_of_the_remedy(newcomer, feed):
    said = newcomer.fails(f"inspect --topic {feed.topic} --partition 9", 3)
    assert f"{feed.topic}/3" in said.remedy
    newcomer.succeeds(f"inspect --topic {feed.topic} --partition 3")


def test_a_replica_keeps_its_start_ts(newcomer, feed):
    newcomer.change({"source.start_ts": 458173202432000001})
    newcomer.fails("catchup", 2, "start_ts differs")
    newcomer.change({"source.start_ts": 0})
    newcomer.succeeds("catchup")


def test_a_stream_without_resolved_events_goes_on_when_the_changefeed_runs(newcomer):
    feed = WalkedFeed(newcomer)
    feed.everywhere(CREATE_SCHEMA, CREATE)
    feed.everywhere(resolved(20), partitions=1)
    newcomer.fails("catchup", 3, "no resolved event")
    feed.everywhere(resolved(21))
    newcomer.succeeds("catchup")
    assert newcomer.rows() == []


def test_a_partition_that_is_excluded_is_taken_in_again(newcomer):
    feed = WalkedFeed(newcomer)
    feed.begin()
    newcomer.change({"source.partitions": 1})
    newcomer.fails("catchup", 6, "source.partitions excludes it")
    newcomer.change({"source.partitions": None})
    newcomer.succeeds("catchup")


def test_tables_of_the_bookkeeping_are_made_by_the_command_of_the_remedy(alone):
    for command in ("ddl list", "quarantine list"):
        Path("replica.db").unlink(missing_ok=True)
        alone.follow(alone.fails(command, 4), only="migrate")
        alone.succeeds(command)


def test_a_file_that_is_no_configuration_is_corrected(alone):
    path = Path("applier.toml")
    text = path.read_bytes()
    for wrong in (b"\xff", b"name = "):
        path.write_bytes(wrong)
        alone.fails("migrate", 2)
    path.unlink()
    alone.fails("migrate", 2)
    path.mkdir()
    alone.fails("migrate", 2)
    Path("other.toml").write_bytes(text)
    alone.succeeds("migrate --config other.toml")


def test_a_variable_that_is_not_json_is_corrected(alone, monkeypatch):
    monkeypatch.setenv("APPLIER_SOURCE__TOPICS", "[feed")
    alone.fails("migrate", 2)
    monkeypatch.setenv("APPLIER_SOURCE__TOPICS", '["feed"]')
    alone.succeeds("migrate")


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ({"session.timeout.mss": "1"}, {"session.timeout.ms": "9000"}),
        ({"session.timeout.ms": "soon"}, {"session.timeout.ms": "9000"}),
        ({"bootstrap.servers": "h"}, None),
    ],
)
def test_a_property_of_librdkafka_is_corrected(wrong, right, newcomer, feed):
    newcomer.change({"source.kafka": wrong})
    newcomer.fails("catchup", 2)
    newcomer.change({"source.kafka": right})
    newcomer.succeeds("catchup")


def test_a_topic_that_does_not_exist_is_corrected(newcomer, feed):
    newcomer.change({"source.topics": ["nothing-here"], "name": "other"})
    newcomer.fails("catchup", 3, "does not exist")
    newcomer.change({"source.topics": [feed.topic]})
    newcomer.succeeds("catchup --accept-gap")


def test_upstreams_address_is_given_to_verify(newcomer, feed):
    newcomer.fails("verify", 2, "nothing says where upstream is")
    newcomer.fails("verify --upstream tidb:4000", 2)
    newcomer.fails("verify --upstream sqlite:///u.db", 2)
    Path("password").write_text("secret", encoding="utf-8")
    address = "--upstream mysql+pymysql://user@127.0.0.1:1/"
    newcomer.fails(f"verify {address} --upstream-password-file nowhere", 2)
    said = newcomer.applier(f"verify {address} --upstream-password-file password")
    assert said.code not in {0, 2}, said.stderr
    assert "127.0.0.1" in said.stderr
