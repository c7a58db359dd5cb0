"""What upstream itself holds: equal to a database that executes the same, and different from a sink that computes anything by itself."""

from contextlib import closing
from dataclasses import replace

import pytest

from applier.demo.simulator.column_type import GeneratedRule, Generation
from applier.demo.simulator.compare import DatabaseFacts
from applier.demo.simulator.history import History, HistoryOptions
from applier.demo.simulator.session_zone import in_session
from applier.model.events import TableName
from tests.rig.catalogue_oracle import CatalogueOracle
from tests.rig.oracle import open_oracle

HISTORY = History(5, HistoryOptions(transactions=60, ddl_share=0.3))


@pytest.fixture(scope="module")
def upstream():
    oracle = CatalogueOracle()
    oracle.apply(HISTORY)
    return oracle


@pytest.mark.parametrize("seed", range(8))
def test_a_database_that_executes_the_history_is_as_upstream(seed):
    history = History(seed, HistoryOptions(transactions=60, ddl_share=0.35))
    oracle = CatalogueOracle()
    oracle.apply(history)
    with closing(open_oracle("sqlite:///:memory:")) as database:
        database.apply(history)
        assert oracle.differences_from(database.facts()) == []


def test_a_row_that_the_sink_lacks_is_found(upstream):
    facts = upstream.facts()
    accounts = TableName("bank", "accounts")
    damaged = replace(facts, tables={**facts.tables, accounts: replace(facts.tables[accounts], rows=facts.tables[accounts].rows[1:])})
    assert [line.split(":")[0] for line in upstream.differences_from(damaged)] == ["row of bank.accounts is missing"]


def test_an_index_with_the_name_that_a_server_gives_it_is_found(upstream):
    facts = upstream.facts()
    seats = TableName("crm", "seats")
    indexes = frozenset(replace(index, name="code_2") if index.name == "one_code" else index for index in facts.tables[seats].indexes)
    renamed = replace(facts, tables={**facts.tables, seats: replace(facts.tables[seats], indexes=indexes)})
    assert any("index names of crm.seats" in line for line in upstream.differences_from(renamed))


def test_documents_are_compared_and_not_their_text(upstream):
    facts = upstream.facts()
    everything = TableName("types", "everything")
    rows = facts.tables[everything].rows
    spaced = [tuple(v.replace('": ', '" :  ') if isinstance(v, str) and v.startswith('{"k"') else v for v in row) for row in rows]
    assert spaced != rows
    written = DatabaseFacts(tables={**facts.tables, everything: replace(facts.tables[everything], rows=spaced)}, views=facts.views)
    assert upstream.differences_from(written) == []


@pytest.mark.parametrize(
    ("rule", "source", "value"),
    [
        (GeneratedRule.SESSION_DAY, "2025-11-24 16:00:00", "2025-11-25"),
        (GeneratedRule.SESSION_DAY, "2025-11-24 15:59:59", "2025-11-24"),
        (GeneratedRule.SESSION_DAY, "0000-00-00 00:00:00", "0000-00-00"),
        (GeneratedRule.FLOAT_TEXT, 16777216.0, "16777216"),
        (GeneratedRule.LETTER, 15, 0),
        (GeneratedRule.SUCCESSOR, 15, 16),
        (GeneratedRule.SUCCESSOR, None, None),
    ],
)
def test_generated_values_are_those_of_upstreams_session(rule, source, value):
    assert Generation(rule=rule, source="source").value(source) == value


def test_a_point_in_time_keeps_its_fraction_in_the_zone_of_the_session():
    assert in_session("2025-11-24 23:30:00.125") == "2025-11-25 07:30:00.125"


def test_histories_hold_generated_values_unnamed_indexes_and_foreign_keys():
    seen = set()
    for seed in range(30):
        history = History(seed, HistoryOptions(transactions=40, ddl_share=0.5))
        for table in (step_table for step in history.steps() for step_table in _tables_of(step)):
            seen |= {column.generation.rule for column in table.columns if column.generation}
            seen |= {"unnamed" for index in table.indexes if not index.named and not index.expression}
            seen |= {"expression" for index in table.indexes if index.expression}
            seen |= {"foreign key" for _ in table.foreign_keys}
            seen |= {"generated key" for index in table.indexes if index.primary and table.is_generated(index)}
    assert seen == {*GeneratedRule, "unnamed", "expression", "foreign key", "generated key"}


def _tables_of(step):
    return [change.table for change in step.rows]
