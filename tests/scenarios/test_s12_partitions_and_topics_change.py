"""S12, S14 and the defects of others around streams: partitions and topics come, go silent and disappear while rows are hot."""

import random

import pytest

from applier.coordinator import Policy
from applier.model.errors import NeedsOperator
from applier.model.position import Stream
from tests.builders.handwritten import ddl, resolved
from tests.builders.stage import P0, P1, P2, P3, Stage, create, gone, put, ran
from tests.rig.programs import PROGRAMS

OTHER = Stream("other", 0)


def announced(partitions):
    return {"t": 4}, {"partition": partitions}


@pytest.mark.parametrize("announces", [False, True])
@pytest.mark.parametrize("program", PROGRAMS)
def test_s12_hot_rows_move_from_two_partitions_to_four(tmp_path, program, announces):
    stage = Stage(tmp_path, policy=Policy(segment_rows=2)).everywhere(create(10))
    for ts in range(20, 40):
        stage.write((P0, P1)[ts % 2], put(ts, ts % 4, ts))
    stage.everywhere(resolved(40))
    program(stage.replica())
    assert stage.rows() == [(0, 36), (1, 37), (2, 38), (3, 39)]
    # The producer starts again at its checkpoint: some rows are sent again, to other partitions.
    stage.streams = (P0, P1, P2, P3)
    if announces:
        stage.everywhere(announced(4))
    for ts in (35, 36, 38, 39, *range(41, 61)):
        stage.write(stage.streams[ts % 4], put(ts, ts % 4, ts))
    stage.write(P0, resolved(60)).write(P1, resolved(60))
    program(stage.replica())
    # Nothing above 40 before the new partitions have promised it.
    assert stage.rows() == [(0, 36), (1, 37), (2, 38), (3, 39)]
    stage.write(P2, gone(60, 2), resolved(60)).write(P3, resolved(60))
    program(stage.replica())
    assert stage.rows() == [(0, 60), (1, 57), (3, 59)]


def test_s12_partitions_that_an_admin_event_leaves_out_are_not_waited_for_also_after_a_restart(tmp_path):
    stage = Stage(tmp_path, P0, P1, P2).everywhere(create(10)).write(P2, put(20, 1, 1), put(35, 2, 2)).everywhere(resolved(30))
    stage.everywhere(announced(2))
    stage.streams = (P0, P1)
    # What the closed partition had not promised is sent again.
    stage.write(P0, put(35, 2, 2), put(40, 1, 4)).everywhere(resolved(50))
    assert stage.catch_up().checkpoint_ts == 50
    assert stage.rows() == [(1, 4), (2, 2)]
    stage.write(P1, put(60, 3, 3)).everywhere(resolved(70))
    assert stage.catch_up().checkpoint_ts == 70
    assert stage.rows() == [(1, 4), (2, 2), (3, 3)]


@pytest.mark.parametrize("seed", range(12))
def test_s12_any_growth_in_any_pieces_ends_at_the_last_version_of_each_row(tmp_path, seed):
    chosen = random.Random(seed)
    stage = Stage(tmp_path, P0, policy=Policy(segment_rows=3, range_records=2)).everywhere(create(10))
    last, ts = {}, 20
    for partitions in (1, 2, 4):
        if partitions > 1 and chosen.random() < 0.7:
            stage.everywhere(announced(partitions))
        stage.streams = (P0, P1, P2, P3)[:partitions]
        for _ in range(chosen.randint(1, 3)):
            for _ in range(chosen.randint(1, 9)):
                key, ts = chosen.randrange(5), ts + chosen.randint(1, 3)
                last[key] = ts
                # Sent twice, as after a restart of the producer.
                stage.write(stage.streams[key % partitions], *[put(ts, key, ts)] * chosen.randint(1, 2))
            stage.everywhere(resolved(ts))
            if chosen.random() < 0.6:
                stage.catch_up()
                assert stage.rows() == sorted(last.items())
    stage.catch_up()
    assert stage.rows() == sorted(last.items())


