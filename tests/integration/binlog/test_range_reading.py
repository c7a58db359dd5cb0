"""Ranges of real binlogs: wherever ranges and connections are cut, they give the rows of the server's tables."""

import random
from contextlib import closing, contextmanager
from itertools import pairwise

import pytest
from sqlalchemy import make_url

from applier.model.errors import SourceError
from applier.model.events import DdlEvent, RowEvent
from applier.model.position import RecordPosition
from applier.model.range_report import RangeId
from applier.sources.binlog import reader as range_reading
from applier.sources.binlog.decoder import BINLOG
from applier.sources.binlog.event_stream import EventStream
from applier.sources.binlog.group import GroupFinder, GroupKind
from applier.sources.binlog.part import PartKind, decode_head
from applier.sources.binlog.position import STREAM, BinlogPosition, split_file_name
from applier.sources.binlog.reader import IDLE, BinlogRangeReader
from applier.sources.binlog.server import Server
from applier.sources.binlog.settings import BinlogSettings
from tests.rig.cut_connections import cutting
from tests.rig.database import Kind
from tests.rig.mysql_oracle import connect

TABLE = "(id INT PRIMARY KEY AUTO_INCREMENT, a INT, v LONGTEXT)"
LARGE = 17_000_000
"""More than a packet of the client protocol holds."""


def settings_of(url):
    return BinlogSettings(url=url, unreachable_after_s=5)


def place_of(text):
    file, position = text.split(":")
    base_name, number = split_file_name(file)
    return base_name, BinlogPosition(0, number, int(position)).number


def walked(primary, start):
    """The boundaries from a place to the end of the log, and where transactions were prepared."""
    base_name, first = place_of(start)
    _, end = place_of(primary.place())
    finder, bounds, prepared = GroupFinder(), [first], {}
    with EventStream(settings_of(primary.url), base_name, first, bodies=False) as stream:
        while bounds[-1] < end:
            for event in stream.read(1):
                group = finder.take(event)
                if group is not None and group.kind is GroupKind.XA_PREPARE:
                    prepared[group.xid] = (*prepared.get(group.xid, ()), group.begin)
                if not finder.is_open and event.end > bounds[-1]:
                    bounds.append(event.end)
    return base_name, bounds, prepared


def read(reader, cuts):
    ranges = [RangeId(STREAM, *each) for each in pairwise(cuts)]
    records, promised = [], []
    for each, found in reader.read(ranges):
        if isinstance(found, SourceError):
            raise found
        for record in found:
            head = decode_head(record.key)
            if head.kind == PartKind.PROMISE:
                promised.append((each.end, head.commit_ts))
            else:
                records.append((record.offset, head.commit_ts, head.first_event, record))
    assert sorted(promised) == [(end, end) for end in cuts[1:]]
    return records


def rows_after(records):
    """What tables hold whose rows are changed by these records."""
    tables = {}
    for offset, _, _, record in sorted(records, key=lambda each: each[:3]):
        for event in BINLOG.events(record, RecordPosition(STREAM, offset)):
            if isinstance(event, RowEvent):
                rows = tables.setdefault(event.table, {})
                for image in filter(None, (event.before, event.after)):
                    rows.pop(image["id"].value, None)
                if event.after is not None:
                    id_, *values = (event.after[name].value for name in ("id", "a", "v"))
                    rows[id_] = tuple(values)
            elif isinstance(event, DdlEvent) and event.query.upper().startswith("CREATE TABLE"):
                tables.setdefault(event.table, {})
    return tables


def prepared_and(cursor, name, end):
    for verb in ("START", "END", "PREPARE", end):
        if verb == "END":
            cursor.execute("INSERT INTO t (a, v) VALUES (7, %s)", (name,))
        cursor.execute(f"XA {verb} '{name}'")


