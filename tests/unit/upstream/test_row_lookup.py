"""Rows are looked up in upstream as of a timestamp, exactly, many at a time, whatever its server does meanwhile."""

import pickle
import struct

import pytest
import stamina

from applier.model.errors import ConfigError, NeedsOperator, SourceError
from applier.model.events import ColumnShape, KnownKeys, Shape, TableName
from applier.sources.open_protocol import image_decoder
from applier.sources.open_protocol.image_codec import encode_image
from applier.upstream import row_lookup
from applier.upstream.row_lookup import TidbRowLookup
from applier.upstream.settings import UpstreamSettings
from tests.rig.tidb import tidb_server

PLACEHOLDER = Shape("shop", "orders", (ColumnShape("id", 8),), KnownKeys(handle=("id",)), placeholder=True)
TYPES = {
    "id": "bigint(20)", "tiny": "tinyint(3) unsigned", "big": "bigint(20) unsigned", "year": "year(4)", "f": "float", "d": "double",
    "price": "decimal(65,30)", "state": "enum('a','b')", "marks": "set('x','y')", "bits": "bit(64)", "at": "timestamp(6)", "day": "date",
    "long": "time(3)", "name": "varchar(20)", "char": "char(3)", "raw": "varbinary(300)", "fixed": "binary(4)", "blob": "longblob",
    "text": "mediumtext", "json": "json", "vector": "vector(2)", "virtual": "int(11)|virtual",
    "stored": "int(11)|stored",
}  # fmt: skip
ROW = {
    "id": 1, "tiny": 255, "big": 2**64 - 1, "year": 2155, "f": 0.1, "d": 1e-300, "price": "-0." + "1" * 30, "state": 2, "marks": 3,
    "bits": 2**64 - 1, "at": "2026-11-22 01:02:03.000004", "day": "0000-00-00", "long": "-838:59:59.000", "name": "it's \\ \U0001f600",
    "char": "é", "raw": bytes(range(256)), "fixed": b"a\0\0\0", "blob": b"\xff\0'", "text": "t", "json": '{"a": 1}', "vector": "[1,2.5]",
    "virtual": 7, "stored": 8,
}  # fmt: skip


@pytest.fixture(autouse=True)
def no_waiting():
    stamina.set_testing(True, attempts=3)
    yield
    stamina.set_testing(False)


@pytest.fixture
def upstream():
    with tidb_server() as server:
        server.create(1, "shop", "orders", TYPES, ["id"])
        yield server


def lookup_of(server, **more):
    return pickle.loads(pickle.dumps(TidbRowLookup(UpstreamSettings(url=server.url, **more))))  # noqa: S301 - our own bytes


def looked_up(server, keys, ts, shape=PLACEHOLDER, **more):
    """The rows that were found, by their place, as columns by name."""
    rows = {}
    for part in lookup_of(server, **more).rows(shape, keys, ts):
        names = [column.name for column in part.shape.columns]
        rows |= {place: dict(zip(names, values, strict=True)) for place, values in zip(part.found, part.rows, strict=True)}
    return rows


def test_every_type_comes_as_the_value_that_the_wire_would_have(upstream):
    upstream.write(10, "shop", "orders", **ROW)
    upstream.write(11, "shop", "orders", **dict.fromkeys(ROW) | {"id": 2})
    expected = {name: value for name, value in ROW.items() if name != "virtual"}
    assert looked_up(upstream, [[1], [2]], 20) == {0: expected, 1: dict.fromkeys(expected) | {"id": 2}}


def test_what_was_read_goes_through_an_image_unchanged(upstream):
    upstream.write(10, "shop", "orders", **ROW | {"name": b"\xff broken".decode("utf-8", "surrogateescape")})
    upstream.write(11, "shop", "orders", **dict.fromkeys(ROW) | {"id": 2})
    for part in lookup_of(upstream).rows(PLACEHOLDER, [[1], [2]], 20):
        for values in part.rows:
            assert tuple(image_decoder(part.shape)(encode_image(part.shape, values))) == tuple(values)


def test_a_shape_tells_what_the_wire_would_tell(upstream):
    upstream.tables["shop", "orders"].unique["by_name"] = ("name", "state")
    upstream.write(10, "shop", "orders", **ROW)
    (part,) = lookup_of(upstream).rows(PLACEHOLDER, [[1]], 20)
    columns = {column.name: column for column in part.shape.columns}
    assert part.shape.keys == KnownKeys(handle=("id",), primary=("id",), unique=("state", "name"), identifying=("id",))
    assert [name for name, column in columns.items() if column.is_bytes] == ["raw", "fixed", "blob"]
    assert [name for name, column in columns.items() if column.is_unsigned] == ["tiny", "big"]
    assert [name for name, column in columns.items() if column.is_generated] == ["stored"]
    assert not part.shape.placeholder


