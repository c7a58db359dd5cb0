"""The engine dies at each named point around a DDL of each type; the next run continues: the statement has run once.

In this process, on real servers: a table per type and point of death. One replica has several types, one after the other.
"""

import json
import re
from collections import Counter
from contextlib import closing
from itertools import product

import pytest

from applier.ddl.policy import DDL_TYPE_NAMES
from applier.demo.simulator.operation import ActionType
from applier.demo.simulator.producer.options import LogRecord
from applier.model.position import Stream
from applier.sinks.ledger_entry import DdlState
from applier.sinks.mysql.ddl import intents, runner
from applier.sinks.mysql.ddl import runner as execution
from tests.builders.wire import column, head, record, text
from tests.rig.ddl_case import CASES
from tests.rig.fake_source import FakeSource
from tests.rig.faulty_sink import DeathError
from tests.rig.local_replica import Replica
from tests.rig.mysql_oracle import connect
from tests.rig.upstream import clear_sink

POINTS = ("ddl.before_intent", "ddl.after_intent", "ddl.after_statement", "ddl.before_done", "ddl.after_done")
STREAMS = (Stream("feed", 0), Stream("feed", 1))
CODES = {name: code for code, name in DDL_TYPE_NAMES.items()}
SHADOW = "shadow_"
KEY, PLAIN, VARCHAR = 11, 65, 15
REPEATED = re.compile(r"AUTO_INCREMENT = |TRUNCATE PARTITION|OR REPLACE|ALTER DATABASE|CONSTRAINT c")
"""What is run again without a comparison: a second time changes nothing, and a comparison could only be wrong."""

CHECKS = re.compile(r"ALTER TABLE \w+ (ADD|DROP) CONSTRAINT c\d")
"""Statements about CHECK constraints, which the sink does not get (docs/ddl_clauses.md): they leave its tables as they are."""

pytestmark = pytest.mark.slow


class Script:
    """What upstream does: for each case and point the tables are made and filled, then the statement of the case runs on them.

    ``targets``: at which point each of the statements dies; ``times``: their timestamps.
    """

    def __init__(self, cases, points):
        self._ts, self._log = 100, []
        self.statements = [("", "CREATE DATABASE lab")]
        self.targets = {}
        self.times = []
        self._ddl("CREATE DATABASE lab", "lab", "", "create_schema")
        for number, (self._case, point) in enumerate(product(cases, points)):
            case = self._case
            for statement in case.setup:
                self._make(statement.format(n=number), number)
            if case.setup and case.table and case.schema == "lab":
                self._fill(f"t{number}")
            target = case.statement.format(n=number)
            self.targets[target] = point
            self._ddl(target, case.schema.format(n=number), case.table.format(n=number), case.type)
            self.times.append(self._ts)
            self.statements.append(("lab", target))
            self._resolve()

    def source(self):
        return FakeSource(self._log)

    def _make(self, statement, number):
        is_schema = statement.startswith("CREATE DATABASE")
        schema = self._case.schema.format(n=number)
        name = "" if is_schema else re.search(r"(?:TABLE|VIEW|ON) (?:\w+\.)?(\w+)", statement)[1]
        self._ddl(statement, schema, name, "create_schema" if is_schema else "create_table")
        self.statements.append(("lab", statement))

    def _fill(self, table):
        self._ts += 1
        for key in (1, 2):
            images = {"id": column(3, KEY, key), "v": column(3, PLAIN, key), "w": text(f"row {key}")}
            self._write([STREAMS[key % 2]], head(self._ts, schema="lab", table=table), {"u": images})
            self.statements.append(("lab", f"INSERT INTO {table} (id, v, w) VALUES ({key}, {key}, 'row {key}')"))
        if "REFERENCES" in self._case.statement:
            self._fill_parent(table.replace("t", "o"))

    def _fill_parent(self, table):
        for key in (1, 2):
            images = {"id": column(3, KEY, key), "v": column(3, PLAIN, key), "w": text("parent")}
            self._write(STREAMS[:1], head(self._ts, schema="lab", table=table), {"u": images})
            self.statements.append(("lab", f"INSERT INTO {table} (id, v, w) VALUES ({key}, {key}, 'parent')"))

    def _ddl(self, query, schema, table, kind):
        self._ts += 1
        self._write(STREAMS, head(self._ts, schema=schema, table=table, t=2), {"q": query, "t": CODES[kind]})

    def _resolve(self):
        self._ts += 5
        self._write(STREAMS, {"ts": self._ts, "t": 3}, b"")

    def _write(self, streams, key, value):
        self._log += [LogRecord(stream, *record((key, value)), 1000 + self._ts) for stream in streams]


