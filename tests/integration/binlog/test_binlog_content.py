"""What a binlog holds beside plain transactions: each is executed on a real primary, and the sink is then identical to it."""

from contextlib import closing

import pytest

from applier.demo.simulator import column_type as of
from applier.demo.simulator.mysql_text import create_table_text
from applier.demo.simulator.schema import Table, column, index, primary, unique
from applier.model.errors import ProtocolError
from applier.model.events import TableName
from applier.sources.binlog.settings import BinlogSettings
from tests.rig.binlog_replica import BinlogReplica
from tests.rig.database import Kind
from tests.rig.mysql_oracle import connect
from tests.rig.primary_comparison import differences_from

pytestmark = pytest.mark.timeout(60)
COMPRESSION = {
    Kind.MARIADB: ["SET GLOBAL log_bin_compress = ON", "SET GLOBAL log_bin_compress_min_len = 10"],
    Kind.MYSQL: ["SET SESSION binlog_transaction_compression = ON"],
}
PLAIN = {Kind.MARIADB: ["SET GLOBAL log_bin_compress = OFF"], Kind.MYSQL: []}
SCHEMA = "stock"
ITEMS = Table(
    name=TableName(SCHEMA, "items"),
    columns=(
        column("id", of.integer(), null=False),
        column("code", of.varchar(40), null=False),
        column("amount", of.decimal(12, 2)),
        column("note", of.text()),
    ),
    indexes=(primary("id"), unique("one_code", "code"), index("by_amount", "amount")),
)
CHANGES = Table(
    name=TableName(SCHEMA, "changes"),
    columns=(column("id", of.integer(), null=False), column("item", of.integer(), null=False), column("was", of.varchar(40))),
    indexes=(primary("id"),),
    auto_increment="id",
)
COPIES = Table(name=TableName(SCHEMA, "copies"), columns=ITEMS.columns, indexes=(primary("id"),))
OTHERS = COPIES.renamed(TableName(SCHEMA, "others"))
INSERT = "INSERT INTO items (id, code, amount, note) VALUES"
LONG = "'" + "long text " * 2000 + "'"


@pytest.fixture
def replica(request, primary):
    sink = getattr(request, "param", "sqlite_sink")
    return BinlogReplica(request.getfixturevalue(sink), BinlogSettings(url=primary.url, start=primary.place()))


@pytest.fixture
def session(primary, replica):
    """A session on the primary, all of whose doing the replica reads."""
    with closing(connect(primary.url)) as opened:
        yield opened
    for _, _, _, name in primary.ask("XA RECOVER"):
        primary.run(f"XA ROLLBACK '{name}'")


def make_stock(session, schema=SCHEMA):
    """Make tables and rows in a schema, and use it."""
    run(session, f"CREATE DATABASE {schema} CHARACTER SET = utf8mb4 COLLATE = utf8mb4_bin", f"USE {schema}")
    run(session, *(create_table_text(table, table.name.table) for table in (ITEMS, CHANGES)))
    run(session, f"{INSERT} " + ",".join(f"({number}, 'c{number}', {number}.5, 'note {number}')" for number in range(1, 40)))
    session.commit()


def run(session, *statements):
    with session.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def wrong(primary, replica, *schemas):
    replica.catch_up()
    tables = [table.renamed(TableName(schema, table.name.table)) for schema in schemas for table in (ITEMS, CHANGES, COPIES, OTHERS)]
    return differences_from(primary, replica.url, {table.name: table for table in tables})


