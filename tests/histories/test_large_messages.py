"""Rows that were too large for Kafka, through whole replicas: claim-check objects, and placeholders that upstream's TiDB completes."""

import json
from base64 import b64encode
from dataclasses import replace

import cramjam
import lz4.frame
import pytest
import stamina

from applier.coordinator import Policy
from applier.model.errors import NeedsOperator, ProtocolError, SourceError
from applier.replica.quarantine_retry import QuarantineRetry
from applier.sinks.registry import open_sink
from applier.sinks.settings import SinkSettings
from applier.sources.claim_check.settings import ClaimCheckSettings
from applier.sources.claim_check.store import FsspecStore
from applier.sources.ticdc.large_row import WholeRowSources
from applier.upstream.row_lookup import TidbRowLookup
from applier.upstream.settings import UpstreamSettings
from tests.builders.handwritten import CREATE_SCHEMA, KEY, ONE, PLAIN, TWO, ddl, everywhere, log_of, resolved, rows_of
from tests.builders.wire import column, dump, head, record, text
from tests.rig.fake_source import FakeSource
from tests.rig.local_replica import sqlite_replica
from tests.rig.local_runner import LocalRunner
from tests.rig.s3 import s3_server
from tests.rig.tidb import tidb_server

pytestmark = pytest.mark.usefixtures("without_waiting")

CREATED = ddl(10, "CREATE TABLE orders (id BIGINT PRIMARY KEY, n INT, note TEXT)")
COLUMNS = {"id": "bigint(20)", "n": "int(11)", "note": "text"}


def whole(number, n, note="x"):
    return {"id": column(8, KEY, number), "n": column(3, PLAIN, n), "note": text(b64encode(note.encode()).decode(), t=252)}


def key(number):
    return {"id": column(8, KEY, number)}


def plain(ts, number, n, note="x"):
    return head(ts), {"u": whole(number, n, note)}


def stub(ts, member, *images):
    """A handle-key-only event: u, or u and p, or d."""
    return head(ts, ohk=True), dict(zip(member, images, strict=True))


def claim(ts, name, image, member="u"):
    return head(ts, ccl=f"s3://elsewhere/{name}"), {member: image}


def stored(directory, name, event, pack=bytes):
    key, value = record((event[0], pack(dump(event[1]))))
    content = {"key": b64encode(key).decode(), "value": b64encode(value).decode()}
    directory.mkdir(exist_ok=True)
    (directory / name).write_text(json.dumps(content))


def log(*rows, until=90):
    return log_of(*everywhere(CREATE_SCHEMA), *everywhere(CREATED), *rows, *everywhere(resolved(until)))


def source_of(records, claims=None, upstream=None):
    source = FakeSource(records)
    store = None if claims is None else FsspecStore(ClaimCheckSettings(storage=str(claims)))
    lookup = None if upstream is None else TidbRowLookup(UpstreamSettings(url=upstream.url))
    source.whole_rows = WholeRowSources(claims=store, lookup=lookup)
    return source


def test_an_object_store_that_restarts_is_waited_for_and_gives_the_rows(tmp_path):
    for number in range(3):
        stored(tmp_path / "objects", f"{number}.json", plain(20 + number, number, number, "of s3"))
    records = log(*((ONE, claim(20 + number, f"{number}.json", key(number))) for number in range(3)))
    source = FakeSource(records)
    with s3_server() as s3:
        settings = ClaimCheckSettings(storage=s3.storage, options=s3.options)
        source.whole_rows = WholeRowSources(claims=FsspecStore(settings))
        port = s3.port
    stamina.set_testing(True, attempts=3)
    replica = sqlite_replica(tmp_path, source)
    with pytest.raises(SourceError) as raised:  # the server has gone
        replica.catch_up()
    assert (raised.value.exit_code, raised.value.facts["kind"], raised.value.facts["offset"]) == (3, "unreachable", 2)
    with s3_server(port) as s3:
        for path in (tmp_path / "objects").iterdir():
            s3.put(path.name, path.read_bytes())
        replica.catch_up()
    assert rows_of(tmp_path) == [(number, number, "of s3") for number in range(3)]


@pytest.fixture
def upstream():
    with tidb_server() as server:
        server.create(10, "shop", "orders", COLUMNS, ["id"])
        yield server


