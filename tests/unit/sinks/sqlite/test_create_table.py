"""CREATE TABLE of upstream, executed on a file and seen through SQLite's own catalogue."""

import pytest

from applier.model.errors import FatalSinkError, NeedsOperator
from applier.model.events import TableName

ORDERS = (
    "CREATE TABLE `t` (`id` BIGINT PRIMARY KEY /*T![clustered_index] CLUSTERED */,`name` VARCHAR(20) DEFAULT _UTF8MB4'a',"
    "`kind` ENUM('x','y') NOT NULL,KEY `k`(`name`, `kind`)) ENGINE = InnoDB DEFAULT CHARACTER SET = UTF8MB4"
)


def test_a_table_is_named_after_schema_and_table_with_its_indexes(file):
    file.ddl("CREATE DATABASE `shop`", ORDERS)
    assert file.tables() == ["shop.t"]
    assert file.columns() == [("id", "INTEGER", True, 1), ("name", "TEXT", False, 0), ("kind", "TEXT", True, 0)]
    assert file.indexes() == {"shop.t.k": (False, ["name", "kind"])}


def test_mysqls_words_are_kept_in_the_schema_itself(file):
    file.ddl(ORDERS)
    assert file.types() == {"id": "bigint NOT NULL", "name": "varchar(20) DEFAULT 'a'", "kind": "enum('x','y') NOT NULL"}


def test_what_tidb_executes_in_a_comment_is_executed_here_too(file):
    file.ddl("CREATE TABLE `t` (`id` BIGINT PRIMARY KEY /*!50100 , `v` INT */ /*M!100100 , `m` INT */)")
    assert [name for name, *_ in file.columns()] == ["id", "v"]


TYPES = [
    ("TINYINT(1)", "INTEGER", "tinyint(1)"),
    ("BOOLEAN", "INTEGER", "tinyint(1)"),
    ("INT(11) UNSIGNED ZEROFILL", "INTEGER", "int(11) unsigned zerofill"),
    ("INTEGER", "INTEGER", "int"),
    ("BIGINT", "INTEGER", "bigint"),
    ("BIGINT(20) UNSIGNED", "ANY", "bigint(20) unsigned"),
    ("BIT(63)", "INTEGER", "bit(63)"),
    ("BIT(64)", "ANY", "bit(64)"),
    ("DECIMAL(65,30)", "TEXT", "decimal(65,30)"),
    ("NUMERIC", "TEXT", "decimal(10,0)"),
    ("FLOAT", "REAL", "float"),
    ("FLOAT(53)", "REAL", "double"),
    ("DOUBLE PRECISION", "REAL", "double"),
    ("REAL(10,2)", "REAL", "double(10,2)"),
    ("DATE", "TEXT", "date"),
    ("DATETIME(6)", "TEXT", "datetime(6)"),
    ("TIMESTAMP", "TEXT", "timestamp"),
    ("TIME(3)", "TEXT", "time(3)"),
    ("YEAR(4)", "INTEGER", "year(4)"),
    ("CHAR(5) CHARACTER SET UTF8MB4 COLLATE UTF8MB4_BIN", "TEXT", "char(5)"),
    ("NATIONAL VARCHAR(5)", "TEXT", "varchar(5)"),
    ("VARCHAR(5) CHARACTER SET gbk", "TEXT", "varchar(5) character set gbk"),
    ("VARCHAR(5) CHARACTER SET BINARY", "BLOB", "varbinary(5)"),
    ("CHAR(5) BYTE", "BLOB", "binary(5)"),
    ("LONGTEXT", "TEXT", "longtext"),
    ("BINARY(16)", "BLOB", "binary(16)"),
    ("VARBINARY(16)", "BLOB", "varbinary(16)"),
    ("LONGBLOB", "BLOB", "longblob"),
    ("ENUM('it''s','a,b','int','*/')", "TEXT", r"enum('it''s','a,b','int','*\/')"),
    ("SET('x','y ')", "TEXT", "set('x','y')"),
    ("JSON", "TEXT", "json"),
    ("VECTOR(3)", "TEXT", "vector(3)"),
]


@pytest.mark.parametrize(("mysql", "sqlite", "kept"), TYPES)
def test_every_type_gets_a_storage_that_keeps_its_values(file, mysql, sqlite, kept):
    file.ddl(f"CREATE TABLE `t` (`c` {mysql})")
    assert file.columns() == [("c", sqlite, False, 0)]
    assert file.types() == {"c": kept}


