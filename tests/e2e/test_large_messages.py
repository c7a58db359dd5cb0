"""The program reads large rows where its configuration says: claim-check objects in an S3-compatible store, others in upstream's TiDB."""

import json
from base64 import b64encode
from uuid import uuid4

import pytest

from applier.demo.simulator.kafka_log import produce_log
from applier.model.position import Stream
from tests.builders.handwritten import CREATE_SCHEMA, KEY, ddl, log_of, resolved, rows_of
from tests.builders.wire import column, head, record, text
from tests.rig.program import run, write_config
from tests.rig.s3 import OPTIONS, s3_server
from tests.rig.tidb import tidb_server

pytestmark = pytest.mark.slow

PARTITIONS = 4
SECRET = OPTIONS["secret"]


def test_large_rows_come_from_an_object_store_and_from_upstream(tmp_path, mock_kafka):
    topic = f"large-{uuid4().hex[:8]}"
    streams = [Stream(topic, partition) for partition in range(PARTITIONS)]
    created = ddl(10, "CREATE TABLE orders (id BIGINT PRIMARY KEY, note VARCHAR(100))")
    key, value = record((head(20), {"u": {"id": column(8, KEY, 1), "note": text("from its object")}}))
    claim = head(20, ccl="s3://of-the-producer/a.json"), {"u": {"id": column(8, KEY, 1)}}
    stub = head(21, ohk=True), {"u": {"id": column(8, KEY, 2)}}
    placed = [(stream, event) for event in (CREATE_SCHEMA, created) for stream in streams]
    placed += [(streams[0], claim), (streams[1], stub), *((stream, resolved(90)) for stream in streams)]
    produce_log(log_of(*placed), mock_kafka)
    with s3_server() as s3, tidb_server("of-the-reader") as upstream:
        s3.put("a.json", json.dumps({"key": b64encode(key).decode(), "value": b64encode(value).decode()}).encode())
        upstream.create(10, "shop", "orders", {"id": "bigint(20)", "note": "varchar(100)"}, ["id"])
        upstream.write(21, "shop", "orders", id=2, note="from upstream")
        (tmp_path / "tidb-password").write_text("of-the-reader\n")
        settings = [
            f'[source.claim_check]\nstorage = "{s3.storage}"',
            f'[source.claim_check.options]\nendpoint_url = "{s3.endpoint}"\nkey = "{OPTIONS["key"]}"',
        ]
        config = write_config(tmp_path, servers=mock_kafka, url=f"sqlite:///{tmp_path}/replica.db", topics=[topic])
        config.write_text(config.read_text() + "\n" + "\n".join(settings))
        environment = {
            "APPLIER_SOURCE__CLAIM_CHECK__OPTIONS__SECRET": SECRET,
            "APPLIER_SOURCE__UPSTREAM": upstream.url,
            "APPLIER_SOURCE__UPSTREAM_PASSWORD_FILE": str(tmp_path / "tidb-password"),
        }
        ended = run(config, **environment)
    assert ended.code == 0, ended.stderr
    assert rows_of(tmp_path) == [(1, "from its object"), (2, "from upstream")]
    assert SECRET not in ended.stdout + ended.stderr
    assert "of-the-reader" not in ended.stdout + ended.stderr
