"""CREATE TABLE becomes the definition of a table: every spelling of a type, a default and a key, in MySQL's own words."""

import pytest

from applier.ddl.parser import parse
from applier.ddl.table_draft import IndexDefinition, IndexPart, TableDefinition, parse_index, parse_mysql_definition, parse_mysql_parts
from applier.ddl.tokens import DdlSyntaxError
from applier.ddl.tree import IndexStatement
from applier.model.errors import NeedsOperator
from tests.builders.table_definition import created


def column_of(definition: str) -> str:
    """Return the words in which a column is kept."""
    (column,) = created(f"CREATE TABLE t (`c` {definition})").columns
    return column.mysql


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ("INTEGER", "int"),
        ("INT(5) UNSIGNED ZEROFILL", "int(5) unsigned zerofill"),
        ("BOOL", "tinyint(1)"),
        ("BOOLEAN NOT NULL", "tinyint(1) NOT NULL"),
        ("NUMERIC", "decimal(10,0)"),
        ("DEC(5)", "decimal(5,0)"),
        ("REAL(10,2)", "double(10,2)"),
        ("DOUBLE PRECISION", "double"),
        ("FLOAT(24)", "float"),
        ("FLOAT(25)", "double"),
        ("CHARACTER VARYING(9)", "varchar(9)"),
        ("NATIONAL VARCHAR(9)", "varchar(9)"),
        ("LONG", "mediumtext"),
        ("LONG VARCHAR", "mediumtext"),
        ("LONG VARBINARY", "mediumblob"),
        ("CHAR(3) BYTE", "binary(3)"),
        ("TEXT CHARACTER SET binary", "blob"),
        ("INT CHARACTER SET binary", "int"),
        ("VARCHAR(9) CHARSET = 'gbk' COLLATE gbk_bin", "varchar(9) character set gbk"),
        ("VARCHAR(9) CHAR SET utf8mb3 BINARY", "varchar(9)"),
        ("ENUM('a ','it''s', N'n', _utf8mb4'x')", "enum('a','it''s','n','x')"),
        ("SERIAL", "bigint unsigned NOT NULL"),
        ("VECTOR(3)", "vector(3)"),
    ],
)
def test_types_are_kept_as_mysqls_catalogue_spells_them(written: str, kept: str) -> None:
    assert column_of(written) == kept


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ("DEFAULT NULL", ""),
        ("DEFAULT -1.5e3", " DEFAULT -1.5e3"),
        ("DEFAULT +.5", " DEFAULT .5"),
        ("DEFAULT TRUE", " DEFAULT 1"),
        ("DEFAULT false", " DEFAULT 0"),
        (r"DEFAULT 'it''s \' \\ \n'", r" DEFAULT 'it''s '' \\ \n'"),
        ("DEFAULT _utf8mb4'x'", " DEFAULT 'x'"),
        ("DEFAULT ('x')", " DEFAULT 'x'"),
        ("DEFAULT x'4a'", " DEFAULT X'4a'"),
        ("DEFAULT 0x4AB", " DEFAULT X'04ab'"),
        ("DEFAULT b'101'", " DEFAULT X'05'"),
        ("DEFAULT 0b1", " DEFAULT X'01'"),
        ("DEFAULT NOW()", " DEFAULT CURRENT_TIMESTAMP"),
        ("DEFAULT (CURRENT_TIMESTAMP(3)) ON UPDATE CURRENT_TIMESTAMP(3)", " DEFAULT CURRENT_TIMESTAMP(3)"),
        ("DEFAULT (NULL)", " DEFAULT (NULL)"),
        ("DEFAULT (UUID())", " DEFAULT (UUID())"),
        ("DEFAULT UUID()", " DEFAULT (UUID())"),
        ("DEFAULT NEXT VALUE FOR `s`.q", " DEFAULT (NEXT VALUE FOR s.q)"),
        ("DEFAULT NEXT VALUE FOR q", " DEFAULT (NEXT VALUE FOR q)"),
        ("GENERATED ALWAYS AS (`a` + _utf8mb4'x') STORED", " GENERATED ALWAYS AS (`a` + 'x') STORED"),
        ("AS (a)", " GENERATED ALWAYS AS (a) VIRTUAL"),
        ("COMMENT 'x' COLUMN_FORMAT FIXED STORAGE DISK ENGINE_ATTRIBUTE = '{}' SRID 4326 AUTO_INCREMENT VISIBLE NULL", ""),
        ("REFERENCES q.p (id) MATCH FULL ON DELETE SET NULL ON UPDATE NO ACTION", ""),
        ("CONSTRAINT k CHECK (c > 0) NOT ENFORCED", ""),
        ("CONSTRAINT CHECK (c > 0) ENFORCED AUTO_RANDOM(5)", ""),
    ],
)
def test_defaults_and_options_are_kept_where_they_give_a_value(written: str, kept: str) -> None:
    assert column_of(f"INT {written}") == f"int{kept}"
    assert parse_mysql_definition("c", f"int{kept}").mysql == f"int{kept}"


