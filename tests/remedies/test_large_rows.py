"""Rows that were too large for Kafka: where their columns are is configured, restored or read after the remedy."""

import json
from base64 import b64encode
from contextlib import contextmanager
from pathlib import Path

import pytest
import stamina

from tests.builders.handwritten import KEY, resolved, row
from tests.builders.wire import column, head, integer_key, record, text
from tests.rig.s3 import s3_server
from tests.rig.tidb import tidb_server
from tests.rig.walked_feed import begun

PLACE, LIMIT = "source.claim_check.storage", "source.claim_check.max_object_size"


@pytest.fixture(autouse=True)
def no_waiting():
    stamina.set_testing(True, attempts=2)
    yield
    stamina.set_testing(False)


def stored(number=1, name="a.json"):
    """The object of a row, as the changefeed writes it."""
    key, value = record(row(21, id=column(3, KEY, number), note=text("large")))
    Path("objects").mkdir(exist_ok=True)
    Path("objects", name).write_text(json.dumps({"key": b64encode(key).decode(), "value": b64encode(value).decode()}))


@pytest.fixture
def feed(newcomer):
    """A replica whose next event is a row in claim-check storage."""
    made = begun(newcomer)
    made.write((head(21, ccl="s3://elsewhere/a.json"), {"u": {"id": integer_key(1)}}))
    made.everywhere(resolved(30))
    return made


@pytest.fixture
def goes_on(newcomer):
    def caught_up():
        newcomer.succeeds("catchup")
        assert newcomer.rows() == [(1, "large")]

    return caught_up


def test_the_storage_of_the_changefeed_is_set(newcomer, feed, goes_on):
    stored()
    newcomer.fails("catchup", 3, "its columns are in claim-check storage")
    newcomer.change({PLACE: "carrier://pigeon/objects"})
    newcomer.fails("catchup", 2, "unknown scheme")
    newcomer.change({PLACE: str(Path("nowhere").absolute())})
    newcomer.fails("catchup", 3, "the claim-check storage does not exist")
    newcomer.change({PLACE: str(Path("objects").absolute())})
    goes_on()


def test_an_object_is_restored_or_may_be_larger(newcomer, feed, goes_on):
    Path("objects").mkdir()
    newcomer.change({PLACE: str(Path("objects").absolute())})
    newcomer.fails("catchup", 3, "the claim-check object does not exist")
    stored(2)
    newcomer.fails("catchup", 3, "the claim-check object cannot be used")
    stored()
    Path("objects/a.json").write_bytes(Path("objects/a.json").read_bytes() + b" " * 70_000)
    newcomer.change({LIMIT: "64KiB"})
    newcomer.fails("catchup", 3, "is larger than source.claim_check.max_object_size")
    newcomer.change({LIMIT: "1MiB"})
    goes_on()


def test_a_row_that_is_lost_is_skipped(newcomer, feed):
    Path("objects").mkdir()
    newcomer.change({PLACE: str(Path("objects").absolute())})
    newcomer.follow(newcomer.fails("catchup", 3, "the claim-check object does not exist"), only="skip")
    # The row from upstream.
    newcomer.sql("INSERT INTO \"shop.orders\" VALUES (1, 'large')")
    newcomer.succeeds("catchup")
    assert newcomer.rows() == [(1, "large")]


def test_the_options_of_a_storage_are_corrected(newcomer, feed, goes_on):
    stored()
    with s3_server() as s3:
        s3.put("a.json", Path("objects/a.json").read_bytes())
        newcomer.change({PLACE: s3.storage, "source.claim_check.options": {"config_kwargs": "wrong"}})
        newcomer.fails("catchup", 2, "the options of the claim-check storage are wrong")
        newcomer.change({"source.claim_check.options": dict(s3.options)})
        goes_on()


@pytest.fixture
def key_alone(newcomer):
    """A replica whose next event is a row that upstream must be asked for."""
    feed = begun(newcomer)
    feed.write((head(21, ohk=True), {"u": {"id": integer_key(1)}}))
    feed.everywhere(resolved(30))


