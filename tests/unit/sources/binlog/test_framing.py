import struct
from zlib import crc32

import pytest

from applier.model.errors import SourceError
from applier.sources.binlog import event_stream as kinds
from applier.sources.binlog.event_stream import Framing
from applier.sources.binlog.position import BinlogPosition
from tests.builders.binlog import BASE, BinlogBytes, packets

START = BinlogPosition(0, 1, 4).number


def framed(data, step=None, *, place=START, bodies=True):
    """The events of some bytes, fed in pieces; the error that ends them, if there is one."""
    framing, events = Framing(BASE, place, bodies=bodies), []
    step = step or len(data)
    for first in range(0, len(data), step):
        piece = memoryview(data)[first : first + step]
        while piece:
            room = framing.buffer.room()
            size = min(len(room), len(piece))
            room[:size] = piece[:size]
            room.release()
            framing.buffer.took(size)
            piece = piece[size:]
            try:
                while more := framing.events():
                    events += more
            except SourceError as error:
                return events, error
    return events, None


def some_binlog(**options):
    log = BinlogBytes(**options).start(is_in_file=True).transaction(1).transaction(2, b"x" * 300)
    log.add(kinds.HEARTBEAT, b"bin.000001", is_in_file=False)
    return log.rotate(2).start(is_in_file=True).transaction(3)


@pytest.mark.parametrize("checksums", [True, False])
@pytest.mark.parametrize("is_mariadb", [True, False])
def test_events_are_the_same_however_the_bytes_come(is_mariadb, checksums):
    data = some_binlog(is_mariadb=is_mariadb, checksums=checksums).bytes()
    whole, error = framed(data)
    assert error is None
    assert all(framed(data, step) == (whole, None) for step in (1, 2, 3, 7, 23, 24, 25, 100))
    assert [event.end for event in whole] == sorted(event.end for event in whole)
    assert whole[-1].kind == kinds.XID


def test_what_is_in_no_file_takes_no_place_and_a_rotation_ends_at_the_next_file():
    events, _ = framed(some_binlog().bytes())
    artificial = [event.kind for event in events if event.begin == event.end]
    assert artificial == [kinds.ROTATE, kinds.HEARTBEAT, kinds.ROTATE]
    rotation = next(event for event in events if event.kind == kinds.ROTATE and event.begin != event.end)
    assert BinlogPosition.of(rotation.end) == (0, 2, 4)


def test_an_event_without_its_checksum_names_its_own_size():
    events, _ = framed(some_binlog().bytes())
    wanted = [event for event in events if event.kind != kinds.FORMAT_DESCRIPTION]
    assert all(len(event.data) == struct.unpack_from("<I", event.data, 9)[0] for event in wanted)


def test_an_event_of_many_packets_is_one_event():
    log = BinlogBytes().start().transaction(1, b"y" * 40_000_000).transaction(2)
    data = log.bytes()
    events, error = framed(data, 1 << 20)
    assert error is None
    assert next(len(event.data) for event in events if event.kind == 23) == 40_000_000 + 27
    assert framed(data, 1 << 20, bodies=False)[0][-1].end == log.place


def test_every_cut_gives_the_events_before_it_and_no_more():
    data = some_binlog().bytes()
    whole, _ = framed(data)
    for cut in range(1, len(data)):
        events, error = framed(data[:cut])
        assert error is None
        assert events == whole[: len(events)]
        assert len(events) < len(whole)


def test_every_damaged_byte_of_an_event_is_found_where_its_content_is_wanted():
    log = BinlogBytes().start().transaction(1)
    data = log.bytes()
    whole, _ = framed(data)
    begin = len(packets(log.events[:2]))
    for place in range(begin, len(data)):
        damaged = data[:place] + bytes((data[place] ^ 0x40,)) + data[place + 1 :]
        events, error = framed(damaged)
        assert events == whole[: len(events)]
        assert len(events) < len(whole)
        # A length that has grown waits for bytes that never come.
        assert error is not None or damaged[:place].endswith(data[:place])


@pytest.mark.parametrize("missing", range(2, 6))
def test_a_missing_event_is_found_by_the_next_one(missing):
    log = BinlogBytes().start().transaction(1)
    events, error = framed(packets(log.events[:missing] + log.events[missing + 1 :]))
    if missing < len(log.events) - 1:
        assert len(events) == missing
        assert error.facts["kind"] == "other_log"


def test_a_repeated_event_is_found():
    log = BinlogBytes().start().transaction(1)
    _, error = framed(packets([*log.events, log.events[-1]]))
    assert error.facts["kind"] == "other_log"


def test_a_crash_without_a_rotation_goes_on_with_the_next_file():
    log = BinlogBytes().start().gtid(1).table_map(9).rows(9)
    log.file, log.end = 3, 4
    events, error = framed(log.start(is_in_file=True).transaction(2).bytes())
    assert error is None
    assert events[5].begin == events[5].end == BinlogPosition(0, 3, 4).number


@pytest.mark.parametrize(
    ("payload", "kind"),
    [
        (b"\xff\xd4\x04#HY000Could not find first log file name in binary log index file", "purged"),
        (b"\xff\xd4\x04#HY000Cannot replicate because the source purged required binary logs.", "purged"),
        (b"\xff\xd4\x04#HY000Client requested source to start replication from position > file size", "other_log"),
        (b"\xff\xd4\x04#HY000log event entry exceeded max_allowed_packet; Increase max_allowed_packet on master", "other_log"),
        (b"\xff\xd4\x04#HY000A replica with the same server_uuid/server_id as this replica has connected", "unreachable"),
        (b"\xff\xcb\x04#42000Access denied; you need (at least one of) the REPLICATION SLAVE privilege(s)", "refused"),
        (b"\xfe\x00\x00\x00\x00", "unreachable"),
    ],
)
def test_what_the_server_says_at_the_end_of_a_dump_tells_what_may_be_done(payload, kind):
    log = BinlogBytes().start().transaction(1)
    data = log.bytes()
    events, error = framed(data + len(payload).to_bytes(3, "little") + bytes((len(log.events) + 1,)) + payload)
    assert len(events) == len(log.events)
    assert error.facts["kind"] == kind


def test_a_place_of_4_gib_is_refused():
    log = BinlogBytes()
    log.end = 2**32 - 10
    place = BinlogPosition(0, 1, log.end).number
    data = log.start().events
    xid = struct.pack("<IBIIIH", 1, kinds.XID, 7, 31, 21, 0) + bytes(8)
    _, error = framed(packets([*data, xid + struct.pack("<I", crc32(xid))]), place=place)
    assert error.message == "a file of the binlog has 4 GiB or more"


def test_without_bodies_only_what_tells_about_groups_is_kept():
    events, _ = framed(some_binlog().bytes(), bodies=False)
    assert {event.kind for event in events if event.data is None} == {kinds.TABLE_MAP, 23}


def test_what_a_dump_repeats_of_an_encrypted_file_takes_no_place():
    log = BinlogBytes()
    log.end = 500
    place = log.place
    log.start().add(kinds.MARIADB_START_ENCRYPTION, bytes(17), is_in_file=False).transaction(1)
    events, error = framed(log.bytes(), place=place)
    assert error is None
    assert events[2].begin == events[2].end == place


def test_a_connection_that_nobody_has_read_for_long_holds_many_heartbeats():
    log = BinlogBytes().start()
    for _ in range(3000):
        log.add(kinds.HEARTBEAT, b"bin.000001", is_in_file=False)
    assert len(framed(log.bytes())[0]) == 3002
