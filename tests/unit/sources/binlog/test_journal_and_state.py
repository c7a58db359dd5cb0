"""What the scan remembers, and what is stored of it beside the progress."""

from contextlib import contextmanager

import pytest

from applier.model.errors import NeedsOperator
from applier.model.position import Ts
from applier.sources.binlog.gtid_set import MariadbGtidSet
from applier.sources.binlog.state import CUT_BYTES, LEAST_GROUP_BYTES, Beginning, EndedGroup, Journal, SourceState
from applier.sources.binlog.timeline import BinlogTimeline


def journal_of(*ends: int) -> Journal:
    journal = Journal(Beginning(position=100, executed=MariadbGtidSet.parse("0-1-5"), prepared={"a": 40}))
    begin = 100
    for number, end in enumerate(ends, 6):
        journal.add_group(EndedGroup(begin, end, f"0-1-{number}", 1000 * number))
        journal.add_boundary(end, end - begin)
        begin = end
    return journal


def test_the_executed_set_is_that_of_the_groups_that_have_ended():
    journal = journal_of(200, 300, 400)
    assert [str(journal.executed_at(ts)) for ts in (100, 199, 200, 399, 400, 250)] == [f"0-1-{n}" for n in (5, 5, 6, 7, 8, 6)]
    assert journal.last_at(299) == EndedGroup(100, 200, "0-1-6", 6000)
    assert journal.last_at(150) is None


def test_a_place_is_never_inside_of_a_group():
    # 199: the DDL at the end of a group is not done; 250: one that its rows follow is.
    journal = journal_of(200, 300)
    assert [journal.boundary_at(ts) for ts in (100, 150, 199, 200, 250, 300, 310)] == [100, 100, 100, 200, 200, 300, 310]


@pytest.mark.parametrize("asked", [100, 250, 300, 400])
def test_what_is_forgotten_stays_in_the_sum(asked):
    journal = journal_of(200, 300, 400)
    journal.prepare("b", 200, 300)
    journal.settle("a", 400)
    journal.executed_at(asked)
    journal.forget(300)
    assert journal.beginning == 300
    assert str(journal.executed_at(300)) == "0-1-7"
    assert str(journal.executed_at(400)) == "0-1-8"
    assert journal.last_at(300) == EndedGroup(200, 300, "0-1-7", 7000)
    assert journal.prepared_at(300) == {"a": 40, "b": 200}
    assert journal.prepared_at(400) == {"b": 200}


def test_an_xid_that_was_used_again_is_known_at_both_places():
    journal = journal_of(200, 300, 400)
    journal.settle("a", 200)
    journal.prepare("a", 200, 300)
    assert journal.ever_prepared() == {"a": (40, 200)}
    assert [journal.prepared_at(ts).get("a") for ts in (100, 200, 300)] == [40, None, 200]


def test_cuts_lie_about_a_mebibyte_apart_and_the_last_boundary_is_always_one():
    ends = [100 + n * CUT_BYTES // 2 for n in range(1, 6)]
    journal = journal_of(*ends)
    assert [cut.offset for cut in journal.cuts()] == [ends[1], ends[3], ends[4]]
    assert sum(cut.size for cut in journal.cuts()) == ends[-1] - 100
    journal.forget(ends[1])
    assert [cut.offset for cut in journal.cuts()] == [ends[3], ends[4]]
    assert journal.size_behind(ends[1]) == CUT_BYTES


def test_many_small_groups_count_more_than_their_bytes():
    journal = journal_of(*range(200, 1_200, 10))
    assert journal.size_behind(100) == 100 * LEAST_GROUP_BYTES
    assert journal.size_behind(1_100) == 9 * LEAST_GROUP_BYTES


def test_when_files_were_begun_is_known_from_the_beginning_on_and_forgotten_with_what_lies_before():
    journal = Journal(Beginning(position=1 << 32, executed=MariadbGtidSet(), created_s=7))
    assert (journal.note_file(1 << 32 | 4, 7), journal.note_file(1 << 32 | 4, 8), journal.note_file(2 << 32 | 4, 9)) == (True, False, True)
    assert (journal.created_at(1 << 32 | 500), journal.created_at(2 << 32), journal.created_at(3 << 32)) == (7, 9, 0)
    journal.forget(2 << 32 | 4)
    assert journal.files == {2: 9}


def test_a_state_is_stored_as_text_and_read_again():
    state = SourceState(
        is_mariadb=True,
        server="7",
        generation=1,
        base_name="binlog",
        position=500,
        gtid_set="0-1-5",
        last=EndedGroup(400, 500, "0-1-5", 1),
        prepared={"X'61',X'',1": 300},
    )
    assert SourceState.parse(state.text()) == state
    assert str(state.beginning().executed) == "0-1-5"


@pytest.mark.parametrize(
    ("version", "has_gaps", "expected"), [(1, False, "0-1-7,1-1-3"), (1, True, "0-2-13,1-1-3"), (2, False, "0-2-13,1-1-3")]
)
def test_a_state_of_version_1_has_the_last_transaction_of_a_domain_in_its_last_group(version, has_gaps, expected):
    last, gtid_set = EndedGroup(400, 500, "0-1-7", 1), "0-2-13,1-1-3"
    state = SourceState(
        version=version,
        is_mariadb=True,
        server="7",
        generation=0,
        base_name="b",
        position=500,
        gtid_set=gtid_set,
        has_gaps=has_gaps,
        last=last,
    )
    assert str(SourceState.parse(state.text()).executed) == expected


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"version": 99}'])
def test_a_state_that_cannot_be_read_needs_the_operator(text):
    with pytest.raises(NeedsOperator):
        SourceState.parse(text)


class QuietScan:
    """A scan that has found the groups of ``journal_of``, and that the server is quiet at 9 s."""

    quiet_ms = 9_000

    @contextmanager
    def journal(self):
        yield journal_of(200, 300)


def test_a_place_is_upstreams_state_until_the_first_group_behind_it_was_written():
    timeline = BinlogTimeline()
    assert timeline.time_ms(Ts(100)) is None
    timeline.follow(QuietScan(), 0, "b")
    # 199: a DDL at the end of the first group.
    assert [timeline.time_ms(Ts(ts)) for ts in (100, 150, 199, 200, 299, 300)] == [6_000, 6_000, 7_000, 7_000, 9_000, 9_000]
