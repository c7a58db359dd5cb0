"""Statements of upstream's sessions, run by a real primary and followed into a server and a file: the tables are upstream's afterwards."""

import re
import sqlite3
from collections.abc import Iterable
from contextlib import closing

import pytest

from applier.sources.binlog.settings import BinlogSettings
from tests.integration.mysql_replica import read
from tests.rig.binlog_replica import BinlogReplica

pytestmark = pytest.mark.timeout(180)

STATEMENTS = r"""
CREATE DATABASE shop
CREATE DATABASE attic CHARACTER SET latin1
USE shop
CREATE TABLE a (id INT PRIMARY KEY, name VARCHAR(20), at TIMESTAMP NULL)
INSERT INTO a VALUES (1, 'one', NULL), (2, 'two', NULL)
CREATE TABLE attic.b LIKE a
INSERT INTO attic.b SELECT * FROM a
CREATE TABLE made (PRIMARY KEY (id)) SELECT id, name, 'x' AS x FROM a
CREATE TABLE IF NOT EXISTS a (other INT)
SET timestamp = 1600000000.123456
ALTER TABLE a ADD c DATETIME(6) DEFAULT CURRENT_TIMESTAMP(6), ADD d DATETIME NOT NULL DEFAULT CURRENT_TIMESTAMP
SET timestamp = DEFAULT
SET time_zone = '+05:30'
ALTER TABLE a ADD e TIMESTAMP NOT NULL DEFAULT '2020-01-02 03:04:05'
UPDATE a SET at = '2021-06-07 08:09:10' WHERE id = 1
SET time_zone = DEFAULT
SET sql_mode = 'ANSI_QUOTES'
CREATE TABLE "quo`ted" ("i d" INT PRIMARY KEY, b VARCHAR(10) DEFAULT 'a"b')
INSERT INTO "quo`ted" ("i d") VALUES (1)
SET sql_mode = 'NO_BACKSLASH_ESCAPES'
CREATE TABLE slash (id INT PRIMARY KEY, b VARCHAR(10) DEFAULT 'c:\dir\')
INSERT INTO slash (id) VALUES (1)
ALTER TABLE slash ADD d VARCHAR(10) DEFAULT '\'
SET sql_mode = DEFAULT
CREATE TEMPORARY TABLE gone (id INT PRIMARY KEY)
INSERT INTO gone VALUES (1)
DROP TABLE gone
CREATE TABLE n (id INT)
ALTER TABLE n ADD k INT NOT NULL AUTO_INCREMENT PRIMARY KEY
INSERT INTO n (id) VALUES (7), (8)
BEGIN
INSERT INTO n (id) VALUES (9)
SAVEPOINT one
INSERT INTO n (id) VALUES (10)
ROLLBACK TO one
COMMIT
XA START 'x'
INSERT INTO n (id) VALUES (11)
XA END 'x'
XA PREPARE 'x'
XA COMMIT 'x'
CREATE USER IF NOT EXISTS nobody@localhost IDENTIFIED BY 'Secret_1'
GRANT SELECT ON shop.* TO nobody@localhost
DROP USER nobody@localhost
CREATE PROCEDURE fill() INSERT INTO n (id) VALUES (12)
CALL fill()
CREATE TRIGGER t BEFORE INSERT ON n FOR EACH ROW SET NEW.id = NEW.id + 100
INSERT INTO n (id) VALUES (13)
DROP TRIGGER t
DROP PROCEDURE fill
ANALYZE TABLE n
FLUSH TABLES
CREATE VIEW v AS SELECT id, name FROM a
ALTER VIEW v AS SELECT id FROM a
RENAME TABLE made TO attic.made, n TO nn
ALTER TABLE attic.made RENAME shop.made, ADD y INT DEFAULT 3
INSERT INTO made (id, name, x) VALUES (5, 'five', 'z')
ALTER TABLE made ADD UNIQUE KEY u (y, id), ALGORITHM = INPLACE, LOCK = NONE
ALTER TABLE made ADD CONSTRAINT low CHECK (id < 1000)
ALTER TABLE made DROP CONSTRAINT low
TRUNCATE attic.b
INSERT INTO attic.b VALUES (3, 'three', NULL)
DROP TABLE IF EXISTS nothing, slash
ALTER DATABASE attic CHARACTER SET utf8mb4
CREATE TABLE attic.later (k VARCHAR(10) COLLATE utf8mb4_bin PRIMARY KEY)
INSERT INTO attic.later VALUES ('Größe')
"""
OF_MARIADB = """
CREATE OR REPLACE TABLE attic.later (k VARCHAR(12) PRIMARY KEY, i INT)
INSERT INTO attic.later VALUES ('neu', NULL)
ALTER TABLE IF EXISTS attic.later ADD COLUMN IF NOT EXISTS l INT
ALTER TABLE IF EXISTS nothing ADD COLUMN IF NOT EXISTS l INT
RENAME TABLE IF EXISTS nothing TO something
RENAME TABLE IF EXISTS attic.later TO attic.last
CREATE SEQUENCE s START WITH 100
CREATE TABLE numbered (id BIGINT DEFAULT NEXT VALUE FOR s PRIMARY KEY, a INT)
INSERT INTO numbered (a) VALUES (1), (2)
ALTER TABLE numbered WAIT 5 ADD b INT
ALTER TABLE numbered ALTER COLUMN id DROP DEFAULT
DROP SEQUENCE s
SET STATEMENT max_statement_time = 100 FOR ALTER TABLE numbered ADD c INT
"""
OF_SERVERS = """
CREATE TABLE shop.hashed (id INT PRIMARY KEY) PARTITION BY KEY (id) PARTITIONS 4
INSERT INTO shop.hashed VALUES (1), (2), (3), (4), (5), (6), (7), (8), (9)
ALTER TABLE shop.hashed TRUNCATE PARTITION p1
CREATE TABLE shop.ranged (a INT PRIMARY KEY) PARTITION BY RANGE (a) (PARTITION p0 VALUES LESS THAN (10), PARTITION p1 VALUES LESS THAN (20))
INSERT INTO shop.ranged VALUES (1), (11)
CREATE TABLE shop.apart (a INT PRIMARY KEY)
INSERT INTO shop.apart VALUES (2)
ALTER TABLE shop.ranged EXCHANGE PARTITION p0 WITH TABLE shop.apart
ALTER TABLE shop.ranged DROP PARTITION p1
ALTER TABLE shop.ranged ADD PARTITION (PARTITION p2 VALUES LESS THAN (30))
ALTER TABLE shop.ranged ANALYZE PARTITION p2
CREATE TABLE shop.text (id INT PRIMARY KEY, b TEXT, FULLTEXT KEY f (b), c INT CHECK (c > 0))
INSERT INTO shop.text VALUES (1, 'words', 5)
CREATE TABLE shop.myisam (id INT PRIMARY KEY) ENGINE = MyISAM
INSERT INTO shop.myisam VALUES (1), (2)
DELETE FROM shop.myisam
INSERT INTO shop.myisam VALUES (3)
ALTER TABLE shop.myisam ENGINE = InnoDB
CREATE TABLE shop.rounded (id INT PRIMARY KEY, at DATETIME(6))
INSERT INTO shop.rounded VALUES (1, '2020-01-01 23:59:59.9')
ALTER TABLE shop.rounded MODIFY at DATETIME
CREATE TABLE shop.dates (id INT PRIMARY KEY, at VARCHAR(20))
INSERT INTO shop.dates VALUES (1, '2020-02-31')
SET sql_mode = ''
ALTER TABLE shop.dates MODIFY at DATE
"""


