"""Halving a statement until the rows that the database refuses are found."""

from dataclasses import replace

import pytest

from applier.model.errors import FatalSinkError, RetryableSinkError, RowRefused
from applier.model.position import Offset, Stream, Ts
from applier.model.rejected_event import MAX_QUARANTINED, EventPosition, RejectedEvent
from applier.planner.port import Phase, StatementRows
from applier.sinks.quarantine import Quarantined
from applier.sinks.write_transaction import RefusedRows
from tests.builders.planning import ORDERS_TABLE, PlainDialect

STORED = Quarantined(lambda _: pytest.fail("this test reads no records"))
NOT_STORED = replace(STORED, takes_refused=False)


class Database:
    """Takes rows but the ``refused`` ones; what was done since the savepoint can be undone."""

    def __init__(self, refused, stored=()):
        self.stored, self.asked = frozenset(stored), 0
        self.refused, self.rows, self.kept, self.tries = frozenset(refused), [], 0, 0

    def execute(self, statement):
        self.tries += 1
        texts = [int(text) for text in statement.text.decode().partition(", [[")[2].replace("[", "").replace("]", "").split(",")[::2]]
        self.rows += texts
        if self.refused & set(texts):
            raise RowRefused("too long", column="name", table="shop.orders", min_ts=1)

    def refused_rows(self, quarantined=STORED):
        def savepoint():
            self.kept = len(self.rows)

        def roll_back():
            del self.rows[self.kept :]

        def stored(places):
            self.asked += 1
            return {place for place in places if place.offset in self.stored}

        return RefusedRows(self.execute, savepoint=savepoint, roll_back=roll_back, quarantined=quarantined, stored=stored)


def statement_of(number):
    rows = tuple(
        RejectedEvent(
            position=EventPosition(Stream("feed", 0), Offset(n), 0), error="", schema="shop", table="orders", commit_ts=Ts(10 + n)
        )
        for n in range(number)
    )
    texts = tuple(f"({n},{n})" for n in range(number))
    source = StatementRows(
        phase=Phase.REPLACE,
        table=ORDERS_TABLE,
        columns=("id", "name"),
        key=("id",),
        dialect=PlainDialect(),
        texts=(*texts, *texts),
        rows=rows + rows,
    )
    (statement,) = list(source.halves())[:1]
    assert statement.rows == number
    return statement


@pytest.mark.parametrize("refused", [set(), {0}, {63}, {31, 32}, set(range(20, 40)), set(range(64))])
def test_exactly_the_refused_rows_are_found(refused):
    database = Database(refused)
    refused_rows = database.refused_rows()
    assert refused_rows.run(statement_of(64)) == 64 - len(refused)
    assert database.rows == [n for n in range(64) if n not in refused]
    assert [row.position.offset for row in refused_rows.refused] == sorted(refused)
    assert {row.error for row in refused_rows.refused} <= {"too long [column=name]"}


def test_one_bad_row_costs_a_logarithm_of_statements():
    database = Database({17})
    database.refused_rows().run(statement_of(64))
    assert database.tries == 1 + 2 * 6


def test_a_statement_that_does_not_know_its_rows_is_refused_as_a_whole():
    database = Database({3})
    with pytest.raises(RowRefused):
        database.refused_rows().run(statement_of(8)._replace(source_rows=None))


@pytest.mark.parametrize("quarantined", [NOT_STORED, None], ids=["by policy", "there is no quarantine"])
@pytest.mark.parametrize("refused", [{0}, {63}, {31, 32}, set(range(64))])
def test_without_a_quarantine_the_first_refused_row_is_named(refused, quarantined):
    refused_rows = Database(refused).refused_rows(quarantined)
    with pytest.raises(RowRefused, match="too long") as caught:
        refused_rows.run(statement_of(64))
    first = min(refused)
    assert caught.value.facts == {
        "topic": "feed",
        "partition": 0,
        "offset": first,
        "event": 0,
        "table": "shop.orders",
        "commit_ts": 10 + first,
        "key_columns": "id",
        "column": "name",
    }
    assert refused_rows.refused == []


@pytest.mark.parametrize("quarantined", [STORED, NOT_STORED])
def test_a_statement_that_is_refused_whole_and_taken_in_halves_goes_through_only_where_rows_may_be_missing(quarantined):
    database = Database({3})

    def execute(statement):
        database.refused = frozenset({3} if statement.rows == 8 else ())
        database.execute(statement)

    refused_rows = replace(database.refused_rows(quarantined), execute=execute)
    if quarantined is STORED:
        assert refused_rows.run(statement_of(8)) == 8
        return
    with pytest.raises(RowRefused) as caught:
        refused_rows.run(statement_of(8))
    assert "offset" not in caught.value.facts


def test_other_errors_come_through_at_once():
    def execute(_):
        raise RetryableSinkError("deadlock")

    refused_rows = RefusedRows(
        execute,
        savepoint=lambda: None,
        roll_back=lambda: pytest.fail("the transaction is gone"),
        quarantined=STORED,
        stored=lambda _: set(),
    )
    with pytest.raises(RetryableSinkError):
        refused_rows.run(statement_of(8))


def test_more_refused_rows_than_an_accident_makes_are_an_error():
    database = Database(range(200))
    with pytest.raises(FatalSinkError, match=str(MAX_QUARANTINED)) as caught:
        database.refused_rows().run(statement_of(200))
    assert not isinstance(caught.value, RowRefused)
    assert caught.value.facts["offset"] == MAX_QUARANTINED


def test_rows_that_the_planner_quarantines_count_too():
    planned = statement_of(MAX_QUARANTINED - 1).source_rows.rows
    with pytest.raises(FatalSinkError, match=str(MAX_QUARANTINED)) as caught:
        run(Database({0, 3}).refused_rows(replace(STORED, events=planned)), statement_of(8))
    assert caught.value.facts["offset"] == 3


def test_more_rows_than_an_accident_makes_stop_before_the_first_statement():
    planned = statement_of(MAX_QUARANTINED + 1).source_rows.rows
    database = Database(set())
    with pytest.raises(FatalSinkError, match=str(MAX_QUARANTINED)):
        run(database.refused_rows(replace(STORED, events=planned)), statement_of(8))
    assert database.tries == 0


def test_rows_that_the_quarantine_has_already_do_not_count():
    planned = statement_of(180).source_rows.rows
    database = Database(range(200), stored=range(150))
    refused_rows = run(database.refused_rows(replace(STORED, events=planned[:60])), statement_of(200))
    assert len(refused_rows.refused) == 200
    assert database.asked <= 5
    with pytest.raises(FatalSinkError) as caught:
        run(Database(range(300), stored=range(150)).refused_rows(), statement_of(300))
    assert caught.value.facts["offset"] == 150 + MAX_QUARANTINED


def test_the_quarantine_is_not_asked_about_few_rows():
    database = Database(range(MAX_QUARANTINED))
    run(database.refused_rows(), statement_of(MAX_QUARANTINED))
    assert database.asked == 0


def run(refused_rows, statement):
    refused_rows.count_planned()
    refused_rows.run(statement)
    return refused_rows
