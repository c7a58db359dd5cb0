"""The comparison finds every kind of difference, and none where the sink only stores values in its own way."""

import ast
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from applier.demo.simulator import column_type as of
from applier.demo.simulator.compare import canonical
from applier.demo.simulator.history import History, HistoryOptions
from applier.demo.simulator.table_family import TableFamily
from applier.model.events import TableName
from tests.rig import bulk_history, catalogue_oracle, mysql_oracle, projection, snapshots
from tests.rig import oracle as oracle_module
from tests.rig.oracle import SqliteOracle, compare, load_dump, open_oracle, read_money_total

HISTORY = History(5, HistoryOptions(transactions=60))


@pytest.fixture
def oracle(tmp_path):
    with closing(open_oracle(f"sqlite:///{tmp_path / 'oracle.db'}")) as opened:
        opened.apply(HISTORY)
        yield opened


@pytest.fixture
def sink(tmp_path):
    with SqliteOracle(tmp_path / "sink.db") as other:
        other.apply(HISTORY)
    return tmp_path / "sink.db"


def test_equal_databases_have_no_differences(oracle, sink):
    assert compare(oracle, f"sqlite:///{sink}") == []
    assert read_money_total(f"sqlite:///{sink}") == HISTORY.money_total()


@pytest.mark.parametrize(
    ("damage", "found"),
    [
        ('DELETE FROM "bank.accounts" WHERE id = (SELECT max(id) FROM "bank.accounts")', "row of bank.accounts is missing"),
        (
            'UPDATE "bank.accounts" SET balance = balance + 1 WHERE id = (SELECT max(id) FROM "bank.accounts")',
            "row of bank.accounts is too many",
        ),
        ('UPDATE "bank.transfers" SET amount = 1.5', "floating point"),
        ("UPDATE \"bank.transfers\" SET source = CAST('x' AS BLOB)", "row of bank.transfers"),
        ('DROP TABLE "crm.seats"', "table crm.seats is missing"),
        ('CREATE TABLE "lab.more" (id INT)', "table lab.more is too many"),
        ('ALTER TABLE "crm.seats" ADD COLUMN more INT', "columns of crm.seats"),
        ('ALTER TABLE "crm.seats" RENAME COLUMN holder TO owner', "columns of crm.seats"),
        ('DROP INDEX "crm.seats.one_seat"', "index on crm.seats('seat',) is missing"),
        ('CREATE INDEX "crm.seats.new" ON "crm.seats" (holder)', "index on crm.seats('holder',) is too many"),
        ('DROP INDEX "crm.seats.one_seat"; CREATE UNIQUE INDEX "crm.seats.other" ON "crm.seats" (seat)', "index names of crm.seats"),
        ('CREATE VIEW "shop.view" AS SELECT 1', "view shop.view is too many"),
    ],
)
def test_each_kind_of_damage_is_found(oracle, sink, damage, found):
    with closing(sqlite3.connect(sink)) as connection:
        connection.executescript(damage)
        connection.commit()
    assert any(found in line for line in compare(oracle, f"sqlite:///{sink}"))


def test_nullability_is_compared(oracle, tmp_path):
    path = tmp_path / "narrow.db"
    with SqliteOracle(path) as other:
        other.apply(HISTORY)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("UPDATE sqlite_master SET sql = replace(sql, '\"seat\" NOT NULL', '\"seat\"') WHERE name = 'crm.seats'")
        connection.commit()
    assert any("column crm.seats.seat" in line for line in compare(oracle, f"sqlite:///{path}"))


@pytest.mark.parametrize(
    ("kind", "one", "other"),
    [
        (of.integer("BIGINT", unsigned=True), "18446744073709551615", 18446744073709551615),
        (of.bit(9), b"\x01\xff", 511),
        (of.decimal(10, 2), "1.50", "1.5"),
        (of.real("FLOAT"), 0.1, 0.10000000149011612),
        (of.enum("a", "b"), 2, "b"),
        (of.set_of("a", "b", "c"), 5, "a,c"),
        (of.varchar(9), b"caf\xff", "caf\udcff"),
    ],
)
def test_one_value_has_one_text_whatever_way_it_is_stored(kind, one, other):
    assert canonical(kind, one) == canonical(kind, other)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (of.integer("BIGINT"), 1.0),
        (of.decimal(10, 2), 1.5),
        (of.decimal(10, 2), "1.505"),
        (of.varbinary(4), "text"),
        (of.real(), "1.5"),
        (of.text(), 5),
    ],
)
def test_a_value_of_another_kind_says_so(kind, value):
    assert canonical(kind, value).startswith("not a ")


def test_an_oracle_notices_a_change_of_a_row_that_it_does_not_have(tmp_path):
    steps = [step for step in HISTORY if any(change.after is None for change in step.rows)]
    with SqliteOracle(tmp_path / "oracle.db") as oracle:
        for step in HISTORY:
            if step.ts < steps[0].ts:
                oracle.execute(step)
        oracle.execute(steps[0])
        with pytest.raises(ValueError, match="no row"):
            oracle.execute(steps[0])


@pytest.mark.parametrize("share", [0.3, 0.7, 1.0])
def test_a_dump_holds_the_state_of_one_moment(share, tmp_path):
    steps = list(HISTORY)
    at_ts = steps[int(len(steps) * share) - 1].ts
    load_dump(HISTORY, at_ts, f"sqlite:///{tmp_path / 'dump.db'}")
    with SqliteOracle(tmp_path / "oracle.db") as oracle:
        oracle.apply(HISTORY, at_ts)
        assert compare(oracle, f"sqlite:///{tmp_path / 'dump.db'}") == []


def test_there_is_no_money_before_there_are_accounts(tmp_path):
    with SqliteOracle(tmp_path / "oracle.db") as oracle:
        assert oracle.money_total() is None
        oracle.apply(History(1, HistoryOptions(families=frozenset({TableFamily.LAB}), transactions=1)))
        assert TableName("lab", "t1") in oracle.tables()
        assert oracle.money_total() is None


@pytest.mark.parametrize("module", [oracle_module, mysql_oracle, catalogue_oracle, projection, snapshots, bulk_history])
def test_an_oracle_does_not_read_with_the_decoders(module):
    # import-linter holds the package's simulator to this, and sees only the package.
    source = Path(module.__file__).read_text(encoding="utf-8")
    imported = {node.module for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ImportFrom)}
    assert not [name for name in imported if name.startswith(("applier.sources.open_protocol", "applier.spark"))]
