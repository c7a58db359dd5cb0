"""The type of a statement, for sources whose events have no code of it."""

import pytest

from applier.ddl import ddl_type_name
from applier.ddl.ddl_type import tidb_ddl_type

TYPES = {
    "CREATE DATABASE `d`": "create_schema",
    "DROP DATABASE d": "drop_schema",
    "ALTER DATABASE d CHARACTER SET utf8mb4": "modify_schema_charset",
    "CREATE TABLE t (id INT PRIMARY KEY, b INT, FULLTEXT KEY (c))": "create_table",
    "DROP TABLE t": "drop_table",
    "CREATE OR REPLACE VIEW v AS SELECT 1": "create_view",
    "DROP VIEW v": "drop_view",
    "TRUNCATE TABLE t": "truncate_table",
    "RENAME TABLE a TO b": "rename_table",
    "RENAME TABLE a TO b, c TO d": "rename_tables",
    "ALTER TABLE t RENAME TO b": "rename_table",
    "ALTER TABLE t ADD COLUMN a INT": "add_column",
    "ALTER TABLE t ADD COLUMN a INT, DROP COLUMN b": "multi_schema_change",
    "ALTER TABLE t MODIFY COLUMN a BIGINT": "modify_column",
    "CREATE UNIQUE INDEX i ON t (a)": "add_index",
    "CREATE FULLTEXT INDEX i ON t (a)": "add_fulltext_index",
    "ALTER TABLE t ADD FULLTEXT INDEX i (a)": "add_fulltext_index",
    "ALTER TABLE t ADD VECTOR INDEX i ((vec_cosine_distance(v))) USING HNSW": "add_columnar_index",
    "ALTER TABLE t ADD PRIMARY KEY (a)": "add_primary_key",
    "ALTER TABLE t EXCHANGE PARTITION p WITH TABLE t2": "exchange_partition",
    "ALTER TABLE t TRUNCATE PARTITION p": "truncate_table_partition",
    "ALTER TABLE t TTL = `a` + INTERVAL 3 DAY": "alter_ttl_info",
    "ALTER TABLE t REMOVE TTL": "remove_ttl",
    "ALTER TABLE t SET TIFLASH REPLICA 1": "set_tiflash_replica",
    "ALTER TABLE t SHARD_ROW_ID_BITS = 4": "shard_row_id",
    "RECOVER TABLE t": "recover_table",
    "FLASHBACK TABLE t TO t2": "recover_table",
    "FLASHBACK DATABASE d": "recover_schema",
    "FLASHBACK CLUSTER TO TSO 1": "flashback_cluster",
    "CREATE SEQUENCE s": "create_sequence",
}


@pytest.mark.parametrize("query", TYPES)
def test_a_statement_says_its_type(query):
    code = tidb_ddl_type(query)
    assert code is not None
    assert ddl_type_name(code) == TYPES[query]


@pytest.mark.parametrize("query", ["", "GRANT SELECT ON d.* TO u", "a statement of a later TiDB", "`", "FLASHBACK"])
def test_what_is_not_understood_has_no_type(query):
    assert tidb_ddl_type(query) is None