@pytest.mark.parametrize(
    "definition",
    [
        "BFILE", "", "ENUM()", "ENUM(5)", "DECIMAL(a)", "INT DEFAULT", "INT DEFAULT abc", "INT NONSENSE", "INT AFTER b", "INT CHARSET",
        "INT COMMENT", "INT DEFAULT (", "INT REFERENCES 'p'",
    ],
)  # fmt: skip
def test_a_column_that_is_not_wholly_known_stops(definition: str) -> None:
    with pytest.raises(DdlSyntaxError):
        column_of(definition)


def test_the_character_set_of_the_table_is_that_of_columns_without_one() -> None:
    table = created(
        "CREATE TABLE t (a CHAR(3), b CHAR(3) COLLATE utf8mb4_bin, c INT) ENGINE=InnoDB DEFAULT CHARSET=gbk PARTITION BY HASH (c)"
    )
    assert [column.mysql for column in table.columns] == ["char(3) character set gbk", "char(3)", "int"]


def index(name: str, *columns: str, unique: bool = False) -> IndexDefinition:
    return IndexDefinition(name, tuple(IndexPart(column) for column in columns), unique=unique)


@pytest.mark.parametrize(
    ("elements", "primary", "indexes"),
    [
        ("a INT PRIMARY KEY, b INT UNIQUE", ["a"], [index("b", "b", unique=True)]),
        ("a INT KEY, b SERIAL", ["a"], [index("b", "b", unique=True)]),
        ("a INT, b INT, CONSTRAINT x PRIMARY KEY p USING BTREE (a, b DESC)", ["a", "b"], []),
        (
            "a INT, b INT, KEY (a), INDEX a (b), UNIQUE KEY type (b)",
            [],
            [index("a", "b"), index("type", "b", unique=True), index("a_2", "a")],
        ),
        ("a INT, CONSTRAINT u UNIQUE (a), CONSTRAINT UNIQUE v (a)", [], [index("u", "a", unique=True), index("v", "a", unique=True)]),
        ("a INT, CONSTRAINT f FOREIGN KEY (a) REFERENCES p (id) ON DELETE CASCADE", [], [index("f", "a")]),
        ("a INT, FOREIGN KEY IF NOT EXISTS f (a) REFERENCES p (id)", [], [index("f", "a")]),
        ("a INT, KEY k (a), FOREIGN KEY f (a) REFERENCES p (id), FOREIGN KEY (a) REFERENCES p (id)", [], [index("k", "a")]),
        ("a INT, CHECK (a > 0), CONSTRAINT c CHECK (a > 1)", [], []),
        ("a TEXT, FULLTEXT KEY f (a) WITH PARSER x", [], [index("f", "a")]),
        ("a VECTOR, VECTOR INDEX v ((VEC_COSINE_DISTANCE(`a`))) USING HNSW", [], [index("v", "a")]),
        ("`vector` INT, columnar INT, KEY (`vector`)", [], [index("vector", "vector")]),
        ("a INT, KEY e ((a + 1))", [], [IndexDefinition("e", (IndexPart("", 0, "a + 1"),))]),
        ("a TEXT, KEY e (a(3))", [], [IndexDefinition("e", (IndexPart("a", 3),))]),
    ],
)
def test_keys_are_named_as_upstream_names_them(elements: str, primary: list[str], indexes: list[IndexDefinition]) -> None:
    table = created(f"CREATE TABLE t ({elements})")
    assert [part.column for part in table.primary_key] == primary
    assert list(table.indexes) == indexes
    for one in indexes:
        assert parse_mysql_parts(",".join(part.mysql for part in one.parts)) == one.parts


