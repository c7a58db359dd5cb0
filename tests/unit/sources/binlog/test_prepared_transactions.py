"""XA transactions that are prepared and not committed: the sink keeps them, so that the server may purge the files that hold them."""

import struct

import pytest

from applier.model.errors import Remedy, RetryableSinkError, SourceError
from applier.model.range_report import RangeId
from applier.sources.binlog import content, event_stream, reader, xa_keeper
from applier.sources.binlog import event_stream as kinds
from applier.sources.binlog.content import GroupContent
from applier.sources.binlog.event_stream import BinlogEvent
from applier.sources.binlog.group import Group, GroupKind
from applier.sources.binlog.part import PartKind, decode_head
from applier.sources.binlog.position import STREAM, BinlogPosition
from applier.sources.binlog.reader import BinlogRangeReader, Log
from applier.sources.binlog.refusal import refused
from applier.sources.binlog.settings import BinlogSettings
from applier.sources.binlog.xa_keeper import XaKeeper
from applier.sources.binlog.xa_rows import KeptTransactions, XaRows
from tests.builders.binlog import BASE, BinlogBytes, LogInMemory

SETTINGS = BinlogSettings(url="mysql+pymysql://nobody@nowhere/")
LOG = Log(SETTINGS, BASE, {}, "")


class Store:
    """A ``XaStore`` and its reader in memory."""

    def __init__(self):
        self.kept, self.writes, self.reads, self.error = {}, [], 0, None

    @property
    def reader(self):
        return self

    def sizes(self):
        return {place: sum(map(len, pieces)) for place, pieces in self.kept.items()}

    def keep(self, place, pieces):
        self.kept[place] = list(pieces)
        self.writes.append(place)

    def forget(self, places):
        for place in places:
            self.kept.pop(place, None)

    def read(self, place):
        self.reads += 1
        if self.error is not None:
            raise self.error
        yield from self.kept.get(place, ())


class Purged(LogInMemory):
    """A server that has purged what came before its last file."""

    def __call__(self, settings, server, file, position):
        if file == f"{BASE}.000001":
            raise refused(b"\xff" + (1236).to_bytes(2, "little") + b"#HY000" + b"Could not find first log file name", file)
        return super().__call__(settings, server, file, position)


@pytest.fixture(autouse=True)
def _nothing_is_in_memory(monkeypatch):
    for module in (reader, xa_keeper):
        monkeypatch.setattr(module, "PREPARED", XaRows(0))
    monkeypatch.setattr(reader, "_PAUSES_S", (0.0,))
    yield
    reader.IDLE.close()


@pytest.fixture(params=["mariadb", "mysql"])
def log(request):
    return BinlogBytes(is_mariadb=request.param == "mariadb").description()


@pytest.fixture
def serve(monkeypatch):
    def to(server):
        monkeypatch.setattr(event_stream, "Dump", server)
        return server

    return to


def xid_of(name):
    return f"X'{name.encode().hex()}',X'62',3"


def prepare(log, number, name, *rows):
    """Prepare a transaction; return where."""
    place = log.place
    log.gtid(number, flags=64 if log.is_mariadb else 0, more=struct.pack("<iBB", 3, len(name), 1) + name.encode() + b"b")
    if not log.is_mariadb:
        log.query(f"XA START {xid_of(name)}")
    log.table_map(1)
    for row in rows:
        log.rows(1, row)
    log.query(f"XA END {xid_of(name)}").add(kinds.XA_PREPARE, struct.pack("<Biii", 0, 3, len(name), 1) + name.encode() + b"b")
    return place


def commit(log, number, name):
    log.gtid(number, flags=1).query(f"XA COMMIT {xid_of(name)}")


def rows_of(places, store, ranges, log):
    reading = BinlogRangeReader(SETTINGS, BASE, places, "", log.skipped, KeptTransactions(frozenset(store.kept), store))
    found = []
    for _, records in reading.read([RangeId(STREAM, *each) for each in ranges]):
        if isinstance(records, SourceError):
            raise records
        found += [record.value for record in records if decode_head(record.key).kind == PartKind.ROWS]
    return found


def keeper_of(store, place=0, whole=()):
    return XaKeeper.resumed(store, LOG, place, whole)


def test_rows_of_a_prepared_transaction_are_read_from_the_sink_when_the_server_has_purged_their_file(log, serve):
    begin = prepare(log, 1, "x1", b"a", b"b" * 3000)
    log.rotate(2).description()
    middle = log.place
    commit(log, 2, "x1")
    serve(LogInMemory(log))
    places, store = {xid_of("x1"): (begin,)}, Store()
    expected = rows_of(places, store, [(middle, log.place)], LOG)
    keeper = keeper_of(store)
    assert keeper.keep({xid_of("x1"): begin}) == [xid_of("x1")]
    assert keeper.kept == KeptTransactions(frozenset({begin}), store)
    serve(Purged(log))
    assert rows_of(places, store, [(middle, log.place)], LOG) == expected
    assert store.reads == 1
    store.kept.clear()
    with pytest.raises(SourceError, match="has no binlog from this position on"):
        rows_of(places, store, [(middle, log.place)], LOG)


def test_a_transaction_of_a_server_that_is_not_followed_any_more_and_that_is_not_kept_is_refused(log, serve):
    log.rotate(2).description()
    middle = log.place
    commit(log, 2, "x1")
    serve(LogInMemory(log))
    behind = BinlogPosition(1, 0, 0).number
    with pytest.raises(SourceError, match="was prepared before the replica began"):
        rows_of({xid_of("x1"): (7,)}, Store(), [(behind + middle, behind + log.place)], LOG)


