"""Where a replica goes on in MariaDB's log: a server in memory, whose files are lists of GTIDs."""

import struct

import pytest

from applier.model.errors import NeedsOperator, SourceError
from applier.model.failure import FailureKind
from applier.sources.binlog import event_stream as kinds
from applier.sources.binlog.event_stream import BinlogEvent
from applier.sources.binlog.group import Group, GroupKind
from applier.sources.binlog.gtid_set import Gtid, MariadbGtidSet
from applier.sources.binlog.log_start import LogStartFinder
from applier.sources.binlog.position import BinlogPosition
from applier.sources.binlog.server import LogEnd, LogFile, logged_or_applied
from applier.sources.binlog.source import _state_of
from applier.sources.binlog.state import Journal, SourceState, ended_group

SIZE = 100
HEARTBEAT = BinlogEvent(kinds.HEARTBEAT, 0, 0, 0, 0, b"")


class MemoryServer:
    """Implements what a LogStartFinder asks; ``purged`` files are gone."""

    is_mariadb, address, is_logging = True, "db:3306", True

    def __init__(self, *files, purged=0, number="2", applied=""):
        self.log, self.first, self.number, self.applied = [list(file) for file in files], purged + 1, number, applied
        self.opened = []

    def identity(self):
        return self.number

    def files(self):
        return [LogFile("b", at, 4 + SIZE * len(self.log[at - 1])) for at in range(self.first, len(self.log) + 1)]

    def end(self):
        return LogEnd("b", len(self.log), 4 + SIZE * len(self.log[-1]), "")

    def gtid_set(self, text):
        return MariadbGtidSet.parse(text)

    def logs_replication(self):
        return self.is_logging

    def purged(self):
        return MariadbGtidSet()

    def _upto(self, count):
        found = MariadbGtidSet()
        for gtid in [gtid for file in self.log[:count] for gtid in file]:
            found.add(Gtid.parse(gtid))
        return found

    def executed(self):
        return logged_or_applied(",".join(gtid for file in self.log for gtid in file), self.applied)

    def logged_or_replicated(self):
        return MariadbGtidSet.parse(",".join([*(gtid for file in self.log for gtid in file), self.applied]))

    def executed_before(self, name):
        return self._upto(int(name.rpartition(".")[2]) - 1)

    def open_feed(self, _base_name, place):
        return MemoryFeed(self, place)


class MemoryFeed:
    """A DDL for each GTID; a file ends with a rotation that takes no place."""

    def __init__(self, server, place):
        self.events = []
        generation, number, position = BinlogPosition.of(place)
        for file in range(number, len(server.log) + 1):
            skipped = (position - 4) // SIZE if file == number else 0
            start = BinlogPosition(generation, file, 4).number
            if file != number:
                self.events.append(BinlogEvent(kinds.ROTATE, start, start, 0, 0, b""))
            for at, gtid in enumerate(server.log[file - 1]):
                if at >= skipped:
                    self.events += ddl_group(gtid, start + at * SIZE)
        self.events.append(HEARTBEAT)

    def read(self, _timeout_s):
        events, self.events = self.events[:3], self.events[3:]
        return events or [HEARTBEAT]

    def close(self):
        pass


def ddl_group(gtid, begin):
    domain, server, number = map(int, gtid.split("-"))
    head = bytes(5) + server.to_bytes(4, "little") + bytes(10)
    start = head + struct.pack("<QIB", number, domain, 1) + bytes(6)
    query = bytes(19) + bytes(13) + b"\0ANALYZE TABLE t"
    middle, end = begin + SIZE // 2, begin + SIZE
    return [BinlogEvent(kinds.MARIADB_GTID, begin, middle, 7, 0, start), BinlogEvent(kinds.QUERY, middle, end, 7, 0, query)]


def finder(server):
    return LogStartFinder(server, server.open_feed)


def place(file, count, generation=0):
    """The number of the place behind so many groups of a file."""
    return BinlogPosition(generation, file, 4 + SIZE * count).number


OWN_FIRST = (["0-1-4", "0-1-5", "0-2-6", "0-2-7"], ["0-2-8", "0-1-6"], ["0-1-7", "0-2-9"])