DEFAULTS = [
    ("DEFAULT NULL", ""),
    ("DEFAULT _UTF8MB4'it''s */ \\\\ \\n'", r" DEFAULT 'it''s *\/ \\ \n'"),
    ("DEFAULT -1.5", " DEFAULT -1.5"),
    ("DEFAULT 1e3", " DEFAULT 1e3"),
    ("DEFAULT b'101'", " DEFAULT X'05'"),
    ("DEFAULT x'4142'", " DEFAULT X'4142'"),
    ("DEFAULT 0x4142", " DEFAULT X'4142'"),
    ("DEFAULT TRUE", " DEFAULT 1"),
    ("DEFAULT (7)", " DEFAULT 7"),
    ("DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP", " DEFAULT CURRENT_TIMESTAMP"),
    ("DEFAULT CURRENT_TIMESTAMP(3) ON UPDATE CURRENT_TIMESTAMP(3)", " DEFAULT CURRENT_TIMESTAMP(3)"),
    ("DEFAULT (NOW())", " DEFAULT CURRENT_TIMESTAMP"),
    ("DEFAULT (UUID())", " DEFAULT (UUID())"),
    ("DEFAULT (NEXT VALUE FOR `s`.`q`)", " DEFAULT (NEXT VALUE FOR `s`.`q`)"),
    ("COMMENT 'DEFAULT 5' NULL", ""),
]


@pytest.mark.parametrize(("clause", "kept"), DEFAULTS)
def test_defaults_are_kept_and_read_back(file, clause, kept):
    file.ddl(f"CREATE TABLE `t` (`c` VARCHAR(30) {clause})")
    assert file.types() == {"c": "varchar(30)" + kept}
    assert file.described().columns[0].has_default is bool(kept)


@pytest.mark.parametrize(
    ("definition", "literal"),
    [
        ("VARCHAR(30) DEFAULT 'it''s'", "'it''s'"),
        ("VARBINARY(9) DEFAULT x'41'", "x'41'"),
        ("DECIMAL(9,2) NOT NULL DEFAULT 1.5", "'1.50'"),
        ("BIGINT UNSIGNED NOT NULL DEFAULT 18446744073709551615", "'18446744073709551615'"),
        ("DOUBLE NOT NULL DEFAULT -2", "-2.0"),
        ("INT", "NULL"),
        ("INT NOT NULL", None),
        ("DATETIME DEFAULT CURRENT_TIMESTAMP", None),
        ("VARCHAR(40) DEFAULT (UUID())", None),
        ("YEAR DEFAULT 'x'", None),
    ],
)
def test_the_default_that_a_new_row_takes_for_a_column_that_its_image_lacks(file, definition, literal):
    file.ddl(f"CREATE TABLE `t` (`c` {definition})")
    assert file.described().columns[0].default == literal


def test_a_not_null_column_has_no_default_in_sqlite_that_replace_could_put_for_null(file):
    file.ddl("CREATE TABLE `t` (`id` INT PRIMARY KEY, `c` INT NOT NULL DEFAULT 5)")
    with pytest.raises(Exception, match="NOT NULL constraint failed"):
        file.connection.execute('REPLACE INTO "shop.t" VALUES (1, NULL)')


def test_keys_of_every_spelling_are_created(file):
    file.ddl(
        "CREATE TABLE `t` (`a` INT, `b` VARCHAR(9) NOT NULL UNIQUE, `c` VARBINARY(9), `d` INT KEY, UNIQUE `u` USING BTREE (`a`,`b`),"
        "CONSTRAINT `con` UNIQUE KEY (`c`(3)), INDEX (`a`) /*T! GLOBAL */, KEY (`a` DESC) INVISIBLE, FULLTEXT `f`(`b`) WITH PARSER x,"
        "CONSTRAINT `fk` FOREIGN KEY (`a`,`d`) REFERENCES `o` (`x`,`y`) ON DELETE SET NULL ON UPDATE NO ACTION, CHECK ((`a` > 1)))"
    )
    assert file.columns()[3] == ("d", "INTEGER", True, 1)
    assert file.indexes() == {
        "shop.t.u": (True, ["a", "b"]),
        "shop.t.con": (True, [None]),
        "shop.t.f": (False, ["b"]),
        "shop.t.fk": (False, ["a", "d"]),
        "shop.t.a": (False, ["a"]),
        "shop.t.a_2": (False, ["a"]),
        "shop.t.b": (True, ["b"]),
    }
    assert file.described().unique_keys == (("d",), ("b",))


def test_anonymous_indexes_leave_the_names_of_named_ones_alone(file):
    file.ddl("CREATE TABLE `t` (`a` INT, KEY (`a`), KEY `a`(`a`), UNIQUE (`a`))")
    assert file.indexes() == {"shop.t.a": (False, ["a"]), "shop.t.a_2": (False, ["a"]), "shop.t.a_3": (True, ["a"])}


def test_a_unique_prefix_stays_unique_on_the_prefix(file):
    file.ddl("CREATE TABLE `t` (`a` VARCHAR(9), `b` BLOB, UNIQUE (`a`(2)), UNIQUE (`b`(1)))")
    file.insert("shop.t", ("ab1", b"x1"))
    with pytest.raises(Exception, match="UNIQUE"):
        file.insert("shop.t", ("ab2", b"y"))
    with pytest.raises(Exception, match="UNIQUE"):
        file.insert("shop.t", ("b", b"x2"))
    file.insert("shop.t", ("ac", b"y"))


