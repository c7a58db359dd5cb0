import itertools
import struct
from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from applier.model.errors import ProtocolError, SourceError
from applier.model.position import RecordPosition
from applier.model.range_report import RangeId
from applier.sources.binlog import content, event_stream, reader
from applier.sources.binlog import event_stream as kinds
from applier.sources.binlog import reader as range_reading
from applier.sources.binlog.decoder import BINLOG
from applier.sources.binlog.event_stream import BinlogEvent
from applier.sources.binlog.part import PartKind, decode_head, encode_head
from applier.sources.binlog.position import STREAM
from applier.sources.binlog.reader import BinlogRangeReader
from applier.sources.binlog.server import LogEnd
from applier.sources.binlog.settings import BinlogSettings
from applier.sources.binlog.xa_rows import XaPosition, XaRows
from applier.sources.port import Record
from tests.builders.binlog import BASE, BinlogBytes, LogInMemory

XID = "X'7831',X'62',3"
XA_PREPARE = struct.pack("<Biii", 0, 3, 2, 1) + b"x1b"


@pytest.fixture(autouse=True)
def _nothing_is_kept(monkeypatch):
    monkeypatch.setattr(range_reading, "_PAUSES_S", (0.0,))
    monkeypatch.setattr(range_reading, "PREPARED", XaRows())
    yield
    reader.IDLE.close()


@pytest.fixture
def serve(monkeypatch):
    def to(log, **options):
        server = LogInMemory(log, **options)
        monkeypatch.setattr(event_stream, "Dump", server)
        return server

    return to


def read(ranges, *, prepared=None, unreachable_after_s=30.0):
    settings = BinlogSettings(url="mysql+pymysql://nobody@nowhere/", unreachable_after_s=unreachable_after_s)
    wanted = [RangeId(STREAM, start, end) for start, end in ranges]
    for each, found in BinlogRangeReader(settings, BASE, prepared or {}).read(wanted):
        if isinstance(found, SourceError):
            raise found
        for record in found:
            head = decode_head(record.key)
            assert each.start <= record.offset < each.end
            yield record.offset, PartKind(head.kind), head, record.value


def content_of(found):
    return [(offset, kind, head.commit_ts, value) for offset, kind, head, value in found]


def events_in(value):
    found = []
    while value:
        size = struct.unpack_from("<I", value, 9)[0]
        found.append((value[4], value[27:size] if value[4] in kinds.ROWS else b""))
        value = value[size:]
    return found


@pytest.fixture(params=["mariadb", "mysql"])
def log(request):
    return BinlogBytes(is_mariadb=request.param == "mariadb").description()


def some_groups(log):
    bounds = [log.place]
    for number in range(4):
        log.transaction(number, bytes((number,)) * 50)
        bounds.append(log.place)
    log.gtid(5, flags=1).query("ALTER TABLE t ADD c INT")
    bounds.append(log.place)
    log.rotate(2)
    bounds.append(log.place)
    log.description()
    bounds.append(log.place)
    log.transaction(6)
    return [*bounds, log.place]


def test_ranges_give_what_the_whole_gives_wherever_it_is_cut(log, serve):
    bounds = some_groups(log)
    serve(log)
    whole = [row for row in content_of(read([(bounds[0], bounds[-1])])) if row[1] is not PartKind.PROMISE]
    assert [row[1] for row in whole] == [*[PartKind.ROWS] * 4, PartKind.QUERY, PartKind.ROWS]
    single = content_of(read(itertools.pairwise(bounds)))
    assert [row for row in single if row[1] is not PartKind.PROMISE] == whole
    assert [row[2] for row in single if row[1] is PartKind.PROMISE] == bounds[1:]


def test_rows_count_at_the_end_of_their_transaction_and_a_statement_just_before_its_own(log, serve):
    bounds = some_groups(log)
    serve(log)
    rows = content_of(read([(bounds[0], bounds[-1])]))
    assert [(offset, commit_ts) for offset, kind, commit_ts, _ in rows if kind is PartKind.ROWS][:4] == list(itertools.pairwise(bounds[:5]))
    assert [(offset, commit_ts) for offset, kind, commit_ts, _ in rows if kind is PartKind.QUERY] == [(bounds[4], bounds[5] - 1)]


