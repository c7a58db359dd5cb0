"""The rows at exactly the checkpoint, and the latecomers among them."""

from applier.coordinator import cache as cache_module
from applier.coordinator.cache import Cache
from applier.coordinator.step_choice import CheckpointGroup
from applier.model.range_report import RangeId
from tests.timeline.report import report_of
from tests.timeline.scenario import P0, folded, row


def added(cache, at, one):
    report, _ = report_of(RangeId(P0, at, at + 1), [one], 0)
    cache.open_batch([report.range])
    cache.add(report)


def cache_of(*rows):
    cache = Cache()
    for at, one in enumerate(rows):
        added(cache, at, one)
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


def test_the_tables_of_a_range_are_looked_at_once_however_many_ddls_there_are_at_the_checkpoint(monkeypatch):
    looked, is_at = [], cache_module._is_at
    monkeypatch.setattr(cache_module, "_is_at", lambda ts, table, settled: looked.append(table) or is_at(ts, table, settled))
    cache, group = cache_of(row(5)), CheckpointGroup(folded("a"))
    for number in range(100):
        assert not group.has_latecomer(cache, 5)
        group.ddl_executed(folded(f"b{number}"), 1, moves=False)
    assert len(looked) == 1
    added(cache, 1, row(5, table="c"))
    assert group.has_latecomer(cache, 5)
