"""A BLOB about as large as the server takes in one statement is stored; a larger one is refused by name, and nothing else is."""

from base64 import b64encode
from collections.abc import Iterator
from hashlib import md5

import pytest

from applier.model.errors import RowRefused
from tests.builders.handwritten import KEY, ONE, TWO, log_of, resolved, row
from tests.builders.wire import column
from tests.integration.mysql_replica import read, run
from tests.rig.clean_server import clean_server
from tests.rig.fake_source import FakeSource
from tests.rig.local_replica import Replica

LONGBLOB, NULLABLE_BYTES = 251, 65
SCHEMA = "shop"
FRAME = 1_000
"""More than a statement holds beside its values."""

pytestmark = pytest.mark.usually_on("mariadb", reason="its max_allowed_packet is smaller, so its rows are made faster")


@pytest.fixture
def url(mysql_url: str) -> Iterator[str]:
    clean_server(mysql_url, SCHEMA)
    run(mysql_url, f"CREATE SCHEMA {SCHEMA}", f"CREATE TABLE {SCHEMA}.orders (id INT PRIMARY KEY, v LONGBLOB)")
    yield mysql_url
    clean_server(mysql_url, SCHEMA)


def replica_of(url, *blobs, **more):
    images = [(ONE, row(20, id=column(3, KEY, number), v=column(LONGBLOB, NULLABLE_BYTES, text))) for number, text in enumerate(blobs)]
    return Replica(url, FakeSource(log_of(*images, (ONE, resolved(30)), (TWO, resolved(30)))), **more)


def blob_of(size):
    data = (bytes(range(256)) * (size // 256 + 1))[:size]
    return data, b64encode(data).decode()


def test_a_blob_of_three_quarters_of_max_allowed_packet_is_stored(url):
    [(packet,)] = read(url, "SELECT @@max_allowed_packet")
    data, text = blob_of((packet - FRAME) // 4 * 3)
    small = bytes(range(256))
    replica_of(url, text, b64encode(small).decode()).catch_up()
    assert read(url, f"SELECT id, LENGTH(v), MD5(v) FROM {SCHEMA}.orders ORDER BY id") == [
        (0, len(data), md5(data, usedforsecurity=False).hexdigest()),
        (1, len(small), md5(small, usedforsecurity=False).hexdigest()),
    ]


def test_a_larger_blob_is_refused_by_name_and_can_be_quarantined(url):
    [(packet,)] = read(url, "SELECT @@max_allowed_packet")
    _, text = blob_of(packet // 4 * 3 + FRAME)
    with pytest.raises(RowRefused, match="larger than the sink's max_allowed_packet") as caught:
        replica_of(url, text, "AA==").catch_up()
    assert {"table": "shop.orders", "commit_ts": 20, "max_packet_bytes": packet}.items() <= caught.value.facts.items()
    assert "Raise max_allowed_packet" in caught.value.remedy
    replica_of(url, text, "AA==", quarantines=frozenset({"rejected"})).catch_up()
    assert read(url, f"SELECT id, HEX(v) FROM {SCHEMA}.orders") == [(1, "00")]
