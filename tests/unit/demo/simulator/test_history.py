"""Histories: the same again from the same seed, and true in a real database at each commit."""

import pytest

from applier.demo.simulator.compare import canonical
from applier.demo.simulator.history import History, HistoryOptions
from applier.demo.simulator.operation import AlterTable, action_type
from applier.demo.simulator.schema_evolution import SimulatedDdlKind
from applier.demo.simulator.table_family import TableFamily
from tests.rig.bulk_history import SALES, BulkHistory, bulk_log
from tests.rig.oracle import SqliteOracle

SEEDS = range(100)


def test_equal_seeds_give_equal_histories_and_others_do_not():
    assert list(History(7)) == list(History(7))
    assert list(History(7)) != list(History(8))


def test_commit_timestamps_grow_and_are_above_what_a_float_holds():
    steps = [step.ts for step in History(1)]
    assert steps == sorted(set(steps))
    assert all(ts > 2**53 and int(float(ts)) >> 18 for ts in steps)


@pytest.mark.parametrize("seed", range(5))
def test_the_money_total_is_constant_at_each_commit(seed, tmp_path):
    history = History(seed, HistoryOptions(families=frozenset({TableFamily.MONEY, TableFamily.LAB}), transactions=40))
    totals = []
    with SqliteOracle(tmp_path / "oracle.db") as oracle:
        for step in history:
            oracle.execute(step)
            totals.append(oracle.money_total())
    funded = totals.index(history.money_total())
    assert set(totals[:funded]) <= {None, 0}
    assert set(totals[funded:]) == {history.money_total()}


@pytest.mark.parametrize("seed", range(8))
def test_a_real_database_ends_in_the_state_that_the_generator_believes_in(seed, tmp_path):
    history = History(seed, HistoryOptions(ddl_share=0.35))
    with SqliteOracle(tmp_path / "oracle.db") as oracle:
        oracle.apply(history)
        facts = oracle.facts()
    catalogue = history.catalogue()
    assert set(facts.tables) == set(catalogue.tables)
    assert facts.views == set(catalogue.views)
    for name, state in catalogue.tables.items():
        kinds = [column.type for column in state.table.columns]
        believed = sorted(tuple(map(canonical, kinds, row)) for row in state.rows.values())
        stored = sorted(tuple(map(canonical, kinds, row)) for row in facts.tables[name].rows)
        assert stored == believed
        assert not any(text.startswith("not a ") for row in stored for text in row)


def test_a_hundred_seeds_show_each_kind_of_ddl_and_clause():
    seen = set()
    for seed in SEEDS:
        for step in History(
            seed, HistoryOptions(transactions=40, ddl_share=0.5, families=frozenset({TableFamily.LAB, TableFamily.ORDERS}))
        ):
            for ddl in step.ddls:
                seen |= {type(ddl).__name__, int(action_type(ddl))}
                seen |= {type(clause).__name__ for clause in ddl.clauses} if isinstance(ddl, AlterTable) else set()
                if len(step.ddls) == 3:
                    seen.add("rename chain")
            if step.rows and step.ddls:
                seen.add("rows at the ts of a DDL")
    statements = {
        "CreateSchema",
        "DropSchema",
        "CreateTable",
        "CreateTableLike",
        "DropTable",
        "TruncateTable",
        "RenameTable",
        "CreateView",
        "DropView",
    }
    clauses = {
        "AddColumn",
        "DropColumn",
        "RenameColumn",
        "ModifyColumn",
        "SetDefault",
        "AddIndex",
        "DropIndex",
        "RenameIndex",
        "SetComment",
    }
    assert statements | clauses | {"AlterTable", "rename chain", "rows at the ts of a DDL"} <= seen
    assert {1, 2, 3, 4, 5, 6, 7, 8, 11, 12, 14, 15, 17, 18, 21, 24, 60, 61} <= seen


def test_a_hundred_seeds_show_swaps_key_changes_and_transactions_over_several_tables():
    keys_changed = swaps = several = 0
    for seed in SEEDS:
        for step in History(seed, HistoryOptions(transactions=15, ddl_kinds=frozenset())):
            several += len({change.table.name for change in step.rows}) > 1
            updates = [c for c in step.rows if c.before is not None and c.after is not None]
            moved = [c for c in updates if any(c.before[place] != c.after[place] for place in c.table.handle_places)]
            keys_changed += len(moved)
            old = {(c.table.name, tuple(c.before[p] for p in c.table.handle_places)) for c in moved}
            swaps += any((c.table.name, tuple(c.after[p] for p in c.table.handle_places)) in old for c in moved)
    assert min(keys_changed, swaps, several) > 20


def test_a_history_without_ddl_kinds_only_makes_its_tables():
    history = History(2, HistoryOptions(ddl_kinds=frozenset(), families=frozenset({TableFamily.ORDERS}), transactions=30))
    assert [type(ddl).__name__ for step in history for ddl in step.ddls] == ["CreateSchema", "CreateTable", "CreateTable"]


@pytest.mark.parametrize("kind", list(SimulatedDdlKind))
def test_each_kind_of_ddl_can_be_asked_for_alone(kind):
    kinds = frozenset({kind, SimulatedDdlKind.CREATE_TABLE})
    assert len(list(History(3, HistoryOptions(transactions=20, ddl_kinds=kinds, ddl_share=0.6)))) > 20


def test_a_history_needs_a_family():
    with pytest.raises(ValueError, match="family"):
        HistoryOptions(families=frozenset())


def test_the_bulk_history_is_executed_by_an_oracle_like_any_other(tmp_path):
    history = BulkHistory(rows=2000, live_rows=300)
    with SqliteOracle(tmp_path / "oracle.db") as oracle:
        oracle.apply(history)
        rows = oracle.facts().tables[SALES.name].rows
    assert len(rows) >= 300
    assert sum(len(step.rows) for step in history) >= 2000


def test_the_bulk_log_ends_with_the_same_resolved_ts_on_every_partition():
    records = list(bulk_log(BulkHistory(rows=1000)))
    last = {record.stream: record.key for record in records}
    assert len(last) == 3
    assert len(set(last.values())) == 1
    assert records == list(bulk_log(BulkHistory(rows=1000)))