def work(primary, *, compressed):
    """Everything that makes groups: transactions small and large, savepoints, XA, statements, files."""
    with closing(connect(primary.url)) as connection, connection.cursor() as cursor:
        connection.autocommit(True)
        if compressed and primary.kind is Kind.MYSQL:
            cursor.execute("SET binlog_transaction_compression = ON")
        cursor.execute("CREATE DATABASE shop")
        cursor.execute("USE shop")
        cursor.execute(f"CREATE TABLE t {TABLE}")
        for number in range(30):
            cursor.execute("BEGIN")
            cursor.executemany("INSERT INTO t (a, v) VALUES (%s, %s)", [(number, "x" * (number * 31 % 900)) for _ in range(number % 7 + 1)])
            cursor.execute("UPDATE t SET v = CONCAT(v, 'u') WHERE a = %s", (number // 2,))
            cursor.execute("DELETE FROM t WHERE a = %s LIMIT 1", (number // 3,))
            cursor.execute("ROLLBACK" if number % 11 == 10 else "COMMIT")
            if number % 10 == 5:
                prepared_and(cursor, f"settled {number}", "COMMIT")
                prepared_and(cursor, f"undone {number}", "ROLLBACK")
                cursor.execute("FLUSH BINARY LOGS")
        # The server writes what a savepoint has undone where a temporary table was dropped meanwhile.
        cursor.execute("CREATE TEMPORARY TABLE u (id INT)")
        cursor.execute("BEGIN")
        cursor.execute("INSERT INTO t (a, v) VALUES (1, 'kept')")
        cursor.execute("SAVEPOINT s")
        cursor.execute("INSERT INTO t (a, v) VALUES (1, 'undone')")
        cursor.execute("DROP TEMPORARY TABLE u")
        cursor.execute("ROLLBACK TO s")
        cursor.execute("COMMIT")
        cursor.execute("CREATE TABLE copied AS SELECT * FROM t WHERE a < 10")
        cursor.execute(f"INSERT INTO t (a, v) VALUES (1, REPEAT('large', {LARGE // 5}))")


def tables_of(primary):
    rows = {name: primary.ask(f"SELECT id, a, v FROM shop.{name}") for name in ("t", "copied")}
    return {name: {id_: (a, v) for id_, a, v in found} for name, found in rows.items()}


@pytest.fixture(params=["plain", "compressed", "without checksums"])
def worked(primary, request):
    """A primary after the work, and where the work begins."""
    start = primary.place()
    with set_to(primary, request.param):
        work(primary, compressed=request.param == "compressed")
    return primary, start


@contextmanager
def set_to(primary, form):
    """Let the server write this form. To change the checksums begins a file."""
    if form == "without checksums":
        name, value, usual = "binlog_checksum", "NONE", "CRC32"
    elif form == "compressed" and primary.kind is Kind.MARIADB:
        name, value, usual = "log_bin_compress", "ON", "OFF"
    else:
        yield
        return
    primary.run(f"SET GLOBAL {name} = {value}")
    try:
        yield
    finally:
        primary.run(f"SET GLOBAL {name} = {usual}")


def test_ranges_give_the_rows_wherever_the_log_is_cut(worked):
    primary, start = worked
    base_name, bounds, prepared = walked(primary, start)
    reader = BinlogRangeReader(settings_of(primary.url), base_name, prepared, Server(settings_of(primary.url)).identity())
    whole = read(reader, [bounds[0], bounds[-1]])
    assert rows_after(whole) == tables_of(primary)
    pieces = read(reader, [bounds[0], *sorted(random.Random(7).sample(bounds[1:-1], 20)), bounds[-1]])
    assert sorted(pieces) == sorted(whole)


def test_ranges_give_the_same_through_connections_that_are_cut(primary, monkeypatch):
    monkeypatch.setattr(range_reading, "_PAUSES_S", (0.01,))
    start = primary.place()
    work(primary, compressed=False)
    base_name, bounds, prepared = walked(primary, start)
    whole = read(BinlogRangeReader(settings_of(primary.url), base_name, prepared), [bounds[0], bounds[-1]])
    address = make_url(primary.url)
    places = random.Random(3)
    after = [places.choice((500, 1500, 3000, 20_000, 100_000, 5_000_000)) + places.randrange(400) for _ in range(25)]
    with cutting(address.host, address.port or 3306, after) as proxy:
        through = address.set(host="127.0.0.1", port=proxy.port).render_as_string(hide_password=False)
        assert sorted(read(BinlogRangeReader(settings_of(through), base_name, prepared), [bounds[0], bounds[-1]])) == sorted(whole)
        assert proxy.cuts > 10


def test_a_purged_file_and_a_place_beyond_the_end_are_named(primary):
    base_name, first = place_of(primary.place())
    IDLE.close()  # MySQL keeps files that are read
    primary.purge()
    reader = BinlogRangeReader(settings_of(primary.url), base_name, {})
    with pytest.raises(SourceError) as purged:
        read(reader, [first, first + 1])
    assert purged.value.facts["kind"] == "purged"
    _, end = place_of(primary.place())
    with pytest.raises(SourceError) as beyond:
        read(reader, [end + 5000, end + 6000])
    assert beyond.value.facts["kind"] == "other_log"


def test_another_server_is_not_read(primary):
    base_name, first = place_of(primary.place())
    with pytest.raises(SourceError) as other:
        read(BinlogRangeReader(settings_of(primary.url), base_name, {}, "another"), [first, first + 1])
    assert other.value.facts["kind"] == "other_server"


def test_ids_that_are_in_use_are_refused(primary):
    base_name, first = place_of(primary.place())
    settings = BinlogSettings(url=primary.url, server_ids=(430_000_100, 430_000_101))
    in_use = [EventStream(settings, base_name, first, bodies=False) for _ in range(2)]
    with pytest.raises(SourceError, match="all server ids for reading the binlog are in use"):
        EventStream(settings, base_name, first, bodies=False)
    for stream in in_use:
        stream.close()
