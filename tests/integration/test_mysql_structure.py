"""A table's structure, read from a real catalogue: all of it, for many tables in few statements."""

from collections.abc import Iterator

import pytest
from sqlalchemy import Connection

from applier.model.events import TableName
from applier.mysql.catalogue import FEW, read_structures
from applier.mysql.session import discard
from applier.mysql.structure import (
    Check,
    Expression,
    ForeignKey,
    IndexPartStructure,
    IndexStructure,
    Partition,
    Partitioning,
    TableStructure,
)
from applier.sinks.mysql.session import Purpose, open_session
from tests.integration.mysql_replica import SHOP, clean, run, settings
from tests.integration.sent_statements import sent_statements


@pytest.fixture
def url(mysql_url: str) -> Iterator[str]:
    clean(mysql_url)
    run(mysql_url, f"CREATE SCHEMA {SHOP} DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin")
    yield mysql_url
    clean(mysql_url)


@pytest.fixture
def session(url: str) -> Iterator[Connection]:
    opened = open_session(settings(url), Purpose.CONTROL)
    yield opened
    discard(opened)


def structures(session: Connection, *tables: str) -> list[TableStructure]:
    """Read the tables, in its own transaction."""
    names = [TableName(SHOP, table) for table in tables]
    found = read_structures(session, names)
    session.rollback()
    return [found[name.fold()] for name in names]


def made(session: Connection, url: str, statement: str) -> TableStructure:
    run(url, f"DROP TABLE IF EXISTS {SHOP}.t", statement.replace("TABLE t", f"TABLE {SHOP}.t"))
    (structure,) = structures(session, "t")
    return structure


def test_everything_that_a_statement_says_is_in_the_structure(session: Connection, url: str) -> None:
    run(url, f"CREATE TABLE {SHOP}.parent (id INT UNSIGNED PRIMARY KEY)")
    table = made(
        session,
        url,
        "CREATE TABLE t (id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT, a VARCHAR(10) CHARACTER SET latin1 NOT NULL DEFAULT 'it''s',"
        " p INT UNSIGNED, d DATETIME(3) DEFAULT CURRENT_TIMESTAMP(3) ON UPDATE CURRENT_TIMESTAMP(3), g INT AS (p + 1) VIRTUAL, j JSON,"
        f" PRIMARY KEY (id), UNIQUE KEY u (a(3), p DESC), CONSTRAINT fk FOREIGN KEY (p) REFERENCES {SHOP}.parent (id) ON DELETE CASCADE,"
        " CONSTRAINT ck CHECK (p > 0), CHECK (p < 9)) COMMENT = 'of all' ROW_FORMAT = COMPRESSED",
    )
    ids, text, parent, moment, generated, document = table.columns
    assert (table.kind, table.engine, table.collation, table.comment) == ("BASE TABLE", "InnoDB", "utf8mb4_bin", "of all")
    assert table.options == ("row_format=compressed",)
    assert (ids.type, ids.nullable, ids.auto_increment, ids.data_type) == ("bigint unsigned", False, True, "bigint")
    assert (text.type, text.character_set, text.collation, text.default) == ("varchar(10)", "latin1", "latin1_swedish_ci", "it's")
    assert (moment.default_expression, moment.on_update) == (Expression("CURRENT_TIMESTAMP(3)"), Expression("CURRENT_TIMESTAMP(3)"))
    assert (generated.generation, generated.is_stored) == (Expression("`p` + 1"), False)
    assert (document.type, parent.default) == ("json", None)
    primary, *others = table.indexes
    assert primary == IndexStructure(name="PRIMARY", unique=True, parts=(IndexPartStructure(column="id"),))
    unique = IndexStructure(
        name="u", unique=True, parts=(IndexPartStructure(column="a", prefix=3), IndexPartStructure(column="p", descending=True))
    )
    assert unique in others
    assert table.foreign_keys == (
        ForeignKey(
            name="fk",
            columns=("p",),
            referenced_schema=SHOP,
            referenced_table="parent",
            referenced_columns=("id",),
            on_delete="CASCADE",
            on_update="RESTRICT",
        ),
    )
    assert table.checks == (Check(name="", clause=Expression("`p` < 9")), Check(name="ck", clause=Expression("`p` > 0")))