class Deaths:
    """Lets the engine die at the point that belongs to a statement, once; counts how often each statement was sent."""

    def __init__(self, targets, monkeypatch):
        self.left, self._query = dict(targets), ""
        self.died, self.sent = [], Counter()
        run_statement = execution.run_statement

        def counted(connection, ddl, *more):
            # By upstream's text: what runs has names for what upstream left unnamed.
            self.sent[self._query] += 1
            return run_statement(connection, ddl, *more)

        monkeypatch.setattr(execution, "run_statement", counted)
        for module in (runner, intents):
            monkeypatch.setattr(module, "reach", self._reach)

    def _reach(self, point):
        if self.left.get(self._query) == point:
            self.died.append(self.left.pop(self._query))
            raise DeathError

    def watch(self, sink):
        watched = self

        class Watched:
            def __getattr__(self, name):
                return getattr(sink, name)

            def run_ddl(self, fence, identity, ddl, *, before, after):
                watched._query = ddl.query
                return sink.run_ddl(fence, identity, ddl, before=before, after=after)

        return Watched()


def shown(url, prefix):
    """Describe all schemas with ``prefix`` + lab: definitions and rows."""
    found = {}
    with closing(connect(url)) as connection, connection.cursor() as cursor:
        cursor.execute("SHOW DATABASES LIKE %s", (f"{prefix}lab%",))
        for (schema,) in cursor.fetchall():
            cursor.execute(f"SHOW CREATE DATABASE {schema}")
            found[schema.removeprefix(prefix)] = cursor.fetchone()[1].replace(prefix, "")
            cursor.execute(f"SHOW TABLES FROM {schema}")
            for (table,) in cursor.fetchall():
                cursor.execute(f"SHOW CREATE TABLE {schema}.{table}")
                definition = re.sub(r"DEFINER=\S+ | AUTO_INCREMENT=\d+", "", cursor.fetchone()[1]).replace(prefix, "")
                cursor.execute(f"SELECT * FROM {schema}.{table}")
                found[f"{schema.removeprefix(prefix)}.{table}"] = (definition, sorted(map(repr, cursor.fetchall())))
    return found


def execute_beside(url, statements):
    """Execute the statements in schemas with another name, on a session like the applier's."""
    with closing(connect(url)) as connection, connection.cursor() as cursor:
        connection.autocommit(True)
        cursor.execute("SET character_set_server = 'utf8mb4', collation_server = 'utf8mb4_bin'")
        for schema, statement in statements:
            if CHECKS.match(statement):
                continue
            if schema:
                connection.select_db(SHADOW + schema)
            # TiDB's latin1 holds every character (docs/ddls.md).
            cursor.execute(re.sub(r"\blab(?=\b|_\d)", f"{SHADOW}lab", statement).replace("latin1", "utf8mb4"))


@pytest.fixture
def url(mysql_url):
    clear_sink(mysql_url)
    yield mysql_url
    clear_sink(mysql_url)


def in_groups(cases, number=4, daily=4):
    """Divide the cases: each group is one test, on one replica. The first ``daily`` of them run every day."""
    groups = [cases[first::number] for first in range(number)]
    names = [f"types from {first} on" for first in range(1, number + 1)]
    soak = pytest.mark.soak(reason="more types of the same")
    return [pytest.param(group, id=names[place], marks=() if place < daily else soak) for place, group in enumerate(groups)]


ON_EACH_SERVER = ("ddl.after_intent", "ddl.after_statement")
"""After these points it is the server's catalogue that shows whether a statement has run."""


@pytest.mark.parametrize("cases", in_groups(CASES))
def test_s4_s5_a_ddl_runs_once_wherever_its_outcome_is_unknown(cases, url, least_privileged_url, monkeypatch):
    die_at_each(ON_EACH_SERVER, cases, url, least_privileged_url, monkeypatch)


