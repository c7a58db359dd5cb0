"""Generated columns of a primary whose sessions are at +08:00: what was stored upstream is stored in the sink, whatever its own zone is."""

import pytest

from applier.model.errors import NeedsOperator
from applier.sources.binlog.settings import BinlogSettings
from tests.integration.binlog.test_statements import lines, rows, rows_of_file
from tests.rig.binlog_replica import BinlogReplica
from tests.rig.database import Kind
from tests.rig.upstream import clear_sink

pytestmark = pytest.mark.timeout(180)

STATEMENTS = """
CREATE DATABASE shop
USE shop
SET time_zone = '+08:00'
CREATE TABLE days (id INT PRIMARY KEY, ts TIMESTAMP NULL, day DATE AS (DATE(ts)) STORED, UNIQUE (day))
INSERT INTO days (id, ts) VALUES (1, '2024-05-01 23:00:00'), (2, '2024-05-02 01:00:00'), (3, '2024-05-03 12:00:00')
CREATE TABLE floats (id INT PRIMARY KEY, f FLOAT, s VARCHAR(30) COLLATE utf8mb4_bin AS (CONCAT(f)) STORED UNIQUE, n INT)
INSERT INTO floats (id, f) VALUES (1, 1.5), (2, 1024.5), (3, 0.1)
SET binlog_row_image = MINIMAL
UPDATE floats SET f = 2.5, n = 1 WHERE id = 1
UPDATE floats SET n = 7 WHERE id = 2
UPDATE days SET ts = '2024-05-04 01:00:00' WHERE id = 3
SET binlog_row_image = FULL
DELETE FROM days WHERE id = 1
CREATE TABLE portable (a INT, b INT AS (a + 1) STORED, c VARCHAR(20) AS (CONCAT(a, '-', d)) STORED, d VARCHAR(5), PRIMARY KEY (a), KEY (c))
INSERT INTO portable (a, d) VALUES (1, 'x'), (2, NULL)
ALTER TABLE portable ADD e INT AS (a * 2) STORED, ADD f BIGINT AS (b) VIRTUAL
"""
KEYED = """
SET time_zone = '+08:00'
CREATE TABLE shop.keyed (ts TIMESTAMP NOT NULL, day DATE AS (DATE(ts)) STORED NOT NULL, n INT, PRIMARY KEY (day))
INSERT INTO shop.keyed (ts, n) VALUES ('2024-05-01 01:00:00', 1), ('2024-05-02 01:00:00', 2), ('2024-05-03 01:00:00', 3)
UPDATE shop.keyed SET n = 20 WHERE n = 2
DELETE FROM shop.keyed WHERE n = 1
"""
"""MariaDB has no generated column in a primary key."""


@pytest.mark.parametrize("sink", [Kind.MARIADB, Kind.MYSQL, "sqlite"])
def test_a_sink_has_the_stored_values_of_upstream(primary, databases, sqlite_sink, sink):
    url = sqlite_sink if sink == "sqlite" else databases.plain(sink).url
    if sink != "sqlite":
        clear_sink(url)
    place, keyed = primary.place(), lines(KEYED) if primary.kind is Kind.MYSQL else []
    primary.run(*lines(STATEMENTS), *keyed)
    replica = BinlogReplica(url, BinlogSettings(url=primary.url, start=place))
    replica.catch_up()
    expected = rows(primary.url)
    assert (rows_of_file(url, expected) if sink == "sqlite" else rows(url)) == expected
    primary.run("USE shop", "ALTER TABLE days ADD late VARCHAR(30) AS (CONCAT(ts)) STORED")
    with pytest.raises(NeedsOperator, match="only upstream can compute"):
        replica.catch_up()
