"""How values are written for people."""

import pytest

from applier.model.position import MAX_TS, NO_TS, Ts
from applier.telemetry.wording import WIDTH, count, duration, one_line, time_text


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
    assert time_text(ts) == text


def test_a_text_of_several_lines_becomes_one_without_control_characters():
    assert one_line("a\n\t b\x07\x1b[31m\udcff") == "a b\N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER}[31m\N{REPLACEMENT CHARACTER}"
    assert len(one_line("x" * 1000)) == WIDTH
