"""DESIGN.md section 3, paragraph by paragraph: the starting point, rows, DDLs, the checkpoint. Streams: ``test_time_rules_of_streams``."""

import pytest

from applier.ddl import identity
from applier.model.errors import InvariantViolation, NeedsOperator
from applier.model.events import DdlIdentity, FoldedName
from tests.timeline.scenario import P0, P1, Scenario, ddl, folded, positions, resolved, row

ALTER = "ALTER TABLE `a` ADD COLUMN `x` INT"


# --- starting point ----------------------------------------------------------------------------------------------------


def test_rows_and_ddls_up_to_start_ts_are_part_of_the_dump():
    s = Scenario(checkpoint=5, start=5).write(P0, row(4), ddl(4, ALTER), row(5), ddl(5, ALTER), row(6), resolved(7))
    assert s.coordinator.floor_ts == 6
    assert s.turn() == [("apply", 5, 7, 1)]
    assert s.coordinator.streams[0].replays == 2


def test_a_replica_without_start_ts_begins_at_zero():
    s = Scenario().write(P0, row(1), resolved(1))
    assert s.coordinator.floor_ts == 1
    assert s.turn() == [("apply", 0, 1, 1)]


# --- rows --------------------------------------------------------------------------------------------------------------


def test_a_window_holds_its_watermark_and_not_its_checkpoint():
    s = Scenario(checkpoint=2).write(P0, row(2, key=1), row(3), row(5), row(6), resolved(5))
    s.list()
    s.read()
    s.list()
    step = s.next_segment()
    assert (step.window.after_ts, step.window.upto_ts, step.window.again, step.segment.rows) == (2, 5, True, 3)


def test_a_latecomer_at_the_checkpoint_waits_and_brings_its_whole_group_along():
    s = Scenario().write(P0, row(3, key=1), resolved(3))
    s.turn()
    s.write(P0, row(3, key=2))
    assert s.turn() == []
    s.write(P0, row(4), resolved(5))
    s.list()
    s.read()
    s.list()
    step = s.next_segment()
    assert (step.window.after_ts, step.window.upto_ts, step.window.again, len(step.segment.ranges)) == (3, 5, True, 3)


def test_a_latecomer_that_arrives_while_the_segment_is_written_still_counts():
    s = Scenario().write(P0, row(3, key=1), resolved(3))
    s.list()
    s.read()
    s.list()
    step = s.next_segment()
    s.write(P0, row(3, key=2), resolved(4))
    s.list()
    s.read()
    s.confirm(step)
    s.list()
    assert s.steps() == [("again", 3, 4, 2)]


def test_without_a_latecomer_the_group_is_not_applied_again():
    s = Scenario().write(P0, row(3, key=1), resolved(3))
    s.turn()
    s.write(P0, row(4), resolved(5))
    assert s.turn() == [("apply", 3, 5, 1)]


def test_after_a_restart_every_row_at_the_checkpoint_counts_as_a_latecomer():
    s = Scenario(checkpoint=3, stored=positions(t0=0)).write(P0, row(3), resolved(4))
    assert s.turn() == [("again", 3, 4, 1)]


def test_the_group_at_the_checkpoint_is_applied_again_before_a_ddl_there():
    s = Scenario(checkpoint=3, stored=positions(t0=0)).write(P0, row(3), ddl(3, ALTER), resolved(4))
    assert s.turn() == [("again", 3, 3, 1), ("ddl", 3, ALTER), ("apply", 3, 4, 0)]


@pytest.mark.parametrize("touched", [folded("a"), folded(""), None])
def test_rows_of_a_table_that_a_ddl_at_the_checkpoint_touched_are_not_applied_again(touched):
    s = Scenario(checkpoint=3, stored=positions(t0=0), touched=touched).write(P0, row(3), resolved(4))
    assert s.turn() == [("apply", 3, 4, 0)]


def test_the_group_of_other_tables_is_applied_again_without_the_touched_ones():
    s = Scenario(checkpoint=3, stored=positions(t0=0), touched=folded("a")).write(P0, row(3, "a"), row(3, "b"), resolved(4))
    s.list()
    s.read()
    s.list()
    step = s.next_segment()
    assert (step.window.again, step.window.settled_tables, [table.name.table for table in step.segment.tables]) == (
        True,
        folded("a"),
        ["b"],
    )


def test_a_ddl_that_ran_here_excludes_its_tables_from_the_group():
    s = Scenario().write(P0, row(3, "a"), ddl(3, ALTER), resolved(4))
    s.list()
    s.read()
    s.list()
    s.confirm(s.next_segment())
    ran = s.coordinator.next_step()
    s.write(P0, row(3, "a"))
    s.list()
    s.read()
    s.list()
    s.confirm(ran)
    assert s.steps() == [("apply", 3, 4, 0)]


def test_a_ddl_that_cannot_be_parsed_excludes_everything_from_the_group():
    s = Scenario(checkpoint=2).write(P0, ddl(3, "FROB THE TABLE"), resolved(4))
    s.list()
    s.read()
    s.list()
    s.confirm(s.coordinator.next_step())
    ran = s.coordinator.next_step()
    s.write(P0, row(3, "b"))
    s.list()
    s.read()
    s.confirm(ran)
    s.list()
    assert s.steps() == [("apply", 3, 4, 0)]


def test_rows_of_a_table_without_a_key_at_an_applied_checkpoint_are_not_applied_again():
    s = Scenario(checkpoint=3, stored=positions(t0=0)).write(P0, row(3, "keyless"), resolved(4))
    assert s.turn() == [("apply", 3, 4, 0)]


# --- DDL ---------------------------------------------------------------------------------------------------------------