def test_a_composite_primary_key_and_a_prefixed_one_are_kept(file):
    file.ddl("CREATE TABLE `t` (`a` INT, `b` INT, PRIMARY KEY (`b`,`a`) NONCLUSTERED)", "CREATE TABLE `p` (`a` TEXT, PRIMARY KEY (`a`(3)))")
    assert file.columns() == [("a", "INTEGER", True, 2), ("b", "INTEGER", True, 1)]
    assert file.described().primary_key == ("b", "a")
    assert file.indexes("shop.p") == {"shop.p.PRIMARY": (True, [None])}
    assert file.columns("shop.p") == [("a", "TEXT", True, 0)]


def test_create_table_of_binary_charset_makes_binary_columns_unless_they_say_otherwise(file):
    file.ddl("CREATE TABLE `t` (`a` VARCHAR(9), `b` TEXT CHARACTER SET utf8mb4, `c` INT) DEFAULT CHARSET=binary")
    assert [kind for _, kind, _, _ in file.columns()] == ["BLOB", "TEXT", "INTEGER"]


def test_partition_clauses_and_table_options_of_create_table_are_ignored(file):
    file.ddl(
        "CREATE TABLE `t` (`id` INT PRIMARY KEY) ENGINE=InnoDB AUTO_INCREMENT=5 COMMENT='PARTITION, AS' /*T! SHARD_ROW_ID_BITS=4 */ "
        "PARTITION BY RANGE (`id`) (PARTITION `p0` VALUES LESS THAN (10), PARTITION `p1` VALUES LESS THAN (MAXVALUE))"
    )
    assert file.columns() == [("id", "INTEGER", True, 1)]


def test_create_like_copies_columns_keys_and_indexes(file):
    file.ddl(ORDERS, "CREATE TABLE `other`.`copy` LIKE `t`", "CREATE TABLE IF NOT EXISTS `c2` (LIKE `shop`.`t`)")
    assert file.types(TableName("other", "copy")) == file.types()
    assert file.indexes("other.copy") == {"other.copy.k": (False, ["name", "kind"])}
    assert file.tables() == ["other.copy", "shop.c2", "shop.t"]


@pytest.mark.parametrize("create", ["CREATE TABLE", "CREATE TABLE IF NOT EXISTS"])
def test_the_very_same_table_may_be_there_already_and_another_may_not(file, create):
    file.ddl(ORDERS, ORDERS.replace("CREATE TABLE", create))
    with pytest.raises(FatalSinkError, match="already has a table of this name, with another definition"):
        file.ddl(f"{create} `T` (`x` INT)")


@pytest.mark.parametrize("create", ["CREATE TABLE", "CREATE TABLE IF NOT EXISTS"])
def test_the_very_same_table_with_rows_is_not_what_a_create_table_makes(file, create):
    file.ddl("CREATE TABLE `t` (`id` INT PRIMARY KEY)")
    file.connection.execute('INSERT INTO "shop.t" VALUES (1)')
    with pytest.raises(FatalSinkError, match="with rows in it"):
        file.ddl(f"{create} `t` (`id` INT PRIMARY KEY)")


def test_tables_of_different_schemas_never_meet(file):
    for schema, table in (
        ("a.b", "c"),
        ("a", "b.c"),
        ("a%2Eb", "c"),
        ("sqlite_x", "t"),
        ("a", 'q"t'),
        ("表", "😀"),
        ("applier_", "progress"),
    ):
        file.ddl(f"CREATE TABLE `{table}` (`{table}` INT PRIMARY KEY, KEY (`{table}`))", schema=schema, table=table)
        assert file.described(TableName(schema, table)).schema == schema
        assert file.described(TableName(schema, table)).table == table
    assert len(file.tables()) == 7


def test_names_are_looked_up_without_regard_to_case_beyond_ascii_too(file):
    file.ddl("CREATE TABLE `Straße` (`Ä` INT PRIMARY KEY)")
    file.ddl("ALTER TABLE `STRASSE` RENAME COLUMN `ä` TO `b`")
    assert file.types(TableName("SHOP", "strasse")) == {"b": "int NOT NULL"}


def test_a_note_that_somebody_has_changed_in_the_file_needs_the_operator(file):
    file.connection.execute('CREATE TABLE "shop.t" ("id" INTEGER PRIMARY KEY /*: int NOT NULL */, "a" TEXT /*: nonsense */) STRICT')
    with pytest.raises(NeedsOperator, match="expected a type that can be translated") as caught:
        file.described(TableName("shop", "t"))
    assert caught.value.facts["table"] == "shop.t"