def test_a_connection_that_is_lost_anywhere_changes_nothing(log, serve):
    bounds = some_groups(log)
    server = serve(log)
    whole = content_of(read([(bounds[0], bounds[-1])]))
    size = len(server._sent(1, bounds[0] & 0xFFFFFFFF))
    for lost_after in range(0, size, 3):
        server = serve(log, lost_after=[lost_after, size // 3])
        assert content_of(read([(bounds[0], bounds[-1])])) == whole
        assert len(server.dumps) >= 2


def test_a_server_that_does_not_come_back_is_reported_once_for_all_ranges(log, serve):
    bounds = some_groups(log)
    server = serve(log, lost_after=[0] * 10_000)
    settings = BinlogSettings(url="mysql+pymysql://nobody@nowhere/", unreachable_after_s=0.0)
    found = list(BinlogRangeReader(settings, BASE, {}).read([RangeId(STREAM, a, b) for a, b in itertools.pairwise(bounds)]))
    assert {error.facts["kind"] for _, error in found} == {"unreachable"}
    assert len(found) == len(bounds) - 1
    assert len(server.dumps) <= 2


def test_bytes_that_came_damaged_are_read_again(log, serve):
    bounds = some_groups(log)
    server = serve(log)
    whole = content_of(read([(bounds[0], bounds[-1])]))
    size = len(server._sent(1, bounds[0] & 0xFFFFFFFF))
    for damaged_at in range(200, size, 7):
        server = serve(log, damaged_at=[damaged_at])
        assert content_of(read([(bounds[0], bounds[-1])])) == whole


def test_a_damaged_file_is_named(log, serve):
    bounds = some_groups(log)
    place, event = log.placed[12]
    log.placed[12] = place, event[:30] + bytes((event[30] ^ 1,)) + event[31:]
    server = serve(log)
    with pytest.raises(SourceError) as caught:
        list(read([(bounds[0], bounds[-1])]))
    assert caught.value.facts["kind"] == "checksum"
    assert len(server.dumps) == range_reading.WRONG_ATTEMPTS


def test_a_range_that_ends_inside_of_a_group_is_refused(log, serve):
    bounds = some_groups(log)
    serve(log)
    with pytest.raises(SourceError) as caught:
        list(read([(bounds[0], bounds[1] - 1)]))
    assert caught.value.facts["kind"] == "other_log"


def test_a_server_whose_log_ends_before_the_range_is_reported(log, serve, monkeypatch):
    bounds = some_groups(log)
    monkeypatch.setattr(range_reading, "POLL_S", 0.01)
    serve(log)
    with pytest.raises(SourceError):
        list(read([(bounds[0], bounds[-1] + 1000)], unreachable_after_s=0.05))


def test_nothing_lies_between_two_generations(serve):
    serve(BinlogBytes())
    (found,) = read([(100, 1 << 56 | 4)])
    assert found[1] is PartKind.PROMISE


def begun(log, number):
    log.gtid(number)
    return log if log.is_mariadb else log.query("BEGIN")


def test_what_a_savepoint_has_undone_is_left_out(log, serve):
    start = log.place
    begun(log, 1).table_map(1).rows(1, b"a").query("SAVEPOINT `a`").table_map(2).rows(2, b"b").query("SAVEPOINT `b`").rows(2, b"c")
    log.query("ROLLBACK TO `A`").rows(1, b"d").add(kinds.XID, bytes(8))
    serve(log)
    (rows, _) = read([(start, log.place)])
    assert [data for kind, data in events_in(rows[3]) if kind in kinds.ROWS] == [b"a", b"d"]


def test_a_table_that_is_made_with_its_rows_comes_before_them(log, serve):
    start = log.place
    begun(log, 1).query("CREATE TABLE `t` (`id` int)")
    made = log.place
    log.table_map(1).rows(1, b"a").add(kinds.XID, bytes(8))
    serve(log)
    statement, rows, _ = content_of(read([(start, log.place)]))
    assert statement[:3] == (start, PartKind.QUERY, made - 1)
    assert rows[:3] == (start, PartKind.ROWS, log.place)


def test_nothing_of_a_transaction_that_was_rolled_back_counts(log, serve):
    start = log.place
    begun(log, 1).query("CREATE TABLE `t` (`id` int)").table_map(1).rows(1).query("ROLLBACK")
    serve(log)
    assert [kind for _, kind, _, _ in read([(start, log.place)])] == [PartKind.PROMISE]


def test_an_incident_is_given_as_a_statement(log, serve):
    start = log.place
    log.gtid(1, flags=1).add(kinds.INCIDENT, b"\1\0\0")
    serve(log)
    incident, _ = read([(start, log.place)])
    assert (incident[1], incident[3][4]) == (PartKind.QUERY, kinds.INCIDENT)
    with pytest.raises(ProtocolError, match="changes are missing"):
        BINLOG.events(record_of(incident), RecordPosition(STREAM, start))


def record_of(found):
    offset, _, head, value = found
    return Record(offset, encode_head(head), value)


def test_load_data_as_a_statement_is_refused_as_other_statements_are(log, serve):
    start = log.place
    places_of_the_name = bytes(13)
    sql = b"s\0LOAD DATA LOCAL INFILE '/tmp/x' INTO TABLE `t` FIELDS TERMINATED BY ','"
    begun(log, 1).add(kinds.EXECUTE_LOAD_QUERY, struct.pack("<IIBHH", 1, 0, 1, 0, 0) + places_of_the_name + sql).add(kinds.XID, bytes(8))
    serve(log)
    found, _ = read([(start, log.place)])
    with pytest.raises(ProtocolError, match="is in the binlog as a statement"):
        BINLOG.events(record_of(found), RecordPosition(STREAM, start))


def prepared_and_committed(log):
    start = log.place
    log.gtid(1, flags=64 if log.is_mariadb else 0, more=struct.pack("<iBB", 3, 2, 1) + b"x1b")
    if not log.is_mariadb:
        log.query(f"XA START {XID}")
    log.table_map(1).rows(1, b"a").query(f"XA END {XID}").add(kinds.XA_PREPARE, XA_PREPARE)
    log.rotate(2).description()
    middle = log.place
    log.gtid(2, flags=1).query(f"XA COMMIT {XID}")
    return start, middle


@pytest.mark.parametrize("kept_bytes", [0, 1 << 20])
def test_rows_of_a_prepared_transaction_count_at_their_commit(log, serve, kept_bytes, monkeypatch):
    monkeypatch.setattr(range_reading, "PREPARED", XaRows(kept_bytes))
    start, middle = prepared_and_committed(log)
    serve(log)
    before = list(read([(start, middle)]))
    rows, _ = read([(middle, log.place)], prepared={XID: (start,)})
    assert [kind for _, kind, _, _ in before] == [PartKind.PROMISE]
    assert (rows[0], rows[1], rows[2].commit_ts) == (middle, PartKind.ROWS, log.place)
    assert [data for kind, data in events_in(rows[3]) if kind in kinds.ROWS] == [b"a"]
    assert content_of(read([(start, log.place)]))[0] == content_of([rows])[0]


def test_a_commit_of_what_this_process_has_read_costs_no_connection(log, serve):
    start, middle = prepared_and_committed(log)
    server = serve(log)
    list(read([(start, middle), (middle, log.place)], prepared={XID: (start,)}))
    assert len(server.dumps) == 1
    # Again, as after a failure: it is still kept.
    list(read([(middle, log.place)], prepared={XID: (start,)}))
    assert [file for file, _ in server.dumps] == [f"{BASE}.000001", f"{BASE}.000002"]


def test_prepared_rows_make_room_for_later_ones():
    kept, held = XaRows(600), [content.GroupContent() for _ in range(3)]
    settings = BinlogSettings(url="mysql+pymysql://nobody@nowhere/")
    places = [XaPosition(settings, "one", number, XID) for number in range(3)]
    for place, one in zip(places, held, strict=True):
        one.add(event_with(200))
        kept.keep(place, one)
    assert [kept.of(place) for place in places] == [None, *held[1:]]
    kept.keep(places[1], held[1])
    assert kept.of(places[2]) is held[2]
    assert kept.of(places[1]._replace(server="another")) is None
    held[0].add(event_with(900))
    kept.keep(places[0], held[0])
    assert kept.of(places[0]) is None


def event_with(size):
    return BinlogEvent(kinds.TABLE_MAP, 0, 0, 0, 0, bytes((0, 0, 0, 0, kinds.TABLE_MAP)) + bytes(size - 5))


def test_a_transaction_that_was_prepared_before_the_replica_began_is_refused(log, serve):
    _, middle = prepared_and_committed(log)
    serve(log)
    with pytest.raises(SourceError) as caught:
        list(read([(middle, log.place)]))
    assert caught.value.facts["kind"] == "xa"


def test_a_large_transaction_comes_in_parts_that_can_be_read_alone(log, serve, monkeypatch):
    monkeypatch.setattr(content, "PART_BYTES", 1000)
    monkeypatch.setattr(content, "MEMORY_BYTES", 3000)
    start = log.place
    begun(log, 1).table_map(1, "a").table_map(2, "b")
    for number in range(40):
        log.rows(1 + number % 2, bytes((number,)) * 300)
        if number == 20:
            log.query("SAVEPOINT `s`").rows(1, b"undone" * 1000).rows(1, b"undone").query("ROLLBACK TO `s`")
    log.add(kinds.XID, bytes(8))
    serve(log)
    *parts, _ = read([(start, log.place)])
    assert len(parts) > 10
    numbers = []
    for _, _, head, value in parts:
        events = events_in(value)
        assert head.first_event == len(numbers)
        assert [kind for kind, _ in events[:2]] == [kinds.TABLE_MAP, 23]
        assert len(value) < 1300
        numbers += [data[0] for kind, data in events if kind in kinds.ROWS]
    assert numbers == list(range(40))


def test_a_file_that_was_begun_at_another_time_is_of_a_log_that_was_reset(log, serve):
    bounds = some_groups(log)
    serve(log)
    wanted = [RangeId(STREAM, bounds[0], bounds[-1])]
    settings = BinlogSettings(url="mysql+pymysql://nobody@nowhere/")
    for files, what in (({1: 1000, 2: 1000}, None), ({1: 999}, "it was reset"), ({1: 1000, 2: 999}, "it was reset")):
        errors = [found for _, found in BinlogRangeReader(settings, BASE, {}, files=files).read(wanted) if isinstance(found, SourceError)]
        assert [error.facts["kind"] for error in errors] == (["other_log"] if what else [])
        assert all(what in error.message for error in errors)


@pytest.mark.parametrize(("file", "what"), [(1, "it was reset"), (9, "is damaged")])
def test_events_that_look_damaged_because_the_log_was_reset_are_said_to_be_that(log, serve, monkeypatch, file, what):
    start = log.place
    log.transaction(1, b"x" * 900)
    end = log.place
    serve(log, damaged_at=[500] * range_reading.WRONG_ATTEMPTS)
    monkeypatch.setattr(range_reading, "Server", lambda _settings: nullcontext(SimpleNamespace(end=lambda: LogEnd(BASE, file, 4, ""))))
    with pytest.raises(SourceError, match=what):
        list(read([(start, end)]))


@pytest.mark.parametrize("kind", [kinds.INTVAR, kinds.RAND, kinds.USER_VAR])
def test_a_statement_says_whether_variables_of_its_session_come_before_it(serve, kind):
    log = BinlogBytes().start(is_in_file=True)
    start = log.place
    log.gtid(1, flags=1).add(kind, bytes(9)).query("ALTER TABLE t ADD a INT DEFAULT (@v)")
    log.gtid(2, flags=1).query("ALTER TABLE t ADD b INT")
    serve(log)
    heads = [head for _, part, head, _ in read([(start, log.place)]) if part is PartKind.QUERY]
    assert [head.has_variables for head in heads] == [True, False]
