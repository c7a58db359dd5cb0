"""Topics under a pattern on a real Kafka: they join when they appear, and are told apart from those that are made again."""

from pathlib import Path
from threading import Thread
from uuid import uuid4

import pytest

from applier.demo.simulator.kafka_log import produce_log
from applier.demo.simulator.session_zone import SESSION_ZONE
from applier.model.errors import ApplierError, NeedsOperator
from applier.model.position import Stream
from applier.replica.shutdown import Shutdown
from applier.sources.factory import open_source
from applier.sources.kafka.settings import KafkaSettings
from tests.builders.handwritten import CREATE_SCHEMA, KEY, PLAIN, ddl, log_of, resolved, row, rows_of
from tests.builders.wire import column
from tests.rig.kafka import Kafka
from tests.rig.local_replica import Replica, sqlite_replica

CREATED = ddl(10, "CREATE TABLE orders (id INT PRIMARY KEY, n INT)")


def numbered(ts, key):
    return row(ts, id=column(3, KEY, key), n=column(3, PLAIN, ts))


class Topics:
    """Two topics under one pattern; the second one is made later."""

    def __init__(self, kafka: Kafka) -> None:
        self._kafka, self.prefix = kafka, f"cdc{uuid4().hex[:8]}_"

    def make(self, name, *events):
        self._kafka.create_topic(self.prefix + name, 1, retention_ms="-1")
        self.write(name, *events)

    def write(self, name, *events):
        stream = Stream(self.prefix + name, 0)
        produce_log(log_of(*((stream, event) for event in events)), self._kafka.bootstrap_servers)

    def delete(self, name):
        self._kafka.delete_topic(self.prefix + name)

    def source(self):
        pattern = f"^{self.prefix}.*"
        return open_source(
            KafkaSettings(bootstrap_servers=self._kafka.bootstrap_servers, topics=(pattern,), group_id="patterns"),
            zone_of_sessions=lambda: SESSION_ZONE,
        )


@pytest.fixture
def topics(kafka: Kafka):
    made = Topics(kafka)
    made.make("a", CREATE_SCHEMA, CREATED, numbered(20, 1), resolved(30))
    yield made
    made.delete("a")


def test_s14_a_topic_joins_when_it_appears_and_stops_the_run_when_it_is_made_again(topics: Topics, tmp_path: Path) -> None:
    with topics.source() as source:
        replica = sqlite_replica(tmp_path, source)
        replica.catch_up()
        topics.make("b", numbered(40, 2), numbered(41, 3), resolved(50))
        topics.write("a", resolved(50))
        replica.catch_up()
        assert rows_of(tmp_path) == [(1, 20), (2, 40), (3, 41)]
        topics.delete("b")
        with pytest.raises(NeedsOperator) as gone:
            replica.catch_up()
        assert (gone.value.facts["kind"], gone.value.facts["topic"]) == ("recreated", f"{topics.prefix}b")
        topics.make("b", numbered(60, 4), numbered(61, 5), resolved(70), resolved(71))
        with pytest.raises(NeedsOperator) as again:
            replica.catch_up()
        assert again.value.facts["kind"] == "recreated"
        assert rows_of(tmp_path) == [(1, 20), (2, 40), (3, 41)]
        topics.delete("b")


def test_s14_a_running_daemon_finds_the_topic_and_notices_that_it_is_made_again(topics: Topics, tmp_path: Path) -> None:
    with topics.source() as source:
        daemon = Daemon(sqlite_replica(tmp_path, source))
        daemon.wait_for(lambda: rows_of(tmp_path) == [(1, 20)])
        topics.make("b", numbered(40, 2), resolved(50))
        topics.write("a", resolved(50))
        daemon.wait_for(lambda: rows_of(tmp_path) == [(1, 20), (2, 40)])
        topics.delete("b")
        topics.make("b", numbered(60, 4), resolved(70), resolved(71))
        error = daemon.error()
        assert isinstance(error, NeedsOperator)
        assert (error.facts["kind"], error.facts["topic"]) == ("recreated", f"{topics.prefix}b")
        assert rows_of(tmp_path) == [(1, 20), (2, 40)]
        topics.delete("b")


class Daemon:
    """A replica that follows its topics in a thread."""

    def __init__(self, replica: Replica) -> None:
        self._replica, self._shutdown, self._error = replica, Shutdown(), []
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self):
        try:
            self._replica.follow(self._shutdown)
        except ApplierError as error:
            self._error.append(error)

    def wait_for(self, is_so):
        for _ in range(600):
            try:
                if is_so():
                    return
            except Exception:  # noqa: BLE001, S110 - the database or its table is not there yet
                pass
            self._thread.join(0.1)
            assert not self._error, self._error
        raise AssertionError

    def error(self):
        self._thread.join(60)
        return self._error[0]