XA = [
    "XA START 'one'",
    f"{INSERT} (100, 'xa', 1, 'counts at its commit')",
    "XA END 'one'",
    "XA PREPARE 'one'",
]
CASES = {
    "savepoints": [
        "BEGIN",
        f"{INSERT} (50, 's50', 1, 'kept')",
        "SAVEPOINT one",
        f"{INSERT} (51, 's51', 1, 'gone')",
        "UPDATE items SET amount = 99 WHERE id = 1",
        "ROLLBACK TO one",
        "UPDATE items SET amount = 98 WHERE id = 2",
        "COMMIT",
    ],
    "one_key_deleted_and_inserted_in_one_transaction": [
        "BEGIN",
        "DELETE FROM items WHERE id = 3",
        f"{INSERT} (3, 'again', 7, 'came back')",
        "UPDATE items SET id = 300 WHERE id = 4",
        f"{INSERT} (4, 'c4new', 4, 'another')",
        "DELETE FROM items WHERE id = 4",
        "COMMIT",
    ],
    "keys_and_unique_values_that_rotate": [
        "BEGIN",
        "UPDATE items SET code = 'x' WHERE id = 5",
        "UPDATE items SET code = 'c5' WHERE id = 6",
        "UPDATE items SET code = 'c6' WHERE id = 5",
        "UPDATE items SET id = id + 1000 WHERE id > 10 ORDER BY id DESC",
        "UPDATE items SET id = id - 999 WHERE id > 1000 ORDER BY id",
        "COMMIT",
    ],
    "an_insert_that_updates_a_replace": [
        f"{INSERT} (1, 'c1', 5, 'n') ON DUPLICATE KEY UPDATE amount = amount + 1",
        "REPLACE INTO items VALUES (2, 'c3', 5, 'replaces two rows')",
        "COMMIT",
    ],
    "a_table_made_of_a_query": [
        "CREATE TABLE copies (PRIMARY KEY (id)) AS SELECT * FROM items WHERE id < 10",
        "UPDATE copies SET amount = 3",
        "COMMIT",
        "CREATE TABLE others LIKE copies",
        "INSERT INTO others SELECT * FROM copies",
        "COMMIT",
    ],
    "temporary_tables": [
        "CREATE TEMPORARY TABLE scratch (id INT PRIMARY KEY, n INT)",
        "INSERT INTO scratch VALUES (1, 1), (2, 2)",
        "UPDATE items, scratch SET items.amount = scratch.n WHERE items.id = scratch.id",
        "DROP TEMPORARY TABLE scratch",
        "COMMIT",
    ],
    "triggers_and_routines": [
        "CREATE TRIGGER keep BEFORE UPDATE ON items FOR EACH ROW INSERT INTO changes (item, was) VALUES (OLD.id, OLD.code)",
        "UPDATE items SET code = CONCAT(code, '-new') WHERE id < 5",
        "CREATE PROCEDURE stir() UPDATE items SET amount = amount * 2 WHERE id < 5",
        "CALL stir()",
        "COMMIT",
        "DROP PROCEDURE stir",
        "DROP TRIGGER keep",
    ],
    "accounts_and_maintenance": [
        "CREATE USER somebody IDENTIFIED BY 'Secret-1'",
        "GRANT SELECT ON *.* TO somebody",
        "DROP USER somebody",
        "ANALYZE TABLE items",
        "OPTIMIZE TABLE items",
        "FLUSH TABLES",
    ],
    "rows_as_images_of_their_changes": [
        "SET SESSION binlog_row_image = MINIMAL",
        "UPDATE items SET amount = 77 WHERE id = 1",
        "DELETE FROM items WHERE id = 2",
        f"{INSERT} (60, 'minimal', 1, 'n')",
        "COMMIT",
        "SET SESSION binlog_row_image = NOBLOB",
        "UPDATE items SET amount = 78 WHERE id = 3",
        "UPDATE items SET note = 'changed' WHERE id = 5",
        "COMMIT",
        "SET SESSION binlog_row_image = FULL",
    ],
    "a_transaction_of_some_megabytes": [
        "BEGIN",
        *(f"{INSERT} " + ",".join(f"({n}, 'big{n}', {n}, {LONG})" for n in range(first, first + 50)) for first in range(2000, 2200, 50)),
        "UPDATE items SET amount = amount + 1 WHERE id >= 2000",
        "DELETE FROM items WHERE id >= 2150",
        "COMMIT",
    ],
    "a_transaction_that_is_rolled_back": [
        "BEGIN",
        "UPDATE items SET amount = 0",
        "ROLLBACK",
        "UPDATE items SET amount = 1 WHERE id = 1",
        "COMMIT",
    ],
}
"""Each in a schema of its own, which bears its name."""


@pytest.mark.parametrize(("replica", "is_compressed"), [("sqlite_sink", False), ("mariadb_sink", True)], indirect=["replica"])
def test_the_sink_is_identical_after_all_that_a_session_may_do(session, primary, replica, is_compressed):
    if is_compressed:
        run(session, *COMPRESSION[primary.kind])
    for case, statements in CASES.items():
        make_stock(session, case)
        run(session, *statements)
        session.commit()
    run(session, *PLAIN[primary.kind])
    assert wrong(primary, replica, *CASES) == []


def test_rows_of_a_distributed_transaction_count_at_its_commit(session, primary, replica):
    make_stock(session)
    run(session, *XA)
    assert wrong(primary, replica, SCHEMA) == []
    primary.rotate()
    primary.run("UPDATE stock.items SET amount = 5 WHERE id = 1")
    assert wrong(primary, replica, SCHEMA) == []
    run(session, "XA COMMIT 'one'")
    assert wrong(primary, replica, SCHEMA) == []
    run(session, *XA[:1], "UPDATE items SET amount = 1000", *XA[2:], "XA ROLLBACK 'one'")
    assert wrong(primary, replica, SCHEMA) == []


def test_a_change_that_was_logged_as_its_statement_is_refused_by_name(session, primary, replica):
    make_stock(session)
    run(session, "SET SESSION binlog_format = STATEMENT", "UPDATE items SET amount = 3 WHERE id = 1")
    session.commit()
    with pytest.raises(ProtocolError, match="binlog_format"):
        replica.catch_up()
