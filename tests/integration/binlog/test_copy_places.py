"""Where views of a copy lie in the binlog of a real server, under eight writers; and that a session that was lost has no view any more."""

import re
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest

from applier.copy.lines import rows_of
from applier.copy.port import KeyRange
from applier.model.errors import ApplierError
from applier.model.events import TableName
from applier.mysql.session import read_rows
from applier.selection import TableSelection
from applier.sources.binlog.copy import BinlogCopyUpstream
from applier.sources.binlog.position import BinlogPosition, split_file_name
from applier.sources.binlog.settings import BinlogSettings
from tests.rig.database import Kind
from tests.rig.mysql_oracle import connect

pytestmark = pytest.mark.timeout(240)

SCHEMA = "copy_places"
MARKS = TableName(SCHEMA, "marks")
WRITERS = 8
VIEWS = 8
MARK = re.compile(r"INSERT INTO marks VALUES \((\d+), (\d+)\)")


@pytest.fixture
def upstream(primary):
    """A primary with an empty table of marks, and a file of its log without marks of earlier tests."""
    primary.clear()
    primary.rotate()
    primary.run(f"CREATE DATABASE {SCHEMA} DEFAULT CHARACTER SET utf8mb4")
    primary.run(f"CREATE TABLE {MARKS} (writer INT, number INT, PRIMARY KEY (writer, number))")
    return primary


@contextmanager
def writing(upstream) -> Iterator[None]:
    """Write numbered marks by eight sessions, each mark in a transaction of its own, until the block ends."""
    stop = threading.Event()
    failed = list[Exception]()

    def write(writer: int) -> None:
        try:
            with closing(connect(upstream.url)) as connection, connection.cursor() as cursor:
                connection.autocommit(True)
                cursor.execute(f"USE {SCHEMA}")
                if upstream.kind is Kind.MYSQL:
                    cursor.execute("SET SESSION binlog_rows_query_log_events = 1")
                number = 0
                while not stop.is_set():
                    number += 1
                    cursor.execute(f"INSERT INTO marks VALUES ({writer}, {number})")
        except Exception as error:  # noqa: BLE001 - the test's thread says it
            failed.append(error)

    threads = [threading.Thread(target=write, args=(writer,)) for writer in range(WRITERS)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert failed == []


def marks_of(upstream, files):
    """Return where each mark is in the log: (writer, number) -> position."""
    found = {}
    for file in files:
        for _, position, _, _, _, info in upstream.ask(f"SHOW BINLOG EVENTS IN '{file}'"):
            if match := MARK.search(info):
                found[int(match[1]), int(match[2])] = BinlogPosition(0, split_file_name(file)[1], position).number
    return found


def seen_by(rows):
    """Return the last number of each writer that a view sees."""
    last = dict.fromkeys(range(WRITERS), 0)
    for block in rows.blocks():
        for writer, number in rows_of(block.lines):
            last[int(writer)] = max(last[int(writer)], int(number))
    return last


@pytest.mark.parametrize("exact", [False, True])
def test_views_lie_between_the_start_and_their_ends(upstream, exact):
    first = upstream.files()[-1]
    settings = BinlogSettings(url=upstream.url)
    views = []
    with BinlogCopyUpstream(settings, TableSelection()) as source:
        (table,) = source.objects().tables
        with writing(upstream):
            for _ in range(VIEWS):
                # An exact view of a MySQL that never rests needs luck.
                with source.open_view([table.name] if exact and upstream.kind is Kind.MARIADB else []) as view:
                    with view.read(table) as rows:
                        seen = seen_by(rows)
                    views.append((view.start.start_ts, seen, view.start.is_exact, None))
                    with source.reader.open() as session, session.read(table, KeyRange(0, None, None)) as later:
                        seen = seen_by(later)
                        views.append((view.start.start_ts, seen, False, later.finish()))
        if exact:
            with source.open_view([table.name]) as view, view.read(table) as rows:
                views.append((view.start.start_ts, seen_by(rows), view.start.is_exact, None))
                assert view.start.is_exact
    files = upstream.files()
    marks = marks_of(upstream, files[files.index(first) :])
    assert len(marks) > VIEWS * WRITERS
    for start_ts, seen, is_exact, high_ts in views:
        for writer, last in seen.items():
            assert marks.get((writer, last + 1), start_ts) >= start_ts, "a view lacks a transaction before the start"
            if is_exact and last:
                assert marks[writer, last] < start_ts, "an exact view has a transaction behind its start"
            if high_ts is not None and last:
                assert marks[writer, last] < high_ts, "a view has a transaction behind its end"


def test_a_session_that_is_lost_between_two_chunks_opens_no_view_again(upstream):
    """A new session would have another time zone, another isolation level, and no view."""
    upstream.run(f"INSERT INTO {MARKS} VALUES (1, 1)")
    settings = BinlogSettings(url=upstream.url)
    with BinlogCopyUpstream(settings, TableSelection()) as source:
        (table,) = source.objects().tables
        with source.reader.open() as session:
            with session.read(table, KeyRange(0, None, None)) as rows:
                assert seen_by(rows)[1] == 1
                rows.finish()
                ((number,),) = read_rows(session.session, "SELECT CONNECTION_ID()")
                upstream.run(f"KILL {int(number)}")
            with pytest.raises(ApplierError), session.read(table, KeyRange(1, None, None)) as rows:
                list(rows.blocks())