def test_names_that_the_server_generates_are_no_part_of_the_structure(session: Connection, url: str) -> None:
    run(url, f"CREATE TABLE {SHOP}.parent (id INT PRIMARY KEY)")
    columns = f"(id INT PRIMARY KEY, CHECK (id > 0), FOREIGN KEY (id) REFERENCES {SHOP}.parent (id))"
    run(url, *(f"CREATE TABLE {SHOP}.{table} {columns}" for table in ("one", "two")))
    one, two = structures(session, "one", "two")
    assert one == two
    assert [one.checks[0].name, one.foreign_keys[0].name] == ["", ""]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("(id INT PRIMARY KEY, v INT)", "(id INT PRIMARY KEY, v BIGINT)"),
        ("(id INT PRIMARY KEY, v VARCHAR(3))", "(id INT PRIMARY KEY, v VARCHAR(3) COLLATE utf8mb4_general_ci)"),
        ("(id INT, v INT, PRIMARY KEY (id))", "(id INT NOT NULL, v INT NOT NULL, PRIMARY KEY (id, v))"),
        ("(id INT, v INT, UNIQUE u (id, v))", "(id INT, v INT, UNIQUE u (v))"),
        ("(id INT, v INT, UNIQUE u (id))", "(id INT, v INT, KEY u (id))"),
        ("(id INT, v VARCHAR(9), KEY k (v))", "(id INT, v VARCHAR(9), KEY k (v(3)))"),
        ("(id INT, v INT DEFAULT 7)", "(id INT, v INT)"),
        ("(id INT)", "(id INT) COMMENT 'x'"),
        ("(id INT)", "(id INT) COLLATE utf8mb4_general_ci"),
        ("(id INT)", "(id INT) ENGINE = MyISAM"),
        ("(id INT)", "(id INT) PARTITION BY HASH (id) PARTITIONS 2"),
        ("(id INT) PARTITION BY HASH (id) PARTITIONS 3", "(id INT) PARTITION BY HASH (id) PARTITIONS 2"),
        ("(id INT, v BINARY(2) DEFAULT 0x84E5)", "(id INT, v BINARY(2) DEFAULT 0x85E5)"),
    ],
)
def test_tables_that_differ_have_different_structures(session: Connection, url: str, one: str, other: str) -> None:
    first = made(session, url, f"CREATE TABLE t {one}")
    assert first == made(session, url, f"CREATE TABLE t {one}")
    assert first != made(session, url, f"CREATE TABLE t {other}")


def test_partitions_with_their_limits_are_in_the_structure(session: Connection, url: str) -> None:
    rest = "PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (10), PARTITION p1 VALUES LESS THAN MAXVALUE)"
    table = made(session, url, f"CREATE TABLE t (id INT PRIMARY KEY) {rest}")
    limits = (Partition(name="p0", description="10"), Partition(name="p1", description="MAXVALUE"))
    assert table.partitioning == Partitioning(method="RANGE", expression=Expression("`id`"), partitions=limits)


def test_a_view_is_no_table_and_a_trigger_is_seen(session: Connection, url: str) -> None:
    run(url, f"CREATE TABLE {SHOP}.t (id INT PRIMARY KEY)", f"CREATE VIEW {SHOP}.v AS SELECT id FROM {SHOP}.t")
    run(url, f"CREATE TRIGGER {SHOP}.r BEFORE INSERT ON {SHOP}.t FOR EACH ROW SET NEW.id = NEW.id + 1")
    table, view = structures(session, "t", "v")
    assert (table.is_view, view.is_view) == (False, True)
    ((name, timing, action),) = [(trigger.name, trigger.timing, trigger.event) for trigger in table.triggers]
    assert (name, timing, action) == ("r", "BEFORE", "INSERT")


def test_many_tables_are_read_in_as_many_statements_as_one(session: Connection, url: str) -> None:
    tables = [f"t{number}" for number in range(FEW + 5)]
    run(url, *(f"CREATE TABLE {SHOP}.{table} (id INT PRIMARY KEY, v INT DEFAULT {table[1:]})" for table in tables))
    structures(session, tables[0])  # a session learns once where its server shows checks
    with sent_statements(session) as few:
        alone = structures(session, tables[3])
    with sent_statements(session) as many:
        together = structures(session, *tables)
    assert [structure.columns[1].default for structure in together] == [table[1:] for table in tables]
    assert together[3:4] == alone
    assert len(many) == len(few) <= 12


def test_a_table_that_is_missing_is_left_out(session: Connection) -> None:
    assert read_structures(session, [TableName(SHOP, "missing"), TableName("no_such_schema", "t")]) == {}
    assert read_structures(session, []) == {}
