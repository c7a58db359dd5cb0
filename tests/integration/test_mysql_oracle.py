"""The oracle on a real server executes every history, and agrees value by value with what the generator believes."""

import re
from contextlib import closing

import pymysql
import pytest

from applier.demo.simulator.compare import canonical, differences
from applier.demo.simulator.history import History, HistoryOptions
from applier.model.events import TableName
from applier.model.position import Ts
from tests.rig.mysql_oracle import MysqlOracle, connect
from tests.rig.oracle import open_oracle


@pytest.fixture
def oracle(mysql_url):
    with MysqlOracle(mysql_url, prefix="oracle_test_") as opened:
        opened.clear()
        yield opened
        opened.clear()


@pytest.mark.parametrize("seed", range(6))
def test_a_real_server_ends_in_the_state_that_the_generator_believes_in(seed, oracle):
    history = History(seed, HistoryOptions(transactions=60, ddl_share=0.35))
    oracle.apply(history)
    facts, catalogue = oracle.facts(), history.catalogue()
    assert set(facts.tables) == set(catalogue.tables)
    assert facts.views == set(catalogue.views)
    assert oracle.money_total() == history.money_total()
    for name, state in catalogue.tables.items():
        kinds = [column.type for column in state.table.columns]
        believed = sorted(tuple(map(canonical, kinds, row)) for row in state.rows.values())
        assert sorted(tuple(map(canonical, kinds, row)) for row in facts.tables[name].rows) == believed, name
        indexes = {(index.columns, index.unique) for index in facts.tables[name].indexes}
        # Not every server has indexes of expressions.
        assert indexes == {(index.columns, index.unique) for index in state.table.indexes if not index.expression}, name


def test_two_oracles_on_one_server_are_compared_and_a_difference_is_found(oracle, mysql_url):
    history = History(3, HistoryOptions(transactions=20))
    oracle.apply(history)
    with MysqlOracle(mysql_url, prefix="oracle_other_") as other:
        other.clear()
        other.apply(history)
        assert differences(oracle.facts(), other.facts(), oracle.tables()) == []
        with closing(connect(mysql_url)) as connection, connection.cursor() as cursor:
            cursor.execute("UPDATE oracle_other_bank.accounts SET balance = balance + 1 LIMIT 1")
            cursor.execute("ALTER TABLE oracle_other_crm.seats MODIFY COLUMN holder VARCHAR(41)")
            connection.commit()
        found = differences(oracle.facts(), other.facts(), oracle.tables())
        assert any(re.match(r"row of bank\.accounts is too many", line) for line in found)
        assert any("column crm.seats.holder" in line for line in found)
        assert other.money_total() == history.money_total() + 1
        other.clear()
        assert other.money_total() is None
        assert other.facts().tables == {}


def test_a_history_is_executed_up_to_a_moment(oracle):
    history = History(4, HistoryOptions(transactions=20))
    middle = list(history)[30].ts
    oracle.apply(history, Ts(middle))
    assert set(oracle.facts().tables) == set(history.catalogue(middle).tables)


def test_an_oracle_is_opened_by_its_url(mysql_url):
    with closing(open_oracle(mysql_url, prefix="oracle_none_")) as opened:
        assert opened.money_total() is None
        assert TableName("bank", "accounts") not in opened.tables()


def test_a_failing_statement_is_not_hidden(oracle):
    steps = list(History(4, HistoryOptions(transactions=2)))
    oracle.execute(steps[0])
    with pytest.raises(pymysql.err.ProgrammingError):
        oracle.execute(steps[0])