@pytest.mark.parametrize(
    ("executed", "expected"),
    [
        ("0-1-5", place(1, 2)),
        ("0-2-7", place(2, 0)),
        ("0-2-8", place(2, 1)),
        ("0-1-6", place(3, 0)),
        ("0-1-7", place(3, 1)),
        ("0-2-9", place(3, 2)),
    ],
)
def test_a_replica_goes_on_behind_the_exact_gtid_whatever_the_numbers(executed, expected):
    found = finder(MemoryServer(*OWN_FIRST)).behind(MariadbGtidSet.parse(executed))
    assert found.beginning.position == expected
    assert not found.skipped
    assert str(found.beginning.executed) == executed


@pytest.mark.parametrize(
    ("executed", "files", "purged", "kind"),
    [
        ("0-1-4", OWN_FIRST, 1, "retention"),  # the first file begins behind it
        ("0-2-7", OWN_FIRST, 2, "retention"),
        ("0-1-5", OWN_FIRST, 3, "retention"),
        ("0-1-5", (["0-1-4", "0-1-6"],), 0, "other_server"),  # filtered on its way
        ("0-1-8", OWN_FIRST, 0, "other_server"),  # lost with the old primary
        ("0-1-5,5-1-2", OWN_FIRST, 0, "other_server"),
        ("0-1-5", (["0-1-4", "0-2-9", "0-1-6"],), 0, "other_server"),
        ("0-1-5", (["0-1-4", "0-1-6", "0-1-3"],), 0, "other_server"),
    ],
)
def test_what_is_not_in_the_log_stops_and_is_named(executed, files, purged, kind):
    files = (*files, ["0-3-10"]) if purged == len(files) else files
    with pytest.raises(NeedsOperator) as stopped:
        finder(MemoryServer(*files, purged=purged)).behind(MariadbGtidSet.parse(executed))
    assert stopped.value.facts["kind"] == kind
    assert stopped.value.exit_code == 6


@pytest.mark.parametrize(
    ("applied", "why"), [("0-1-8", "without logging them"), ("0-1-7", "lacks transactions"), ("", "lacks transactions")]
)
def test_what_a_new_primary_has_replicated_and_not_logged_is_told_from_what_it_lacks(applied, why):
    server = MemoryServer(["0-2-1", "0-2-9"], applied=applied)
    with pytest.raises(NeedsOperator, match=why) as stopped:
        finder(server).behind(MariadbGtidSet.parse("0-1-8"))
    assert ("log_slave_updates = ON" in stopped.value.remedy) == (applied == "0-1-8")


def test_what_a_position_behind_a_chain_does_not_name_is_not_said_to_be_lacking():
    server = MemoryServer(["7-3-1"], applied="0-2-13")
    server.is_logging = False
    with pytest.raises(NeedsOperator, match="binlog does not have the last transaction") as stopped:
        finder(server).behind(MariadbGtidSet.parse("0-1-5"))
    assert stopped.value.facts["missing"] == "0-1-5"


def test_what_was_purged_is_not_needed_where_the_exact_gtid_is_the_last_before_the_first_file():
    found = finder(MemoryServer(*OWN_FIRST, purged=2)).behind(MariadbGtidSet.parse("0-1-6"))
    assert found.beginning.position == place(3, 0)


def test_a_domain_that_this_server_has_applied_and_never_logged_is_complete():
    found = finder(MemoryServer(*OWN_FIRST, applied="5-1-2")).behind(MariadbGtidSet.parse("0-2-9,5-1-2"))
    assert (found.beginning.position, str(found.beginning.executed)) == (place(3, 2), "0-2-9,5-1-2")