@pytest.mark.parametrize("program", PROGRAMS)
def test_s14_a_topic_with_another_number_of_partitions_joins(tmp_path, program):
    stage = Stage(tmp_path, tables=("orders", "extra")).everywhere(create(10), resolved(20))
    program(stage.replica())
    stage.write(OTHER, create(30, "extra"), put(31, 1, 1, "extra"), resolved(40)).everywhere(resolved(40))
    program(stage.replica())
    assert stage.rows("extra") == [(1, 1)]


def test_d7_a_ddl_of_which_partition_0_has_no_copy_runs_and_its_copies_run_once(tmp_path):
    """Theirs: copies on other partitions are thrown away."""
    stage = Stage(tmp_path).everywhere(create(10))
    stage.write(P1, ddl(20, "TRUNCATE TABLE `orders`", t=11)).everywhere(resolved(30)).catch_up()
    stage.everywhere(ddl(20, "TRUNCATE TABLE `orders`", t=11)).everywhere(resolved(40)).catch_up()
    assert [one for one in ran(stage.replica()) if one[0] == 20] == [(20, "TRUNCATE TABLE")]


def test_d18_each_partition_of_each_topic_has_its_own_progress(tmp_path):
    """Theirs: progress by partition number alone, so that two topics overwrite each other's."""
    stage = (
        Stage(tmp_path, P0, OTHER).everywhere(create(10)).write(P0, put(20, 1, 1), resolved(50)).write(OTHER, put(40, 1, 2), resolved(30))
    )
    assert stage.catch_up().checkpoint_ts == 30
    assert stage.rows() == [(1, 1)]
    positions = stage.replica().stored_positions()
    assert (positions[P0].resolved_ts, positions[OTHER].resolved_ts) == (50, 30)
    stage.write(OTHER, resolved(50)).catch_up()
    assert stage.rows() == [(1, 2)]


def test_d29_a_partition_that_appears_is_read_and_one_that_is_never_used_holds_nothing_back(tmp_path):
    """Theirs: the number of partitions is read once; a record from another one is a panic, an unused one blocks for ever."""
    stage = Stage(tmp_path).everywhere(create(10)).write(P0, put(20, 1, 1)).everywhere(resolved(30))
    stage.catch_up()
    # P2 exists from now on, and holds nothing: the fake source lists every partition below the highest one with a record.
    stage.write(P3, put(40, 2, 2), resolved(50)).everywhere(resolved(50))
    assert stage.catch_up().checkpoint_ts == 50
    assert stage.rows() == [(1, 1), (2, 2)]


def test_d35_a_row_in_any_partition_is_applied_whatever_dispatcher_should_have_put_it_elsewhere(tmp_path):
    """Theirs: the dispatcher's hash is computed again, and any difference is a panic."""
    stage = Stage(tmp_path, P0, P1, P2, P3).everywhere(create(10))
    for ts in range(20, 32):
        stage.write(stage.streams[ts * 7 % 4], put(ts, 1, ts))
    stage.everywhere(resolved(40)).catch_up()
    assert stage.rows() == [(1, 31)]


def test_a_record_in_a_partition_that_the_settings_exclude_stops_the_run(tmp_path):
    stage = Stage(tmp_path, P0, policy=Policy(required_partitions={"feed": 1})).everywhere(create(10), resolved(20))
    stage.catch_up()
    stage.write(P1, put(30, 1, 1))
    with pytest.raises(NeedsOperator) as caught:
        stage.catch_up()
    assert caught.value.facts["kind"] == "excluded_partition"


@pytest.mark.parametrize("begun", [True, False])
def test_a_topic_that_is_deleted_or_made_again_while_the_program_is_down_stops_it(tmp_path, begun):
    stage = Stage(tmp_path, P0, OTHER).everywhere(create(10)).write(OTHER, put(20, 1, 1)).everywhere(resolved(30))
    stage.catch_up()
    made_again = Stage(tmp_path, P0, *([OTHER] if begun else ())).everywhere(create(10), resolved(30))
    with pytest.raises(NeedsOperator) as caught:
        made_again.catch_up()
    assert caught.value.facts["kind"] == "recreated"