@pytest.mark.parametrize(
    ("statement", "wanted"),
    [
        ("CREATE INDEX i ON t (a)", index("i", "a")),
        ("CREATE UNIQUE INDEX `i` USING BTREE ON q.t (a, b) COMMENT 'x'", index("i", "a", "b", unique=True)),
        ("CREATE FULLTEXT INDEX i ON t (a) WITH PARSER x", index("i", "a")),
        ("CREATE VECTOR INDEX i ON t ((VEC_L2_DISTANCE(`a`)))", index("i", "a")),
    ],
)
def test_an_index_of_its_own_statement_is_like_one_of_the_table(statement: str, wanted: IndexDefinition) -> None:
    tree = parse(statement)
    assert isinstance(tree.node, IndexStatement)
    assert parse_index(tree, tree.node) == wanted


@pytest.mark.parametrize("statement", ["CREATE UNIQUE INDEX i ON t (a) WHERE a > 0", "CREATE INDEX i ON t (a"])
def test_an_index_that_is_not_wholly_known_stops(statement: str) -> None:
    tree = parse(statement)
    assert isinstance(tree.node, IndexStatement)
    with pytest.raises(DdlSyntaxError):
        parse_index(tree, tree.node)


@pytest.mark.parametrize(
    "query",
    [
        "CREATE TABLE t",
        "CREATE TABLE t (a INT) AS SELECT 1",
        "CREATE TABLE t (a INT",
        "CREATE TABLE t (a INT, CONSTRAINT c b INT)",
        "CREATE TABLE t (a INT, 'b' INT)",
        "CREATE TABLE t (a INT, KEY k ())",
        "CREATE TABLE t (a INT, UNIQUE KEY k (a) WHERE a > 0)",
        "CREATE TABLE t (a INT, KEY k (a b))",
        "CREATE TABLE t (a VECTOR, VECTOR INDEX v ((f(`a`, `b`))))",
        "CREATE TABLE t (a INT, FOREIGN KEY (a))",
    ],
)
def test_a_table_that_is_not_wholly_known_stops(query: str) -> None:
    with pytest.raises(DdlSyntaxError):
        created(query)


@pytest.mark.parametrize(
    "elements", ["a INT, A INT", "a INT, KEY k (b)", "a INT, PRIMARY KEY (a), PRIMARY KEY (a)", "a INT, KEY k (a), KEY k (a)"]
)
def test_a_table_that_cannot_be_needs_the_operator(elements: str) -> None:
    with pytest.raises(NeedsOperator):
        created(f"CREATE TABLE t ({elements})")


def test_a_definition_finds_its_columns_and_indexes_without_regard_to_case() -> None:
    table = created("CREATE TABLE t (Straße INT, KEY Idx (Straße))")
    assert table.column("STRASSE") == table.columns[0]
    assert table.index("iDX") == table.indexes[0]
    assert table.column("x") is table.index("x") is None
    assert isinstance(table, TableDefinition)
