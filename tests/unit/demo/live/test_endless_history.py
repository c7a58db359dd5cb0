"""A history without an end that needs bounded memory."""

from itertools import islice

from applier.demo.live.endless_history import endless_steps
from applier.demo.simulator.history import History, HistoryOptions
from applier.demo.simulator.operation import CreateSchema, DropSchema, DropView
from applier.demo.simulator.sqlite_oracle import SqliteOracle

HISTORY = History(5, HistoryOptions(transactions=40, ddl_share=0.3))
EACH = 120


def test_it_begins_with_the_steps_of_the_finite_history():
    steps = list(HISTORY)
    assert list(islice(endless_steps(HISTORY), len(steps))) == steps


def test_between_two_histories_a_database_is_empty_and_the_next_one_runs_in_it(tmp_path):
    dropped, emptied = set(), 0
    with SqliteOracle(tmp_path / "oracle.db") as oracle:
        for step in islice(endless_steps(HISTORY, EACH), 5 * EACH):
            oracle.execute(step)
            for ddl in step.ddls:
                dropped |= {type(ddl)} & {DropSchema, DropView}
            facts = oracle.facts() if any(isinstance(ddl, DropSchema) for ddl in step.ddls) else None
            emptied += facts is not None and not facts.tables and not facts.views
    assert dropped == {DropSchema, DropView}
    assert emptied >= 4


def test_another_history_follows_each_time():
    steps = list(islice(endless_steps(HISTORY, EACH), 3 * EACH))
    founded = [place for place, step in enumerate(steps) if step.ddls == (CreateSchema("bank"),)]
    assert len(founded) == 3
    assert len({tuple(step.rows for step in steps[place : place + 60]) for place in founded}) == 3