def test_transactions_that_lie_near_one_another_are_read_over_one_connection_and_kept_once(log, serve):
    places = {}
    for number in range(5):
        places[xid_of(f"x{number}")] = prepare(log, 2 * number, f"x{number}", bytes((number,)) * 50)
        log.transaction(2 * number + 1, b"of another")
    server, store = serve(LogInMemory(log)), Store()
    keeper = keeper_of(store)
    assert keeper.keep(places) == sorted(places)
    assert keeper.keep(places) == sorted(places)
    assert len(server.dumps) == 1
    assert store.writes == sorted(places.values())
    keeper.forget_all_but({places[xid_of("x3")]})
    assert store.kept.keys() == keeper.kept.positions == {places[xid_of("x3")]}


def test_transactions_far_from_one_another_are_read_over_another_connection(log, serve, monkeypatch):
    monkeypatch.setattr(xa_keeper, "NEAR_BYTES", 100)
    places = {xid_of("x0"): prepare(log, 1, "x0", b"a")}
    log.transaction(2, b"of another" * 50)
    places[xid_of("x1")] = prepare(log, 3, "x1", b"b")
    server = serve(LogInMemory(log))
    assert keeper_of(Store()).keep(places) == sorted(places)
    assert len(server.dumps) == 2


def test_what_a_run_has_died_over_is_written_again_and_what_is_settled_is_deleted(log, serve):
    old, begin = 7, prepare(log, 1, "x1", b"a")
    later = log.place
    serve(LogInMemory(log))
    store = Store()
    store.kept = {old: [b"settled"], begin: [b"half"], later: [b"a successor's"]}
    keeper = keeper_of(store, begin)
    assert (old in store.kept, later in store.kept) == (False, True)
    assert keeper.kept.positions == frozenset()
    keeper.keep({xid_of("x1"): begin})
    assert store.kept[begin] != [b"half"]
    again = keeper_of(store, log.place + 1, {begin})
    assert again.kept.positions == {begin} == store.kept.keys()
    assert again.keep({xid_of("x1"): begin}) == [xid_of("x1")]
    assert store.writes == [begin]


@pytest.mark.parametrize(("limit", "kept"), [("MOST_BYTES", ["x0", "x2"]), ("MOST_BYTES_IN_ALL", ["x0"])])
def test_transactions_that_are_too_large_are_not_kept_and_not_read_again(log, serve, monkeypatch, limit, kept):
    places = {xid_of(f"x{number}"): prepare(log, number, f"x{number}", b"a" * size) for number, size in enumerate((100, 1000, 150))}
    server, store = serve(LogInMemory(log)), Store()
    monkeypatch.setattr(xa_keeper, limit, 300)
    keeper = keeper_of(store)
    for _ in range(2):
        assert keeper.keep(places) == [xid_of(name) for name in kept]
    assert len(server.dumps) == 1


def test_what_is_purged_already_or_lies_on_another_server_is_not_kept(log, serve):
    begin = prepare(log, 1, "x1", b"a")
    serve(Purged(log))
    earlier = BinlogPosition(0, 3, 4).number
    assert keeper_of(Store()).keep({xid_of("x1"): begin}) == []
    other = XaKeeper(Store(), LOG, 1, {})
    assert other.keep({xid_of("x2"): earlier}) == []


def test_a_server_that_is_away_stops_the_keeping(log, serve):
    begin = prepare(log, 1, "x1", b"a")
    serve(LogInMemory(log, lost_after=[30]))
    keeper = keeper_of(Store())
    with pytest.raises(SourceError) as lost:
        keeper.keep({xid_of("x1"): begin})
    assert lost.value.facts["kind"] == "unreachable"
    assert keeper.keep({xid_of("x1"): begin}) == [xid_of("x1")]


def test_a_sink_that_does_not_answer_is_unreachable():
    store = Store()
    store.error = RetryableSinkError("connection lost", remedy=Remedy("test.remedy", "Start the database"))
    with pytest.raises(SourceError) as lost:
        KeptTransactions(frozenset({1}), store).read(1)
    assert (lost.value.facts["kind"], lost.value.remedy) == ("unreachable", "Start the database")
    assert KeptTransactions(frozenset({1}), store).read(2) is None


@pytest.mark.parametrize("memory", [1 << 20, 500])
@pytest.mark.parametrize("piece", [1, 7, 100, 1 << 20])
def test_a_content_is_made_again_from_its_pieces(monkeypatch, memory, piece):
    monkeypatch.setattr(content, "MEMORY_BYTES", memory)
    monkeypatch.setattr(content, "PIECE_BYTES", piece)
    log = BinlogBytes(checksums=False).table_map(1).rows(1, b"a" * 200).table_map(2).rows(2, b"").rows(1, b"b" * 300)
    whole = GroupContent()
    statement = BinlogBytes(checksums=False).query("CREATE TABLE t (a INT)")
    for data in (*statement.events, *log.events):
        whole.add(BinlogEvent(data[4], 0, 0, 0, 9, data))
    pieces = list(whole.pieces())
    assert all(len(each) <= piece for each in pieces[:-1])
    again = GroupContent.restored(pieces)
    group = Group(GroupKind.XA_COMMIT, 10, 20, "0-1-1", "", 5)
    found = [(record.key, record.value) for record in again.records(group, 20, is_mariadb=True)]
    assert found == [(record.key, record.value) for record in whole.records(group, 20, is_mariadb=True)]
    assert [decode_head(key).kind for key, _ in found] == [PartKind.QUERY, PartKind.ROWS]
    assert again.size == whole.size
    assert GroupContent.restored([]) is None
    for each in (whole, again):
        each.close()
