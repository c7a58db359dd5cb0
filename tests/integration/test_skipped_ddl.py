"""``applier skip`` on a DDL that a server has refused after its intent was written: settled as skipped, for its copies and replays too."""

from uuid import uuid4

import pytest

from applier.cli.main import run as run_command
from applier.demo.simulator.kafka_log import produce_log
from applier.model.errors import FatalSinkError
from applier.model.position import Stream
from applier.sinks.ledger_entry import DdlState
from applier.sources.factory import open_source
from applier.sources.kafka.settings import KafkaSettings
from tests.builders.handwritten import CREATE_SCHEMA, KEY, ONE, ddl, everywhere, log_of, resolved, row
from tests.builders.wire import column
from tests.integration.mysql_replica import read
from tests.rig.clean_server import clean_server
from tests.rig.local_replica import Replica

NAME = "skipping"
REFUSED = ddl(20, "ALTER TABLE orders ADD COLUMN x NO_SUCH_TYPE", t=5)


@pytest.fixture
def url(mysql_url, least_privileged_url):
    clean_server(mysql_url, "shop")
    yield least_privileged_url
    clean_server(mysql_url, "shop")


@pytest.mark.parametrize("by", ["place", "timestamp"])
def test_a_refused_ddl_is_settled_as_skipped(by, url, mysql_url, mock_kafka, tmp_path, capsys):
    topic = f"skipped-{uuid4().hex[:8]}"
    rows = (ONE, row(30, id=column(3, KEY, 1)))
    created = ddl(10, "CREATE TABLE orders (id INT PRIMARY KEY)")
    log = log_of(
        *everywhere(CREATE_SCHEMA), *everywhere(created), *everywhere(REFUSED), rows, *everywhere(REFUSED), *everywhere(resolved(40))
    )
    produce_log([each._replace(stream=Stream(topic, each.stream.partition)) for each in log], mock_kafka)
    config = tmp_path / "applier.toml"
    config.write_text(f'name = "{NAME}"\n[source]\nbootstrap_servers = "{mock_kafka}"\ntopics = ["{topic}"]\n[sink]\nurl = "{url}"\n')
    with open_source(KafkaSettings(bootstrap_servers=mock_kafka, topics=(topic,), group_id=NAME)) as source:
        replica = Replica(url, source, name=NAME)
        with pytest.raises(FatalSinkError) as caught:
            replica.catch_up()
        assert (caught.value.facts["topic"], caught.value.facts["partition"], caught.value.facts["offset"]) == (topic, 0, 2)
        assert [entry.state for entry in replica.ledger()][-1] is DdlState.INTENT
        which = ["--stream", f"{topic}/0", "--offset", "2"] if by == "place" else ["--ts", "20"]
        assert run_command(["skip", "--config", str(config), *which]) == 0, capsys.readouterr().err
        replica.catch_up()
        assert [entry.state for entry in replica.ledger()][-1] is DdlState.SKIPPED
        assert len(replica.ledger()) == 3
    assert read(mysql_url, "SELECT * FROM shop.orders") == [(1,)]