# --- claim check -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pack", [bytes, lz4.frame.compress, lambda body: bytes(cramjam.snappy.compress_raw(body))])
def test_s15_objects_give_their_rows_compressed_or_not(tmp_path, pack):
    objects = tmp_path / "objects"
    for number in range(5):
        stored(objects, f"{number}.json", plain(20 + number, number, number, f"note {number}"), pack)
    stored(objects, "moved.json", (head(30), {"u": whole(11, 1), "p": whole(1, 1)}), pack)
    stored(objects, "gone.json", (head(31), {"d": whole(2, 2)}), pack)
    records = log(
        *[((ONE, TWO)[number % 2], claim(20 + number, f"{number}.json", key(number))) for number in range(5)],
        (ONE, (head(30, ccl="file:///x/moved.json"), {"u": key(11), "p": key(1)})),
        (ONE, claim(31, "gone.json", key(2), "d")),
        (TWO, plain(40, 3, 33)),
    )
    sqlite_replica(tmp_path, source_of(records, objects)).catch_up()
    assert rows_of(tmp_path) == [(0, 0, "note 0"), (3, 33, "x"), (4, 4, "note 4"), (11, 1, "x")]


def test_s15_a_missing_claim_check_object_stops_with_its_name(tmp_path):
    objects = tmp_path / "objects"
    stored(objects, "here.json", plain(20, 1, 1))
    records = log((ONE, claim(20, "here.json", key(1))), (ONE, claim(21, "gone.json", key(2))))
    replica = sqlite_replica(tmp_path, source_of(records, objects))
    with pytest.raises(ProtocolError) as raised:
        replica.catch_up()
    facts = raised.value.facts
    assert raised.value.exit_code == 3
    assert (facts["topic"], facts["partition"], facts["offset"], facts["table"], facts["commit_ts"]) == ("feed", 0, 3, "orders", 21)
    assert facts["object"] == f"{objects}/gone.json"
    assert "Restore it" in raised.value.remedy
    # The operator restores it, and the same record is read.
    stored(objects, "gone.json", plain(21, 2, 2))
    replica.catch_up()
    assert rows_of(tmp_path) == [(1, 1, "x"), (2, 2, "x")]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (plain(21, 3, 9), "its column id differs"),
        (plain(22, 2, 9), "its commit_ts differs"),
        (None, "the text is not JSON"),
        ((head(21), {"u": key(2)}), None),
    ],
)
def test_d36_an_object_that_is_another_rows_or_is_cut_is_refused_or_quarantined(tmp_path, content, reason):
    objects = tmp_path / "objects"
    stored(objects, "a.json", content or plain(21, 2, 9))
    if content is None:
        whole_object = (objects / "a.json").read_bytes()
        (objects / "a.json").write_bytes(whole_object[: len(whole_object) // 2])
    records = log((ONE, plain(20, 1, 1)), (ONE, plain(20, 2, 1)), (ONE, claim(21, "a.json", key(2))))
    replica = sqlite_replica(tmp_path, source_of(records, objects))
    if reason is None:  # a partial row: its other columns stay
        replica.catch_up()
        assert rows_of(tmp_path) == [(1, 1, "x"), (2, 1, "x")]
        return
    with pytest.raises(ProtocolError, match=reason):
        replica.catch_up()
    # In quarantine, the older version of the row is not taken for the final one.
    replace(replica, quarantines=frozenset({"unreadable"})).catch_up()
    assert rows_of(tmp_path) == [(1, 1, "x")]
    (entry,) = replica.quarantine().values()
    assert (entry.event.key, entry.event.commit_ts) == ("id=2", 21)


@pytest.mark.parametrize("location", ["../../etc/passwd", "s3://elsewhere/..", "s3://elsewhere/", "..\\\\..\\\\secret.json", ""])
def test_no_path_of_the_wire_is_followed(tmp_path, location):
    (tmp_path / "secret.json").write_text("{}")
    (tmp_path / "objects").mkdir()
    records = log((ONE, (head(20, ccl=location, ohk=True), {"u": key(1)})))
    with pytest.raises(ProtocolError) as raised:
        sqlite_replica(tmp_path, source_of(records, tmp_path / "objects")).catch_up()
    assert raised.value.facts["kind"] in {"claim_check", "handle_key_only"}
    assert str(tmp_path / "objects") in raised.value.facts.get("object", str(tmp_path / "objects"))


def test_a_storage_that_is_away_is_no_reason_for_a_quarantine(tmp_path):
    records = log((ONE, claim(20, "a.json", key(1))))
    replica = sqlite_replica(tmp_path, source_of(records, tmp_path / "not mounted"), quarantines=frozenset({"unreadable"}))
    with pytest.raises(SourceError) as raised:
        replica.catch_up()
    assert raised.value.facts["kind"] == "claim_check_storage"
    assert (raised.value.facts["offset"], replica.quarantine()) == (2, {})


def test_s15_without_a_storage_the_setting_is_named(tmp_path):
    with pytest.raises(ProtocolError) as raised:
        sqlite_replica(tmp_path, source_of(log((ONE, claim(20, "a.json", key(1)))))).catch_up()
    assert "source.claim_check.storage" in raised.value.remedy


# --- handle key only ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ahead_rows", [1, 10_000])
def test_placeholders_become_the_rows_of_upstream(tmp_path, upstream, ahead_rows):
    for number in range(60):
        upstream.write(20 + number, "shop", "orders", id=number, n=number, note=f"it's {number}")
    upstream.write(80, "shop", "orders", id=5, n=55, note=None)
    upstream.delete(81, "shop", "orders", 6)
    upstream.delete(82, "shop", "orders", 7)
    upstream.write(82, "shop", "orders", id=70, n=7, note="moved")
    upstream.write(83, "shop", "orders", id=8, n=88, note="plain")
    rows = [((ONE, TWO)[number % 2], stub(20 + number, "u", key(number))) for number in range(60)]
    rows += [
        (TWO, stub(80, "up", key(5), key(5))),
        (ONE, stub(81, "d", key(6))),
        (TWO, stub(82, "up", key(70), key(7))),
        (ONE, plain(83, 8, 88, "plain")),
    ]
    sqlite_replica(tmp_path, source_of(log(*rows), upstream=upstream), ahead_rows=ahead_rows).catch_up()
    expected = {number: (number, number, f"it's {number}") for number in range(60) if number not in {6, 7}}
    expected |= {5: (5, 55, None), 70: (70, 7, "moved"), 8: (8, 88, "plain")}
    assert rows_of(tmp_path) == sorted(expected.values())
    assert not any(" IN (6)" in asked.sql or "(8)" in asked.sql for asked in upstream.queries())


def test_a_segment_before_a_ddl_is_read_with_the_columns_before_it(tmp_path, upstream):
    upstream.write(20, "shop", "orders", id=1, n=1, note="before")
    upstream.create(40, "shop", "orders", COLUMNS | {"added": "int(11)"}, ["id"])
    upstream.write(50, "shop", "orders", id=2, n=2, note="after", added=7)
    records = log(
        (ONE, stub(20, "u", key(1))),
        *everywhere(ddl(40, "ALTER TABLE orders ADD COLUMN added INT", t=5)),
        (TWO, stub(50, "u", key(2))),
    )
    sqlite_replica(tmp_path, source_of(records, upstream=upstream)).catch_up()
    assert rows_of(tmp_path) == [(1, 1, "before", None), (2, 2, "after", 7)]


def test_a_table_that_was_dropped_since_is_read_as_it_was(tmp_path, upstream):
    upstream.write(20, "shop", "orders", id=1, n=1, note="a")
    upstream.tables["shop", "orders"].columns.append((60, None))
    records = log((ONE, stub(20, "u", key(1))), *everywhere(ddl(60, "ALTER TABLE orders COMMENT 'x'", t=5)))
    sqlite_replica(tmp_path, source_of(records, upstream=upstream)).catch_up()
    assert rows_of(tmp_path) == [(1, 1, "a")]


@pytest.mark.parametrize("ahead_rows", [1, 10_000])
def test_s16_without_an_address_no_placeholder_is_applied(tmp_path, ahead_rows):
    records = log((ONE, plain(20, 1, 1)), (ONE, stub(21, "u", key(1))))
    replica = sqlite_replica(tmp_path, source_of(records), ahead_rows=ahead_rows)
    with pytest.raises(ProtocolError) as raised:
        replica.catch_up()
    assert (raised.value.facts["kind"], raised.value.facts["offset"]) == ("handle_key_only", 3)
    assert "source.upstream" in raised.value.remedy
    # In quarantine, neither the placeholder nor the older version of the row is written.
    replace(replica, quarantines=frozenset({"unreadable"})).catch_up()
    assert rows_of(tmp_path) == []


@pytest.mark.parametrize("ahead_rows", [1, 10_000])
def test_d22_below_the_gc_horizon_an_operator_decides_and_nothing_is_written(tmp_path, upstream, ahead_rows):
    upstream.write(20, "shop", "orders", id=1, n=1, note="a")
    upstream.gc_below = 1_000
    replica = sqlite_replica(tmp_path, source_of(log((ONE, stub(20, "u", key(1)))), upstream=upstream), ahead_rows=ahead_rows)
    with pytest.raises(NeedsOperator) as raised:
        replica.catch_up()
    assert raised.value.exit_code == 6
    assert (raised.value.facts["code"], raised.value.facts["commit_ts"], raised.value.facts["offset"]) == (8055, 20, 2)
    assert rows_of(tmp_path) == []
    upstream.gc_below = 0
    replica.catch_up()
    assert rows_of(tmp_path) == [(1, 1, "a")]


@pytest.mark.parametrize("ahead_rows", [1, 10_000])
def test_a_row_that_upstream_lacks_stops_or_is_quarantined(tmp_path, upstream, ahead_rows):
    upstream.write(20, "shop", "orders", id=1, n=1, note="a")
    records = log((ONE, stub(20, "u", key(1))), (ONE, stub(21, "u", key(2))))
    replica = sqlite_replica(tmp_path, source_of(records, upstream=upstream), ahead_rows=ahead_rows)
    with pytest.raises(ProtocolError, match="no row with this key") as raised:
        replica.catch_up()
    assert (raised.value.facts["offset"], raised.value.facts["kind"]) == (3, "handle_key_only")
    replace(replica, quarantines=frozenset({"unreadable"})).catch_up()
    assert rows_of(tmp_path) == [(1, 1, "a")]
    assert [entry.event.key for entry in replica.quarantine().values()] == ["id=2"]


@pytest.mark.parametrize("ahead_rows", [1, 10_000])
def test_an_upstream_that_does_not_answer_is_an_error_of_the_source_and_the_next_run_continues(tmp_path, upstream, ahead_rows):
    upstream.write(20, "shop", "orders", id=1, n=1, note="a")
    upstream.before_each = lambda _sql: upstream.drop_connections()
    replica = sqlite_replica(tmp_path, source_of(log((ONE, stub(20, "u", key(1)))), upstream=upstream), ahead_rows=ahead_rows)
    with pytest.raises(SourceError) as raised:
        replica.catch_up()
    assert (raised.value.exit_code, raised.value.facts["kind"]) == (3, "unreachable")
    upstream.before_each = lambda _sql: None
    replica.catch_up()
    assert rows_of(tmp_path) == [(1, 1, "a")]


def test_rows_at_the_checkpoint_that_are_applied_again_are_looked_up_again(tmp_path, upstream):
    upstream.write(20, "shop", "orders", id=1, n=1, note="a")
    upstream.write(20, "shop", "orders", id=2, n=2, note="b")
    upstream.write(30, "shop", "orders", id=1, n=3, note="c")
    source = source_of(log((ONE, stub(20, "u", key(1))), until=20), upstream=upstream)
    replica = sqlite_replica(tmp_path, source)
    replica.catch_up()
    assert rows_of(tmp_path) == [(1, 1, "a")]
    source.extend(log_of((TWO, stub(20, "u", key(2))), (ONE, stub(30, "u", key(1))), *everywhere(resolved(40))))
    replica.catch_up()
    assert rows_of(tmp_path) == [(1, 3, "c"), (2, 2, "b")]


def retried(replica, place_of_entry):
    with open_sink(SinkSettings(url=replica.url, name=replica.name)) as sink:
        sink.acquire()
        return QuarantineRetry(replica.source, sink, "somebody").retry(place_of_entry)


def test_a_quarantined_large_row_is_applied_once_it_can_be_read(tmp_path, upstream):
    records = log((ONE, claim(20, "a.json", key(1))), (ONE, stub(21, "u", key(2))))
    replica = sqlite_replica(tmp_path, source_of(records), quarantines=frozenset({"unreadable"}))
    replica.catch_up()
    claimed, placeholder = (entry.event.position for _, entry in sorted(replica.quarantine().items()))
    stored(tmp_path / "objects", "a.json", plain(20, 1, 1, "from its object"))
    upstream.write(21, "shop", "orders", id=2, n=2, note="from upstream")
    replica.source = source_of(records, tmp_path / "objects", upstream)
    assert [retried(replica, place) for place in (claimed, placeholder)] == [1, 1]
    assert rows_of(tmp_path) == [(1, 1, "from its object"), (2, 2, "from upstream")]


def test_many_placeholders_are_prepared_by_several_tasks_since_their_rows_are_large(tmp_path, upstream, monkeypatch):
    plans = []
    apply = LocalRunner.apply
    monkeypatch.setattr(LocalRunner, "apply", lambda runner, plan, write_plan: plans.append(plan) or apply(runner, plan, write_plan))
    for number in range(400):
        upstream.write(20, "shop", "orders", id=number, n=1, note="x")
    few, many = (
        log(*((ONE, stub(20, "u", key(number))) for number in range(count)), *((TWO, plain(20, number, 1)) for number in range(count, 400)))
        for count in (10, 400)
    )
    for name, records in (("few", few), ("many", many)):
        (tmp_path / name).mkdir()
        replica = sqlite_replica(tmp_path / name, source_of(records, upstream=upstream), ahead_rows=10_000, policy=Policy())
        replica.catch_up()
        assert len(rows_of(tmp_path / name)) == 400
    assert [(plan.is_small, plan.bucket_splits) for plan in plans] == [(True, 1), (False, 2)]