def test_rows_are_those_of_the_snapshot(upstream):
    upstream.write(10, "shop", "orders", **ROW)
    upstream.write(20, "shop", "orders", **ROW | {"name": "new"})
    upstream.delete(30, "shop", "orders", 1)
    assert [looked_up(upstream, [[1]], ts).get(0, {}).get("name") for ts in (9, 10, 19, 20, 29, 30)] == [
        None, ROW["name"], ROW["name"], "new", "new", None,
    ]  # fmt: skip


def test_a_thousand_rows_take_few_statements_and_large_ones_more(upstream, monkeypatch):
    for number in range(1000):
        upstream.write(10, "shop", "orders", id=number, name="x" * 10)
    assert len(looked_up(upstream, [[number] for number in range(1000)], 20)) == 1000
    assert len(upstream.queries()) < 10
    upstream.asked.clear()
    monkeypatch.setattr(row_lookup, "PART_BYTES", 100)
    assert len(looked_up(upstream, [[number] for number in range(100)], 20)) == 100
    assert 10 < len(upstream.queries()) < 60


@pytest.mark.parametrize("key", ["it's", "\\", "`", "a\0b", "é", "'; DROP TABLE orders; --", "\U0001f600"])
def test_d22_keys_and_names_are_quoted(upstream, key):
    upstream.create(1, "sh`op", "or'ders", {"na`me": "varchar(30)", "raw": "varbinary(9)", "n": "int(11)"}, ["na`me", "raw"])
    upstream.write(10, "sh`op", "or'ders", **{"na`me": key, "raw": b"\xff'\\", "n": 7})
    upstream.write(10, "sh`op", "or'ders", **{"na`me": "other", "raw": b"", "n": 8})
    columns = ColumnShape("na`me", 15), ColumnShape("raw", 15, is_bytes=True)
    shape = Shape("sh`op", "or'ders", columns, KnownKeys(handle=("na`me", "raw")), placeholder=True)
    assert looked_up(upstream, [[key, b"\xff'\\"], ["absent", b""]], 20, shape) == {0: {"na`me": key, "raw": b"\xff'\\", "n": 7}}


def test_a_routed_table_is_read_under_upstreams_name(upstream):
    upstream.write(10, "shop", "orders", **ROW)
    routed = PLACEHOLDER._replace(schema="archive", table="copies", routed_from=TableName("shop", "orders"))
    (part,) = lookup_of(upstream).rows(routed, [[1]], 20)
    assert (part.shape.schema, part.shape.table) == ("archive", "copies")


def test_below_the_gc_horizon_an_operator_must_decide(upstream):
    upstream.write(10, "shop", "orders", **ROW)
    upstream.gc_below = 16
    with pytest.raises(NeedsOperator) as raised:
        looked_up(upstream, [[1]], 15)
    assert (raised.value.facts["code"], raised.value.facts["snapshot"]) == (8055, 15)
    assert "tidb_gc_life_time" in raised.value.remedy


def test_the_horizon_may_pass_the_snapshot_while_rows_are_read(upstream):
    for number in range(40):
        upstream.write(10, "shop", "orders", id=number)

    def pass_it(sql):
        if len(upstream.queries()) == 2:
            upstream.gc_below = 16

    upstream.before_each = pass_it
    with pytest.raises(NeedsOperator):
        looked_up(upstream, [[number] for number in range(40)], 15)


def test_a_lost_connection_is_opened_again_and_no_row_comes_twice(upstream):
    for number in range(200):
        upstream.write(10, "shop", "orders", id=number, name=str(number))
    cut = iter([2, 4])
    next_cut = [next(cut)]

    def drop(_sql):
        if len(upstream.queries()) == next_cut[0]:
            next_cut[0] = next(cut, 0)
            upstream.drop_connections()

    upstream.before_each = drop
    places = [place for part in lookup_of(upstream).rows(PLACEHOLDER, [[n] for n in range(200)], 20) for place in part.found]
    assert places == list(range(200))


def test_an_upstream_that_stays_away_is_unreachable(upstream):
    upstream.before_each = lambda _sql: upstream.drop_connections()
    with pytest.raises(SourceError) as raised:
        looked_up(upstream, [[1]], 20)
    assert raised.value.facts["kind"] == "unreachable"
    assert "source.upstream" in raised.value.remedy


def test_nobody_listens(upstream):
    settings = UpstreamSettings(url="mysql+pymysql://reader@127.0.0.1:1/")
    with pytest.raises(SourceError) as raised:
        list(TidbRowLookup(settings).rows(PLACEHOLDER, [[1]], 20))
    assert raised.value.facts["kind"] == "unreachable"


def test_a_wrong_user_and_a_missing_privilege_are_not_retried(upstream):
    wrong = TidbRowLookup(UpstreamSettings(url=upstream.url.replace("reader@", "nobody:hush@")))
    with pytest.raises(SourceError) as raised:
        list(wrong.rows(PLACEHOLDER, [[1]], 20))
    assert raised.value.facts["kind"] == "upstream"
    assert "hush" not in str(raised.value)
    upstream.denied.add(("shop", "orders"))
    with pytest.raises(SourceError) as raised:
        looked_up(upstream, [[1]], 20)
    assert (raised.value.facts["kind"], raised.value.facts["code"]) == ("upstream", 1142)
    assert "grant the user SELECT" in raised.value.remedy


