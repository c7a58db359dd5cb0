"""The table of events as text, at 80 and at 120 columns, and in a pipe."""

import pytest

from applier.cli.inspect import EventTable, Inspected
from applier.model.errors import ProtocolError
from applier.model.events import AdminEvent, Column, DdlEvent, ResolvedEvent, RowEvent, RowOperation
from applier.model.position import Offset, RecordPosition, Stream, Ts
from applier.sources.ticdc.tso import TSO_TIMELINE

TS = Ts(1_700_000_000_123 << 18)
NEXT_DAY = Ts(TS + (86_400_000 << 18))
HOSTILE = "\x1b[2J\u202e\x9b31m"


def row(value, ts=TS, operation=RowOperation.INSERT, table="orders"):
    image = {"id": Column(3, 11, value, is_key=True)}
    is_delete = operation is RowOperation.DELETE
    return RowEvent(
        commit_ts=ts,
        schema="shop",
        table=table,
        partition_id=None,
        operation=operation,
        only_handle_key=False,
        claim_check=None,
        after=None if is_delete else image,
        before=image if is_delete else None,
    )


CONTENT = [
    [row(5)],
    [row("x" * 100, operation=RowOperation.DELETE)],
    [DdlEvent(commit_ts=NEXT_DAY, schema="shop", table="", query="CREATE DATABASE\n`shop`", ddl_type=1)],
    [ResolvedEvent(NEXT_DAY)],
    [AdminEvent(NEXT_DAY, 8)],
    [],
    ProtocolError("two\nlines", kind="json"),
]


def shown(width):
    table = EventTable(width, timeline=TSO_TIMELINE)
    records = [Inspected(RecordPosition(Stream("feed", 2), Offset(81_200 + i)), content) for i, content in enumerate(CONTENT)]
    lines = [line for record in records for line in table.lines(record)]
    return [table.header(), *lines]


def test_a_pipe_gets_whole_lines_each_with_its_date():
    assert shown(None) == [
        "TIME (UTC)               TSO                OP       PLACE        TABLE        KEY",
        "2023-11-14 22:13:20.123Z 445644800032243712 insert   feed/2@81200 shop.orders  id=5",
        f"2023-11-14 22:13:20.123Z 445644800032243712 delete   feed/2@81201 shop.orders  id='{'x' * 100}'",
        "2023-11-15 22:13:20.123Z 445667449273843712 ddl      feed/2@81202 shop         CREATE DATABASE `shop`",
        "2023-11-15 22:13:20.123Z 445667449273843712 resolved feed/2@81203",
        "2023-11-15 22:13:20.123Z 445667449273843712 admin    feed/2@81204              8 partitions",
        "                                            -        feed/2@81205              no events",
        "                                            error    feed/2@81206              unreadable (json): two lines",
    ]


def test_at_120_columns_lines_are_cut_and_have_their_date():
    lines = shown(120)
    assert max(map(len, lines)) == 120
    assert lines[2].endswith("x…")
    assert lines[1].startswith("2023-11-14 22:13:20.123Z 445644800032243712 insert")


def test_at_80_columns_the_date_has_a_line_where_it_changes():
    lines = shown(80)
    assert max(map(len, lines)) <= 80
    assert lines[1:4] == [
        "2023-11-14",
        "22:13:20.123Z 445644800032243712 insert   feed/2@81200 shop.orders  id=5",
        "22:13:20.123Z 445644800032243712 delete   feed/2@81201 shop.orders  id='xxxxxxx…",
    ]
    assert lines[4] == "2023-11-15"
    assert sum(line.startswith("2023-") for line in lines) == 2


def test_why_a_record_cannot_be_read_is_never_cut():
    why = "the record's key does not begin with protocol version 1"
    lines = list(
        EventTable(80, timeline=TSO_TIMELINE).lines(
            Inspected(RecordPosition(Stream("feed", 2), Offset(1)), ProtocolError(why, kind="version"))
        )
    )
    assert max(map(len, lines)) <= 80
    assert lines[0].split() == ["error", "feed/2@1"]
    assert " ".join(line.strip() for line in lines[1:]) == f"unreadable (version): {why}"


@pytest.mark.parametrize("content", [[row(HOSTILE)], [row(1, table=HOSTILE)], ProtocolError(HOSTILE, kind="json")])
def test_control_characters_of_upstream_do_not_reach_the_terminal(content):
    for line in EventTable(timeline=TSO_TIMELINE).lines(Inspected(RecordPosition(Stream("feed", 2), Offset(1)), content)):
        assert line.isprintable()


def test_on_a_terminal_the_operation_has_a_colour():
    (line,) = EventTable(timeline=TSO_TIMELINE, _colours=True).lines(Inspected(RecordPosition(Stream("feed", 2), Offset(1)), [row(5)]))
    assert line.startswith("\x1b[32m")
