import json

import pytest

from applier.model.errors import ConfigError
from applier.model.position import Ts
from applier.sinks.table_reader import Checksum, Scope
from applier.verify.difference import RangeResult
from applier.verify.finished_ranges import FinishedRanges
from applier.verify.private_file import write_private
from applier.verify.verification import Pace
from tests.unit.verify.pairs import side_column, table_pair

PAIR = table_pair(side_column("id", "int"))
SCOPE = Scope((b"1",), (b"9",))
ROWS = Checksum(8, 4711)


def equal_at(ts):
    return RangeResult(ts=Ts(ts), upstream=ROWS, sink=ROWS)


def test_no_more_rows_are_read_in_a_second_than_the_limit():
    now, slept = [100.0], []

    def sleep(seconds):
        slept.append(seconds)
        now[0] += seconds

    pace = Pace(1000, now=lambda: now[0], sleep=sleep)
    for _ in range(4):
        now[0] += 0.25  # what the database takes
        pace.spend(500)
    assert slept == pytest.approx([0.25] * 4)
    now[0] += 3600
    pace.spend(5000)
    assert slept[4:] == pytest.approx([4.0])


def test_without_a_limit_nothing_waits():
    Pace(0, sleep=lambda _: pytest.fail("it waited")).spend(10**9)


def test_a_range_that_was_equal_is_found_again_at_the_same_checkpoint_only(tmp_path):
    path = tmp_path / "state"
    first = FinishedRanges(path, "a b")
    first.add(PAIR, SCOPE, equal_at(5))
    first.save()
    again = FinishedRanges(path, "a b")
    assert again.find(PAIR, SCOPE, Ts(5)) == equal_at(5)
    assert again.find(PAIR, SCOPE, Ts(6)) is None
    assert again.find(PAIR, Scope((b"1",), (b"8",)), Ts(5)) is None
    assert again.find(table_pair(side_column("id", "bigint")), SCOPE, Ts(5)) is None
    assert (again.is_behind(Ts(5)), again.is_behind(Ts(6))) == (False, True)


def test_ranges_that_differ_or_have_no_checkpoint_are_not_kept(tmp_path):
    finished = FinishedRanges(tmp_path / "state", "")
    finished.add(PAIR, SCOPE, RangeResult(ts=Ts(5), upstream=ROWS, sink=Checksum(8, 1)))
    finished.add(PAIR, SCOPE, equal_at(0))
    finished.save()
    assert json.loads((tmp_path / "state").read_text())["equal"] == {}


@pytest.mark.parametrize(
    "content", ["", "{}", "[]", '{"format": 1, "of": "others", "equal": {}}', '{"format": 9, "of": "a b", "equal": {}}']
)
def test_a_file_that_is_none_of_this_comparison_is_refused(tmp_path, content):
    (tmp_path / "state").write_text(content)
    with pytest.raises(ConfigError, match="state file"):
        FinishedRanges(tmp_path / "state", "a b")


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path):
    path = tmp_path / "fix.sql"
    path.write_text("old")

    def broken():
        yield "half"
        raise ValueError

    with pytest.raises(ValueError):
        write_private(path, broken())
    assert (path.read_text(), [each.name for each in tmp_path.iterdir()]) == ("old", ["fix.sql"])
    write_private(path, ["new"])
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("new", 0o600)


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    with pytest.raises(ConfigError, match="cannot be written"):
        write_private(tmp_path / "absent" / "fix.sql", ["x"])