@pytest.mark.usually_on("mariadb", reason="at these points the ledger shows what has run, and not the server")
@pytest.mark.parametrize("cases", in_groups(CASES, daily=1))
def test_a_ddl_runs_once_wherever_the_ledger_knows_its_outcome(cases, url, least_privileged_url, monkeypatch):
    die_at_each([point for point in POINTS if point not in ON_EACH_SERVER], cases, url, least_privileged_url, monkeypatch)


def die_at_each(points, cases, url, least_privileged_url, monkeypatch):
    script = Script(cases, points)
    deaths = Deaths(script.targets, monkeypatch)
    replica = Replica(least_privileged_url, script.source(), wrap=deaths.watch)
    for target in script.targets:
        with pytest.raises(DeathError):
            replica.catch_up()
        assert deaths.died[-1] == script.targets[target], target
    replica.catch_up()
    assert deaths.died == list(script.targets.values())
    once = {target for target in deaths.sent if not REPEATED.search(target)}
    assert {target: deaths.sent[target] for target in once} == dict.fromkeys(once, 1)
    ledger = replica.ledger()
    assert [entry.ddl.commit_ts for entry in ledger if entry.ddl.commit_ts in script.times] == script.times
    assert {entry.state for entry in ledger} == {DdlState.DONE}
    execute_beside(url, script.statements)
    assert shown(url, "") == shown(url, SHADOW)


def misremember(url, **changes):
    """Change what the open intent says of its tables' storage."""
    with closing(connect(url)) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT identity_hash, before_state FROM applier.ddl_ledger WHERE state = 'intent'")
        ((identity, before),) = cursor.fetchall()
        states = {name: state and state | changes for name, state in json.loads(before).items()}
        cursor.execute("UPDATE applier.ddl_ledger SET before_state = %s WHERE identity_hash = %s", (json.dumps(states), identity))
        connection.commit()


MISREMEMBERED = (
    ("ddl.after_intent", {"storage_ids": {"": 1}, "server": "another"}),
    ("ddl.after_statement", {"storage_ids": None, "server": None}),
)
"""Ids of a server that another one has replaced, and ids that were not known before the death."""

ALL_MISREMEMBERED = (
    *MISREMEMBERED,
    ("ddl.after_intent", {"storage_ids": None, "server": None}),
    ("ddl.after_intent", {"storage_ids": {"": 1}, "server": None}),
    ("ddl.after_statement", {"storage_ids": {"": 1}, "server": "another"}),
)
"""Those of an older applier too."""


@pytest.mark.usually_on("mariadb", reason="what the ledger remembers has the same form for both")
@pytest.mark.parametrize(
    "misremembered",
    [
        pytest.param(MISREMEMBERED, id="some"),
        pytest.param(ALL_MISREMEMBERED, id="all", marks=pytest.mark.soak(reason="more facts of the same")),
    ],
)
@pytest.mark.parametrize("cases", in_groups([case for case in CASES if case.type != "exchange_partition"]))
def test_changed_storage_ids_do_not_prove_that_a_ddl_has_run(cases, misremembered, url, least_privileged_url, monkeypatch):
    # The place in the list goes with the point: the same point occurs with several of them.
    script = Script(cases, range(len(misremembered)))
    points = [misremembered[place][0] for place in script.targets.values()]
    deaths = Deaths(dict(zip(script.targets, points, strict=True)), monkeypatch)
    replica = Replica(least_privileged_url, script.source(), wrap=deaths.watch)
    for target, place in script.targets.items():
        with pytest.raises(DeathError):
            replica.catch_up()
        assert target not in deaths.left, "another statement died"
        misremember(url, **misremembered[place][1])
    replica.catch_up()
    assert deaths.died == points
    assert set(deaths.sent) >= set(script.targets)
    assert {entry.state for entry in replica.ledger()} == {DdlState.DONE}
    execute_beside(url, script.statements)
    assert shown(url, "") == shown(url, SHADOW)


def test_every_type_that_the_simulator_makes_is_among_them():
    assert {DDL_TYPE_NAMES[kind] for kind in ActionType} <= {case.type for case in CASES}