def test_ddl_waits_until_every_stream_passes_its_commit_ts():
    s = Scenario(P0, P1).write(P0, ddl(3, ALTER), resolved(9)).write(P1, resolved(3))
    assert s.turn() == [("apply", 0, 3, 0)]
    assert [d.query for d in s.coordinator.pending_ddls] == [ALTER]
    s.write(P1, resolved(4))
    assert s.turn() == [("ddl", 3, ALTER), ("apply", 3, 4, 0)]
    assert s.coordinator.pending_ddls == ()


def test_s11_rows_up_to_a_ddl_come_before_it_and_rows_above_after_it():
    s = Scenario().write(P0, row(4), row(3, "b"), row(2), ddl(3, ALTER), resolved(5))
    assert s.turn() == [("apply", 0, 3, 2), ("ddl", 3, ALTER), ("apply", 3, 5, 1)]


def test_a_ddl_without_rows_before_it_needs_no_segment():
    s = Scenario().write(P0, row(4), ddl(3, ALTER), resolved(5))
    assert s.turn() == [("ddl", 3, ALTER), ("apply", 3, 5, 1)]


def test_s10_ddls_run_by_ts_whatever_order_they_arrive_in():
    drop = "DROP TABLE `S`.`b`"
    s = Scenario().write(P0, ddl(4, ALTER), ddl(3, drop, "b"), resolved(5))
    assert s.turn() == [("ddl", 3, drop), ("ddl", 4, ALTER), ("apply", 4, 5, 0)]


def test_s7_copies_on_every_partition_replays_and_other_texts_are_one_ddl():
    other = "alter table s.a add column x int"
    s = Scenario(P0, P1).write(P0, ddl(3, ALTER), ddl(3, other), resolved(5)).write(P1, ddl(3, other), ddl(3, "??"), resolved(5))
    assert s.turn() == [("ddl", 3, ALTER), ("apply", 3, 5, 0)]
    s.write(P0, ddl(3, ALTER), resolved(6)).write(P1, ddl(3, "what is this"), resolved(6))
    assert s.turn() == [("apply", 5, 6, 0)]


def test_of_several_texts_of_a_ddl_the_one_that_can_be_parsed_runs():
    s = Scenario(P0, P1).write(P0, ddl(3, "??"), resolved(5)).write(P1, ddl(3, ALTER), resolved(5))
    assert s.turn() == [("ddl", 3, ALTER), ("apply", 3, 5, 0)]


def test_s3_the_pieces_of_a_rename_chain_are_different_ddls():
    first, second = "RENAME TABLE `S`.`a` TO `S`.`x`", "RENAME TABLE `S`.`b` TO `S`.`x`"
    between = "RENAME TABLE `S`.`x` TO `S`.`y`"
    s = Scenario().write(P0, ddl(3, first, "x"), ddl(3, between, "y"), ddl(3, second, "x"), resolved(4))
    assert [step[2] for step in s.turn()[:3]] == [first, between, second]


def test_s4_a_ddl_that_the_ledger_knows_is_a_replay_and_does_not_run_again():
    s = Scenario(checkpoint=3, stored=positions(t0=0), settled=[identity(ddl(3, ALTER))]).write(P0, ddl(3, ALTER), resolved(4))
    assert s.turn() == [("apply", 3, 4, 0)]


def test_a_ledger_entry_that_could_not_be_parsed_stands_for_any_text():
    settled = [DdlIdentity(2, FoldedName("s", "a"), None)]
    s = Scenario(checkpoint=3, stored=positions(t0=0), settled=settled).write(P0, ddl(2, ALTER), resolved(4))
    assert s.turn() == [("apply", 3, 4, 0)]


def test_a_ddl_below_the_checkpoint_that_the_ledger_does_not_know_stops():
    s = Scenario(checkpoint=3, stored=positions(t0=0)).write(P0, ddl(2, ALTER))
    s.list()
    with pytest.raises(NeedsOperator) as stop:
        s.read()
    assert (stop.value.facts["kind"], stop.value.facts["offset"], stop.value.facts["query"]) == ("missed_ddl", 0, ALTER)


def test_a_ddl_that_turns_up_below_an_open_segment_or_ddl_stops():
    for late, ts in ((ddl(2, ALTER), 3), (ddl(2, ALTER), 4)):
        s = Scenario().write(P0, *([row(1)] if ts == 3 else []), ddl(3, ALTER), resolved(4))
        s.list()
        s.read()
        s.list()
        while (step := s.coordinator.next_step()) and not hasattr(step, "positions"):
            s.confirm(step)
        s.write(P0, late)
        s.list()
        with pytest.raises(NeedsOperator):
            s.read()


def test_s9_a_ddl_at_the_watermark_stays_pending_at_the_end_of_a_catch_up():
    s = Scenario().write(P0, row(3), ddl(3, ALTER), resolved(3))
    assert s.turn() == [("apply", 0, 3, 1)]
    assert s.coordinator.is_caught_up({P0: 3})
    assert [d.commit_ts for d in s.coordinator.pending_ddls] == [3]


# --- the checkpoint ----------------------------------------------------------------------------------------------------


def test_the_checkpoint_moves_only_when_a_step_is_confirmed():
    s = Scenario().write(P0, row(2), resolved(3))
    s.list()
    s.read()
    s.list()
    step = s.next_segment()
    assert s.coordinator.checkpoint_ts == 0
    with pytest.raises(InvariantViolation):
        s.coordinator.next_step()
    assert not s.coordinator.is_caught_up({P0: 2})
    s.coordinator.withdraw(step)
    again = s.next_segment()
    assert again == step
    with pytest.raises(InvariantViolation):
        s.coordinator.applied(step)
    s.coordinator.applied(again)
    assert s.coordinator.checkpoint_ts == 3
