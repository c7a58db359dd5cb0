"""One statement of every DDL type that a server of the MySQL family can run, on its own table for each of several times."""

from dataclasses import dataclass

TABLE = "CREATE TABLE t{n} (id INT PRIMARY KEY, v INT, w VARCHAR(20) NOT NULL DEFAULT 'x')"
PARTITIONED = TABLE + " PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (10), PARTITION p1 VALUES LESS THAN (20))"
OTHER = "CREATE TABLE o{n} (id INT PRIMARY KEY, v INT, w VARCHAR(20) NOT NULL DEFAULT 'x')"
VIEW = "CREATE VIEW w{n} AS SELECT id FROM t{n}"
INVALID_VIEW = (TABLE, OTHER, "CREATE VIEW w{n} AS SELECT id FROM o{n}", "DROP TABLE o{n}")


@dataclass(frozen=True, slots=True)
class DdlCase:
    """``type``: name of the DDL type. ``setup``: what makes the tables; the first one holds rows. ``table``: which one the event names."""

    type: str
    statement: str
    setup: tuple[str, ...] = (TABLE,)
    table: str = "t{n}"
    schema: str = "lab"

    def __str__(self) -> str:
        return self.type


def alter(kind: str, clause: str, *setup: str) -> DdlCase:
    """ALTER TABLE on the first table."""
    return DdlCase(kind, f"ALTER TABLE t{{n}} {clause}", setup or (TABLE,))


CASES = (
    DdlCase("create_schema", "CREATE DATABASE lab_{n}", (), "", "lab_{n}"),
    DdlCase(
        "drop_schema", "DROP DATABASE lab_{n}", ("CREATE DATABASE lab_{n}", "CREATE TABLE lab_{n}.t (id INT PRIMARY KEY)"), "", "lab_{n}"
    ),
    DdlCase("create_table", TABLE, ()),
    DdlCase("create_tables", TABLE, ()),
    DdlCase("drop_table", "DROP TABLE t{n}"),
    DdlCase("truncate_table", "TRUNCATE TABLE t{n}"),
    DdlCase("rename_table", "RENAME TABLE t{n} TO r{n}", table="r{n}"),
    DdlCase("rename_tables", "RENAME TABLE t{n} TO r{n}, o{n} TO t{n}", (TABLE, OTHER)),
    DdlCase("create_view", VIEW, table="w{n}"),
    DdlCase("create_view", "CREATE OR REPLACE VIEW w{n} AS SELECT v FROM t{n}", (TABLE, VIEW), "w{n}"),
    DdlCase("drop_view", "DROP VIEW w{n}", (TABLE, VIEW), "w{n}"),
    DdlCase("drop_view", "DROP VIEW w{n}", INVALID_VIEW, "w{n}"),
    DdlCase("create_view", "CREATE OR REPLACE VIEW w{n} AS SELECT id FROM t{n}", INVALID_VIEW, "w{n}"),
    DdlCase(
        "modify_schema_charset",
        "ALTER DATABASE lab_{n} CHARACTER SET latin1 COLLATE latin1_bin",
        ("CREATE DATABASE lab_{n}",),
        "",
        "lab_{n}",
    ),
    DdlCase("add_index", "CREATE INDEX by_v ON t{n} (v)"),
    alter("add_column", "ADD COLUMN c INT NOT NULL DEFAULT 7"),
    alter("add_columns", "ADD COLUMN c INT DEFAULT 7, ADD COLUMN d INT"),
    alter("drop_column", "DROP COLUMN v"),
    alter("drop_columns", "DROP COLUMN v, DROP COLUMN w"),
    alter("modify_column", "MODIFY COLUMN v BIGINT NOT NULL"),
    alter("set_default_value", "ALTER COLUMN v SET DEFAULT 5"),
    alter("multi_schema_change", "ADD COLUMN c INT, DROP COLUMN v, ADD INDEX by_w (w)"),
    alter("drop_index", "DROP INDEX by_v", TABLE, "CREATE INDEX by_v ON t{n} (v)"),
    alter("drop_indexes", "DROP INDEX by_v, DROP INDEX by_w", TABLE, "CREATE INDEX by_v ON t{n} (v)", "CREATE INDEX by_w ON t{n} (w)"),
    alter("rename_index", "RENAME INDEX by_v TO v_by", TABLE, "CREATE INDEX by_v ON t{n} (v)"),
    alter("add_primary_key", "ADD PRIMARY KEY (v)", "CREATE TABLE t{n} (id INT NOT NULL UNIQUE, v INT NOT NULL, w VARCHAR(20) NOT NULL)"),
    alter("drop_primary_key", "DROP PRIMARY KEY"),
    alter("add_foreign_key", "ADD CONSTRAINT f{n} FOREIGN KEY (v) REFERENCES o{n} (id)", TABLE, OTHER),
    alter(
        "drop_foreign_key",
        "DROP FOREIGN KEY f{n}",
        TABLE,
        OTHER,
        "ALTER TABLE t{n} ADD CONSTRAINT f{n} FOREIGN KEY (v) REFERENCES o{n} (id)",
    ),
    alter("add_check_constraint", "ADD CONSTRAINT c{n} CHECK (v > 0)"),
    alter("drop_check_constraint", "DROP CONSTRAINT c{n}", TABLE, "ALTER TABLE t{n} ADD CONSTRAINT c{n} CHECK (v > 0)"),
    alter("modify_table_comment", "COMMENT = 'it''s new'"),
    alter("modify_table_charset", "CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci"),
    alter("rebase_auto_id", "AUTO_INCREMENT = 500", "CREATE TABLE t{n} (id INT PRIMARY KEY AUTO_INCREMENT, v INT, w VARCHAR(20) NOT NULL)"),
    alter("add_table_partition", "ADD PARTITION (PARTITION p2 VALUES LESS THAN (30))", PARTITIONED),
    alter("drop_table_partition", "DROP PARTITION p0", PARTITIONED),
    alter("truncate_table_partition", "TRUNCATE PARTITION p0", PARTITIONED),
    alter(
        "reorganize_partition",
        "REORGANIZE PARTITION p1 INTO (PARTITION p1 VALUES LESS THAN (15), PARTITION p2 VALUES LESS THAN (25))",
        PARTITIONED,
    ),
    alter("remove_partitioning", "REMOVE PARTITIONING", PARTITIONED),
    alter("alter_table_partitioning", "PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN MAXVALUE)"),
    alter("exchange_partition", "EXCHANGE PARTITION p0 WITH TABLE o{n}", PARTITIONED, OTHER),
)
