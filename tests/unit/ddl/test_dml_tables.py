"""Which tables a statement of rows may change: what statement-format binlogs hold of tools and of hosted servers."""

import pytest

from applier.ddl.names import changed_tables
from applier.ddl.tokens import DdlSyntaxError

CHECKSUM = (
    "REPLACE INTO `percona`.`checksums` (db, tbl, chunk, this_cnt, this_crc) SELECT 'shop', 'orders', '1', COUNT(*) AS cnt, "
    "COALESCE(LOWER(CONV(BIT_XOR(CAST(CRC32(CONCAT_WS('#', `id`, UNIX_TIMESTAMP(`at`), CONCAT(ISNULL(`x`)))) AS UNSIGNED)), 10, 16)), 0) "
    "AS crc FROM `shop`.`orders` FORCE INDEX(`PRIMARY`) WHERE ((`id` >= '1')) /*checksum chunk*/"
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (CHECKSUM, ["percona.checksums"]),
        ("REPLACE INTO `percona`.`heartbeat` (ts, server_id) VALUES ('2026-01-01T00:00:00', 1)", ["percona.heartbeat"]),
        ("UPDATE `percona`.`checksums` SET chunk_time = '0.1' WHERE db = 'a' AND chunk IN ('1')", ["percona.checksums"]),
        ("INSERT INTO mysql.heartbeat (id, t) VALUES (1, UTC_TIMESTAMP(6)) ON DUPLICATE KEY UPDATE t = VALUES(t)", ["mysql.heartbeat"]),
        ("INSERT LOW_PRIORITY IGNORE t SET a = 1, b = (SELECT MAX(x) FROM s.u)", ["d.t"]),
        ("INSERT INTO t PARTITION (p0) VALUES (1)", ["d.t"]),
        ("DELETE FROM t WHERE a < NOW() - INTERVAL 1 DAY ORDER BY a LIMIT 5", ["d.t"]),
        ("DELETE QUICK FROM s.t", ["s.t"]),
        ("DELETE t, u.* FROM t JOIN s.u ON t.a = u.a WHERE t.b = 1", ["d.t", "s.u"]),
        ("UPDATE t AS x LEFT JOIN s.u USING (a), w SET x.b = 1", ["d.t", "s.u", "d.w"]),
        ("UPDATE t JOIN (SELECT a FROM s.v) AS y ON y.a = t.a SET t.b = 1", ["d.t", "s.v"]),
        ("LOAD DATA LOCAL INFILE '/x' REPLACE INTO TABLE `t` FIELDS TERMINATED BY ',' LINES TERMINATED BY '\\n' (`a`, `b`)", ["d.t"]),
    ],
)
def test_the_tables_that_a_statement_may_change_are_those_that_it_writes(text, expected):
    assert [str(name) for name in changed_tables(text, "d")] == expected


@pytest.mark.parametrize(
    "text",
    [
        "INSERT INTO t VALUES (stored(1))",
        "INSERT INTO t VALUES (s.upper('x'))",
        "INSERT INTO t SELECT `now`() FROM u",
        "UPDATE t SET a = NEXTVAL(s)",
        "DELETE FROM t WHERE f(a)",
        "DELETE FROM t, u USING t JOIN u",
        "DELETE FROM t FOR PORTION OF p FROM 1 TO 2",
        "DELETE FROM t RETURNING *",
        "UPDATE t FOR PORTION OF p FROM 1 TO 2 SET a = 1",
        "WITH x AS (SELECT 1) UPDATE t SET a = 1",
        "SELECT f(1)",
        "CALL p()",
        "INSERT",
        "UPDATE t",
        "LOAD XML INFILE 'x' INTO TABLE t",
        "DELETE t",
        "INSERT INTO t VALUES ('x",
    ],
)
def test_a_statement_that_is_not_wholly_understood_has_no_tables(text):
    with pytest.raises(DdlSyntaxError):
        changed_tables(text, "d")
