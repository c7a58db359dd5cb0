"""How values are written for people."""

import pytest

from applier.model.errors import ProtocolError, Remedy
from applier.model.position import MAX_TS, NO_TS, Ts
from applier.sources.binlog.position import BinlogPosition
from applier.sources.binlog.timeline import StoredTimeline
from applier.sources.ticdc.tso import TSO_TIMELINE
from applier.telemetry.log import spelled
from applier.telemetry.wording import WIDTH, count, duration, named_some, named_text, one_line, time_text

PLACE = BinlogPosition(0, 42, 157).number


@pytest.mark.parametrize(("number", "text"), [(0, "0 rows"), (1, "1 row"), (2000, "2,000 rows")])
def test_counts_have_their_plural(number, text):
    assert count(number, "row") == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.04, "0.0 s"),
        (9.94, "9.9 s"),
        (12.3, "12 s"),
        (119.4, "119 s"),
        (125, "2 min 5 s"),
        (7800, "2 h 10 min"),
        (31_000_000, "358 d 19 h"),
    ],
)
def test_durations_have_the_unit_that_fits(seconds, text):
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("ts", "text"),
    [
        (NO_TS, "none"),
        (Ts(1_700_000_000_123 << 18 | 5), "2023-11-14 22:13:20.123Z"),
        (Ts(MAX_TS), "4199-11-24 01:22:57.663Z"),
    ],
)
def test_a_ts_is_shown_as_the_time_of_its_commit(ts, text):
    assert time_text(ts, TSO_TIMELINE) == text


def test_a_text_of_several_lines_becomes_one_without_control_characters():
    assert one_line("a\n\t b\x07\x1b[31m\udcff") == "a b\N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER}[31m\N{REPLACEMENT CHARACTER}"
    assert len(one_line("x" * 1000)) == WIDTH


OF_A_BINLOG = StoredTimeline(base_name="mariadb-bin", known_at=PLACE, known_ms=1_700_000_000_000)


def test_a_command_of_a_remedy_names_a_place_of_a_binlog_as_it_is_shown():
    error = ProtocolError(
        "no",
        remedy=Remedy("test.remedy", "`applier skip --position …` or `applier ddl skip --ts …`"),
        topic="binlog",
        offset=PLACE,
        commit_ts=PLACE,
    )
    named = "mariadb-bin.000042:157"
    assert error.remedy_with(spelled(error.facts, OF_A_BINLOG)) == f"`applier skip --position {named}` or `applier ddl skip --ts {named}`"


def test_a_place_of_a_binlog_is_written_with_its_time_if_that_is_known():
    assert named_text(Ts(PLACE), OF_A_BINLOG) == "mariadb-bin.000042:157 (2023-11-14 22:13:20.000Z)"
    assert (time_text(Ts(PLACE - 1), OF_A_BINLOG), named_text(Ts(PLACE - 1), OF_A_BINLOG)) == (
        "mariadb-bin.000042:156",
        "mariadb-bin.000042:156",
    )


@pytest.mark.parametrize(
    ("number", "shown"), [(0, ""), (1, "0"), (5, "0, 1, 2, 3, 4"), (6, "0, 1, 2, 3, 4 and 1 more"), (2_005, "0, 1, 2, 3, 4 and 2,000 more")]
)
def test_the_first_of_many_names_are_written_and_the_others_are_counted(number, shown):
    assert named_some(range(number)) == shown