def test_domains_in_another_order_are_skipped_up_to_their_places_and_a_restart_knows_them():
    server = MemoryServer(["0-1-4", "1-3-8", "0-1-5", "0-2-9", "1-1-2", "2-1-1"], ["1-1-3", "0-1-6"])
    found = finder(server).behind(MariadbGtidSet.parse("0-1-4,1-1-2"), generation=1)
    assert found.beginning.position == place(1, 2, generation=1)
    assert found.skipped.passed == {"1-1-2": place(1, 5, generation=1)}
    journal = Journal(found.beginning)
    for begin, gtid in ((2, "0-1-5"), (3, "0-2-9"), (4, "1-1-2"), (5, "2-1-1")):
        journal.add_group(
            ended_group(Group(GroupKind.QUERY, place(1, begin, generation=1), place(1, begin + 1, generation=1), gtid, "", 7_000_000))
        )
    states = [_state_of(found, journal, place(1, count, generation=1)) for count in (3, 4, 5, 6)]
    assert [state.gtid_set for state in states] == ["0-1-5,1-1-2", "0-2-9,1-1-2", "0-2-9,1-1-2", "0-2-9,1-1-2,2-1-1"]
    assert [bool(state.passed) for state in states] == [True, True, False, False]
    resumed = finder(server).resumed(SourceState.parse(states[1].text()))
    assert resumed.skipped.passed == found.skipped.passed
    assert resumed.skipped.contain(Group(GroupKind.QUERY, place(1, 4, generation=1), place(1, 5, generation=1), "1-1-2", "", 0))


def test_a_state_of_version_1_with_gaps_has_the_places_of_its_gtids_looked_up():
    state = SourceState(
        version=1, is_mariadb=True, server="2", generation=0, base_name="b", position=place(1, 1), gtid_set="0-1-4,1-1-2", has_gaps=True
    )
    found = finder(MemoryServer(["0-1-4", "1-1-1", "1-1-2", "1-1-3"])).resumed(state)
    assert found.skipped.passed == {"1-1-2": place(1, 3)}


@pytest.mark.parametrize(
    ("file", "position", "executed", "is_proven"),
    [
        (2, 4 + 2 * SIZE, "0-1-6", True),
        (2, 4 + 2 * SIZE, "0-2-8", False),
        (2, 4 + SIZE + 7, "0-1-6", False),
        (9, 4, "0-1-6", False),
        (1, 4, "0-1-6", False),
    ],
)
def test_a_file_and_a_position_are_taken_where_exactly_the_dumps_set_lies_before_them(file, position, executed, is_proven):
    server = MemoryServer(*OWN_FIRST, purged=1)
    found = finder(server).proven("b", file, position, MariadbGtidSet.parse(executed))
    assert (found is not None) is is_proven
    assert found is None or found.beginning.position == BinlogPosition(0, file, position).number


@pytest.mark.parametrize("kept", [True, False])
def test_a_transaction_that_the_sink_keeps_is_open_on_another_server_too(kept):
    server = MemoryServer(*OWN_FIRST)
    xid, prepared = "X'61',X'',1", place(7, 3)
    state = SourceState(
        is_mariadb=True,
        server="1",
        generation=0,
        base_name="b",
        position=place(8, 0),
        gtid_set="0-2-8",
        prepared={xid: prepared},
        kept=[xid] if kept else [],
    )
    found = finder(server).resumed(state)
    assert (found.generation, found.beginning.position) == (1, place(2, 1, 1))
    assert found.beginning.prepared == ({xid: prepared} if kept else {})


class VanishingServer(MemoryServer):
    """Its files vanish between a listing and the first reading: ``then`` is what is left of the log."""

    def __init__(self, *files, then, purged=0, **more):
        super().__init__(*files, **more)
        self.then, self.purged_then = then, purged

    def open_feed(self, base_name, place):
        if self.then is not None:
            (self.log, self.first), self.then = ([list(file) for file in self.then], self.purged_then + 1), None
            raise SourceError("the server has no binlog from this position on", kind=FailureKind.PURGED)
        return super().open_feed(base_name, place)


def state_at(file, count, gtid_set):
    return SourceState(
        is_mariadb=True, server="2", generation=0, base_name="b", position=place(file, count), gtid_set=gtid_set, created_s=7
    )


@pytest.mark.parametrize(
    ("then", "purged", "message", "kind"),
    [
        ((["0-2-1"],), 0, "is not the one that was followed", "other_log"),
        ((*OWN_FIRST, ["0-3-10"]), 3, "has purged binlogs", "retention"),
    ],
)
def test_files_that_vanish_between_listing_and_reading_are_listed_again(then, purged, message, kind):
    server = VanishingServer(*OWN_FIRST, then=then, purged=purged)
    with pytest.raises(NeedsOperator, match=message) as stopped:
        finder(server).resumed(state_at(2, 1, "0-2-8"))
    assert stopped.value.kind == kind
