"""The rows at exactly the checkpoint, and the latecomers among them."""

from applier.coordinator.cache import Cache
from applier.coordinator.step_choice import CheckpointGroup
from applier.model.range_report import RangeId
from tests.timeline.report import report_of
from tests.timeline.scenario import P0, folded, row


def cache_of(*rows):
    cache = Cache()
    for at, one in enumerate(rows):
        report, _ = report_of(RangeId(P0, at, at + 1), [one], 0)
        cache.open_batch([report.range])
        cache.add(report)
    return cache


def test_after_a_restart_every_row_at_the_checkpoint_is_a_latecomer():
    assert CheckpointGroup(frozenset()).has_latecomer(cache_of(row(5)), 5)
    assert not CheckpointGroup(frozenset()).has_latecomer(cache_of(row(4), row(6)), 5)


def test_a_row_that_was_reported_before_the_segment_was_made_belongs_to_its_group():
    cache, group = cache_of(row(5), row(5, key=2)), CheckpointGroup(frozenset())
    group.segment_applied(1, moves=True)
    assert group.has_latecomer(cache, 5)
    group.segment_applied(2, moves=False)
    assert not group.has_latecomer(cache, 5)


def test_rows_of_a_table_that_a_ddl_touched_are_no_latecomers():
    group = CheckpointGroup(frozenset())
    group.ddl_executed(folded("b"), 0, moves=False)
    assert group.has_latecomer(cache_of(row(5)), 5)
    group.ddl_executed(folded("a"), 0, moves=False)
    assert group.settled_tables == folded("a", "b")
    assert not group.has_latecomer(cache_of(row(5)), 5)


def test_a_ddl_that_may_have_touched_everything_leaves_no_latecomer_until_the_checkpoint_moves():
    group = CheckpointGroup(frozenset())
    group.ddl_executed(None, 0, moves=True)
    group.ddl_executed(folded("b"), 0, moves=False)
    assert not group.has_latecomer(cache_of(row(5)), 5)
    group.segment_applied(0, moves=True)
    assert group.has_latecomer(cache_of(row(5)), 5)
