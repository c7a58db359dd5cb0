"""DDLs that come again long after they ran: the ledger is asked about them, in one question, and is not kept in memory."""

import pytest

from applier.model.errors import NeedsOperator
from tests.builders.handwritten import CREATE_SCHEMA, KEY, ONE, PLAIN, ddl, everywhere, log_of, resolved, row, rows_of
from tests.builders.wire import column
from tests.rig.fake_source import FakeSource
from tests.rig.local_replica import sqlite_replica
from tests.rig.programs import PROGRAMS

BEGINNING = [
    *everywhere(CREATE_SCHEMA),
    *everywhere(ddl(10, "CREATE TABLE orders (id INT PRIMARY KEY, n INT)")),
    *[each for n in range(30) for each in everywhere(ddl(20 + n, f"CREATE TABLE t{n} (id INT PRIMARY KEY)", table=f"t{n}"))],
    *everywhere(resolved(100)),
]


class Asked:
    """A sink, or its bookkeeping: counts what a run asks of the ledger; loading it whole fails."""

    def __init__(self, sink, questions):
        self._sink, self._questions = sink, questions

    def __getattr__(self, name):
        if name == "bookkeeping":
            return Asked(self._sink.bookkeeping, self._questions)
        if name == "ledger":
            pytest.fail("a run loads the whole ledger")
        return getattr(self._sink, name)

    def ledger_at(self, times):
        self._questions.append(len(times))
        return self._sink.ledger_at(times)

    def ledger_since(self, ts):
        found = self._sink.ledger_since(ts)
        assert len(found) <= 1
        return found


@pytest.mark.parametrize("program", PROGRAMS)
def test_replays_of_old_ddls_are_dropped_with_one_question_per_set_of_reports(tmp_path, program):
    replica = sqlite_replica(tmp_path, FakeSource(log_of(*BEGINNING)))
    replica.catch_up()
    order = (ONE, row(110, id=column(3, KEY, 1), n=column(3, PLAIN, 7)))
    replica.source = FakeSource(log_of(*BEGINNING, *BEGINNING, order, *everywhere(resolved(120))))
    questions = []
    replica.wrap = lambda sink: Asked(sink, questions)
    program(replica)
    replica.wrap = lambda sink: sink
    assert rows_of(tmp_path) == [(1, 7)]
    assert len(replica.done_ddls()) == 32
    assert sum(questions) >= 31
    assert len(questions) <= 6, "not one per DDL"


@pytest.mark.parametrize("program", PROGRAMS)
def test_an_old_ddl_that_the_ledger_does_not_know_stops_among_those_that_it_knows(tmp_path, program):
    replica = sqlite_replica(tmp_path, FakeSource(log_of(*BEGINNING)))
    replica.catch_up()
    missed = everywhere(ddl(25, "CREATE TABLE never_seen (id INT PRIMARY KEY)", table="never_seen"))
    replica.source = FakeSource(log_of(*BEGINNING, *BEGINNING[:10], *missed, *everywhere(resolved(120))))
    with pytest.raises(NeedsOperator) as stop:
        program(replica)
    assert (stop.value.facts["kind"], stop.value.facts["commit_ts"], stop.value.facts["table"]) == ("missed_ddl", 25, "shop.never_seen")