def test_a_table_that_upstream_lacks_at_the_snapshot_is_named(upstream):
    with pytest.raises(NeedsOperator, match="no such table"):
        looked_up(upstream, [[1]], 20, PLACEHOLDER._replace(table="absent"))
    with pytest.raises(NeedsOperator, match="no such table"):
        looked_up(upstream, [[1]], 0)


@pytest.mark.parametrize(
    ("types", "row"), [({"id": "varchar(9)"}, {"id": "1"}), ({"id": "bigint(20)", "n": "int(11)"}, {"id": 1, "n": "x"})]
)
def test_another_cluster_whose_types_differ_is_an_error_of_the_source(upstream, types, row):
    upstream.create(1, "shop", "other", types, ["id"])
    upstream.write(10, "shop", "other", **row)
    with pytest.raises(SourceError, match="does not fit") as raised:
        looked_up(upstream, [[1]], 20, PLACEHOLDER._replace(table="other"))
    assert (raised.value.facts["kind"], raised.value.facts["table"]) == ("upstream", "shop.other")


def test_a_server_that_is_not_tidb_is_refused(upstream):
    del upstream.variables["tidb_snapshot"]
    with pytest.raises(ConfigError) as raised:
        looked_up(upstream, [[1]], 20)
    assert raised.value.facts["key"] == "source.upstream"


def test_d22_no_session_keeps_its_snapshot(upstream):
    upstream.write(10, "shop", "orders", **ROW)
    looked_up(upstream, [[1]], 20)
    assert [asked.sql for asked in upstream.asked][-1] == "SET SESSION tidb_snapshot = ''"
    upstream.asked.clear()
    parts = lookup_of(upstream).rows(PLACEHOLDER, [[number] for number in range(100)], 20)
    next(parts)
    parts.close()  # as a task that fails between two parts
    assert [asked.sql for asked in upstream.asked][-1] == "SET SESSION tidb_snapshot = ''"


def test_timestamps_come_in_the_zone_of_the_wire(upstream):
    upstream.write(10, "shop", "orders", **ROW)
    looked_up(upstream, [[1]], 20, time_zone="+08:00")
    set_ones = [asked.sql for asked in upstream.asked if "time_zone = " in asked.sql]
    assert set_ones == ["SET SESSION time_zone = '+08:00'"]


def test_a_proxy_that_shares_sessions_is_noticed(upstream):
    upstream.variables |= dict.fromkeys(("time_zone",), "x")
    upstream.is_shared = True
    with pytest.raises(SourceError) as raised:
        looked_up(upstream, [[1]], 20)
    assert "not through a proxy" in raised.value.remedy


def test_a_proxy_that_shares_sessions_may_show_in_the_snapshot_only(upstream):
    upstream.before_each = lambda sql: setattr(upstream, "is_shared", "tidb_snapshot" in sql)
    with pytest.raises(SourceError, match="has not taken the snapshot"):
        looked_up(upstream, [[1]], 20)


@pytest.mark.parametrize(
    ("types", "message"),
    [({"id": "bigint(20)", "place": "geometry"}, "unsupported type"), ({"other": "int(11)"}, "lacks columns of the handle key")],
)
def test_a_table_that_no_changefeed_would_send_needs_an_operator(upstream, types, message):
    upstream.create(1, "shop", "other", types, [next(iter(types))])
    with pytest.raises(NeedsOperator, match=message):
        looked_up(upstream, [[1]], 20, PLACEHOLDER._replace(table="other"))


def test_a_key_that_no_statement_can_hold_names_the_limit(upstream):
    upstream.variables["max_allowed_packet"] = "1024"
    upstream.create(1, "shop", "other", {"id": "varchar(5000)"}, ["id"])
    shape = Shape("shop", "other", (ColumnShape("id", 15),), KnownKeys(handle=("id",)), placeholder=True)
    with pytest.raises(SourceError, match="a key is larger than upstream's max_allowed_packet") as raised:
        looked_up(upstream, [["x" * 2000]], 20, shape)
    assert "max_allowed_packet" in raised.value.remedy


@pytest.mark.parametrize("number", [0.1, 0.3, 16777216.0, 8388609.0, 3.4028235e38, 1.1754944e-38, 1e-45, -123456.79, 0.0, 9.999999e9])
def test_a_float_comes_with_the_fewest_digits_that_are_the_same_float(upstream, number):
    stored = struct.unpack("<f", struct.pack("<f", number))[0]
    upstream.write(10, "shop", "orders", id=1, f=stored)
    assert repr(looked_up(upstream, [[1]], 20)[0]["f"]) == repr(number)


def test_nothing_asked_opens_no_session(upstream):
    assert looked_up(upstream, [], 20) == {}
    assert upstream.asked == []