def lines(text: str) -> list[str]:
    return text.strip().splitlines()


@pytest.fixture
def place(primary) -> str:
    """Run the statements; return where they begin."""
    place = primary.place()
    primary.run(*lines(STATEMENTS), *(lines(OF_MARIADB) if primary.kind == "mariadb" else []))
    return place


def tables_of(url: str) -> list[str]:
    found = read(url, "SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA IN ('shop', 'attic')")
    return [f"`{schema}`.`{table.replace('`', '``')}`" for schema, table in sorted(found)]


def definitions(url: str) -> dict[str, str]:
    """Return what SHOW CREATE TABLE says of each table, without the next AUTO_INCREMENT."""
    return {table: re.sub(r" AUTO_INCREMENT=\d+", "", read(url, f"SHOW CREATE TABLE {table}")[0][1]) for table in tables_of(url)}


def rows(url: str) -> dict[str, list[tuple[str | None, ...]]]:
    """Return all rows as texts."""
    return {table: _as_texts(url, table) for table in tables_of(url)}


def _as_texts(url: str, table: str) -> list[tuple[str | None, ...]]:
    columns = [name for name, *_ in read(url, f"SHOW COLUMNS FROM {table}")]
    listed = ", ".join(f"CAST(`{name}` AS CHAR) AS `{name}`" for name in columns)
    return sorted(read(url, f"SELECT {listed} FROM {table}"), key=str)


def rows_of_file(url: str, tables: Iterable[str]) -> dict[str, list[tuple[str | None, ...]]]:
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as file:
        stored = {table: '"' + table.replace("``", "\0").replace("`", "").replace("\0", "`") + '"' for table in tables}
        found = {table: file.execute(f"SELECT * FROM {name}").fetchall() for table, name in stored.items()}
    texts = {table: [tuple(None if value is None else str(value) for value in row) for row in every] for table, every in found.items()}
    return {table: sorted(every, key=str) for table, every in texts.items()}


def test_a_server_has_upstreams_tables_after_each_kind_of_statement(primary, place, mariadb_sink):
    replica = BinlogReplica(mariadb_sink, BinlogSettings(url=primary.url, start=place))
    replica.catch_up()
    primary.run(*lines(OF_SERVERS))
    replica.catch_up()
    assert rows(mariadb_sink) == rows(primary.url)
    if primary.kind == "mariadb":
        assert definitions(mariadb_sink) == definitions(primary.url)


def test_a_file_has_upstreams_rows_after_each_kind_of_statement(primary, place, sqlite_sink):
    BinlogReplica(sqlite_sink, BinlogSettings(url=primary.url, start=place)).catch_up()
    expected = rows(primary.url)
    assert rows_of_file(sqlite_sink, expected) == expected
