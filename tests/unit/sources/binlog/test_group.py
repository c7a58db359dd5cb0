import struct

import pytest

from applier.model.errors import SourceError
from applier.sources.binlog import event_stream as kinds
from applier.sources.binlog.event_stream import Framing
from applier.sources.binlog.group import GroupFinder, GroupKind
from applier.sources.binlog.position import BinlogPosition
from tests.builders.binlog import BASE, BinlogBytes

XID = "X'7831',X'62',3"
XA_PREPARE = struct.pack("<Biii", 0, 3, 2, 1) + b"x1b"


def events_of(log):
    framing = Framing(BASE, BinlogPosition(0, 1, 4).number, bodies=False)
    data = log.bytes()
    framing.buffer.room()[: len(data)] = data
    framing.buffer.took(len(data))
    return framing.events()


def groups_of(log):
    finder, groups = GroupFinder(), []
    for event in events_of(log):
        if group := finder.take(event):
            groups.append(group)
            assert not finder.is_open
    return groups


def kinds_of(log):
    return [(group.kind, group.xid) for group in groups_of(log)]


@pytest.fixture(params=["mariadb", "mysql"])
def log(request):
    return BinlogBytes(is_mariadb=request.param == "mariadb").start(is_in_file=True)


def statement(log, number, sql):
    return log.gtid(number, flags=1).query(sql)


def test_groups_follow_one_another_without_a_gap(log):
    first = log.place
    log.transaction(1)
    middle = log.place
    statement(log, 2, "ALTER TABLE t ADD c INT")
    one, two = groups_of(log)
    assert (one.kind, one.begin, one.end) == (GroupKind.TRANSACTION, first, middle)
    assert (two.kind, two.begin, two.end) == (GroupKind.QUERY, middle, log.place)
    assert two.gtid == ("0-7-2" if log.is_mariadb else "00000000-0000-0000-0000-000000000001:2")


def test_a_transaction_ends_with_commit_or_rollback_and_not_with_a_savepoint(log):
    for end in ("COMMIT", "ROLLBACK"):
        log.gtid(1)
        if not log.is_mariadb:
            log.query("BEGIN")
        log.table_map(1).rows(1).query("SAVEPOINT `a`").rows(1).query("ROLLBACK TO `a`").query("CREATE TABLE u (id INT)").query(end)
    assert kinds_of(log) == [(GroupKind.TRANSACTION, ""), (GroupKind.ROLLBACK, "")]


def test_a_distributed_transaction_is_prepared_in_one_group_and_settled_in_another(log):
    flags = 64 if log.is_mariadb else 0
    more = struct.pack("<iBB", 3, 2, 1) + b"x1b"
    log.gtid(1, flags=flags, more=more)
    if not log.is_mariadb:
        log.query(f"XA START {XID}")
    log.table_map(1).rows(1).query(f"XA END {XID}").add(kinds.XA_PREPARE, XA_PREPARE)
    statement(log, 2, f"XA COMMIT {XID}")
    statement(log, 3, f"XA ROLLBACK {XID}")
    assert kinds_of(log) == [(GroupKind.XA_PREPARE, XID), (GroupKind.XA_COMMIT, XID), (GroupKind.XA_ROLLBACK, XID)]


def test_a_commit_in_one_phase_is_a_commit():
    log = BinlogBytes(is_mariadb=False).start().gtid(1).query(f"XA START {XID}").table_map(1).rows(1)
    log.add(kinds.XA_PREPARE, b"\1" + XA_PREPARE[1:])
    assert kinds_of(log) == [(GroupKind.TRANSACTION, "")]


def test_the_announcement_of_an_alter_table_is_ignored_and_its_commit_is_a_statement():
    log = BinlogBytes().start()
    for extra in (2, 4, 8):  # START, COMMIT, ROLLBACK ALTER
        log.gtid(1, flags=1, more=bytes((extra,)) + bytes(8)).query("ALTER TABLE t ADD c INT")
    assert [kind for kind, _ in kinds_of(log)] == [GroupKind.IGNORED, GroupKind.QUERY, GroupKind.IGNORED]


def test_a_group_that_a_crash_has_cut_holds_nothing(log):
    log.gtid(1)
    if not log.is_mariadb:
        log.query("BEGIN")
    log.table_map(1).rows(1)
    log.file, log.end = 2, 4
    log.start(is_in_file=True).transaction(1)
    unfinished, whole = groups_of(log)
    assert unfinished.kind is GroupKind.UNFINISHED
    assert unfinished.end == BinlogPosition(0, 2, 4).number
    assert whole.kind is GroupKind.TRANSACTION


def test_an_incident_is_a_group(log):
    assert kinds_of(log.gtid(1, flags=1).add(kinds.INCIDENT, b"\1\0\0")) == [(GroupKind.INCIDENT, "")]


def test_an_unknown_event_is_passed_only_if_its_flag_allows_it(log):
    log.gtid(1).add(120, b"?", flags=kinds.IGNORABLE_FLAG).add(120, b"?")
    with pytest.raises(SourceError, match="type that is not known"):
        groups_of(log)


def test_rows_outside_of_a_group_are_refused(log):
    with pytest.raises(SourceError, match="belongs to no group"):
        groups_of(log.table_map(1))


def test_a_tagged_gtid_of_mysql_is_read():
    # As MySQL 9.7 has written it.
    body = bytes.fromhex(
        "027a000002029d03b102de449903950322c5037d02e9030484b1022200040404060a7461675f610881020a89020c7fb06e7789e86006102d031283120b"
    )
    log = BinlogBytes(is_mariadb=False).start().add(kinds.GTID_TAGGED, body).query("CREATE DATABASE d")
    (group,) = groups_of(log)
    assert group.gtid == "e7ac6f22-e6e5-11f1-9ffa-0242ac110002:tag_a:1"
    assert group.time_us == 1795401715248816