@contextmanager
def tidb(**types):
    with tidb_server() as server:
        server.create(10, "shop", "orders", types or {"id": "int(11)", "note": "varchar(20)"}, [next(iter(types), "id")])
        yield server


@pytest.fixture
def upstream(key_alone):
    with tidb() as server:
        server.write(21, "shop", "orders", id=1, note="large")
        yield server


def test_upstreams_tidb_is_set_where_large_rows_are_read(newcomer, upstream, goes_on):
    newcomer.fails("catchup", 3, "only its handle key was sent")
    newcomer.change({"source.upstream": upstream.url})
    goes_on()


def test_the_address_of_another_server_is_corrected(newcomer, upstream, goes_on):
    newcomer.change({"source.upstream": "mysql+pymysql://reader@127.0.0.1:1/"})
    newcomer.fails("catchup", 3, "upstream failed while")
    with tidb() as other:
        newcomer.change({"source.upstream": other.url})
        # A proxy between, which gives the snapshot to another session.
        other.before_each = lambda sql: setattr(other, "is_shared", "tidb_snapshot" in sql)
        newcomer.fails("catchup", 3, "has not taken the snapshot")
        other.before_each, other.is_shared = lambda _sql: None, False
        del other.variables["tidb_snapshot"]
        newcomer.fails("catchup", 2, "source.upstream is not a TiDB server")
    for wrong, code in ((tidb_server(), 6), (tidb(other="int(11)"), 6)):
        with wrong as other:
            newcomer.change({"source.upstream": other.url})
            newcomer.fails("catchup", code)
    with tidb(id="varchar(9)", note="varchar(20)") as other:
        other.write(21, "shop", "orders", id="x", note="large")
        other.write(21, "shop", "orders", id="1", note="large")
        newcomer.change({"source.upstream": other.url})
        newcomer.fails("catchup", 3, "does not fit")
    newcomer.change({"source.upstream": upstream.url})
    goes_on()


def test_the_user_of_upstream_is_granted_the_table(newcomer, upstream, goes_on):
    newcomer.change({"source.upstream": upstream.url})
    upstream.denied.add(("shop", "orders"))
    newcomer.fails("catchup", 3, "upstream refuses access")
    upstream.denied.clear()
    goes_on()


def test_a_row_that_upstream_has_no_longer_is_loaded_by_hand_and_skipped(newcomer, upstream):
    newcomer.change({"source.upstream": upstream.url})
    upstream.gc_below = 100
    said = newcomer.fails("catchup", 6, "upstream no longer has the rows of this time")
    newcomer.sql("INSERT INTO \"shop.orders\" VALUES (1, 'large')")
    newcomer.follow(said, only="skip")
    newcomer.succeeds("catchup")
    assert newcomer.rows() == [(1, "large")]


def test_a_row_that_upstream_does_not_have_is_skipped(newcomer, key_alone):
    with tidb() as server:
        newcomer.change({"source.upstream": server.url})
        newcomer.follow(newcomer.fails("catchup", 3, "upstream has no row with this key"), only="skip")
        newcomer.succeeds("catchup")
    assert newcomer.rows() == []


def test_a_column_of_a_type_that_tidb_lacks_is_left_out_of_the_changefeed(newcomer):
    feed = begun(newcomer)
    feed.write(row(21, id=column(3, KEY, 1), note=text("x"), area=column(255, 0, "AAAA")))
    feed.everywhere(resolved(22))
    refused = newcomer.fails("catchup", 3, "GEOMETRY")
    # The changefeed sends no such column any more.
    feed.write(row(23, id=column(3, KEY, 1), note=text("large")))
    feed.everywhere(resolved(30))
    newcomer.follow(refused, only="skip")
    newcomer.succeeds("catchup")
    assert newcomer.rows() == [(1, "large")]
