-- What the MySQL family's sink asks of the server besides its bookkeeping: sessions, locks, diagnosis.
-- A statement begins with "-- name: purpose" and ends with ";".

-- session_variables: which of the variables that the applier fixes exist here, and what they are
SHOW SESSION VARIABLES WHERE Variable_name IN :names;

-- set_autocommit: what belongs together is committed together
SET SESSION autocommit = :value;

-- set_character_set_client: the character set of the statements
SET SESSION character_set_client = :value;

-- set_character_set_connection: the character set of their literals
SET SESSION character_set_connection = :value;

-- set_character_set_results: the character set of what is read
SET SESSION character_set_results = :value;

-- set_sql_mode: the whole list, never "the server's, minus …"
SET SESSION sql_mode = :value;

-- set_time_zone: the zone of TIMESTAMP text on the wire
SET SESSION time_zone = :value;

-- set_foreign_key_checks: upstream has checked them; tables are written in any order
SET SESSION foreign_key_checks = :value;

-- set_check_constraint_checks: of a log: upstream has checked its rows, or its session has switched that off (MariaDB)
SET SESSION check_constraint_checks = :value;

-- set_transaction_isolation: fewer gap locks; the fence is a row lock and needs no more
SET SESSION transaction_isolation = :value;

-- set_tx_isolation: the same on MariaDB before 11.1
SET SESSION tx_isolation = :value;

-- set_collation_connection: the collation of texts in a view or a generated column is TiDB's default, not the server's
SET SESSION collation_connection = :value;

-- set_character_set_server: a schema that a DDL creates without a charset gets TiDB's default
SET SESSION character_set_server = :value;

-- set_collation_server: the same; a case-insensitive key would be stricter than upstream's
SET SESSION collation_server = :value;

-- set_default_storage_engine: a table without transactions cannot be exact
SET SESSION default_storage_engine = :value;

-- set_explicit_defaults_for_timestamp: a plain TIMESTAMP column has no magic defaults in TiDB
SET SESSION explicit_defaults_for_timestamp = :value;

-- set_sql_auto_is_null: "key IS NULL" finds NULL only
SET SESSION sql_auto_is_null = :value;

-- set_max_error_count: every warning is shown, so every warning is judged (MySQL: for administrators only)
SET SESSION max_error_count = :value;

-- set_sql_notes: silent roundings are notes
SET SESSION sql_notes = :value;

-- set_max_statement_time: no limit for a DDL (MariaDB)
SET SESSION max_statement_time = :value;

-- set_max_execution_time: the same for SELECT (MySQL)
SET SESSION max_execution_time = :value;

-- set_sql_select_limit: what is read is read whole
SET SESSION sql_select_limit = :value;

-- set_sql_safe_updates: no DELETE is refused because of its plan
SET SESSION sql_safe_updates = :value;

-- set_unique_checks: a REPLACE finds every row that it collides with
SET SESSION unique_checks = :value;

-- set_completion_type: COMMIT neither begins a transaction nor ends the session
SET SESSION completion_type = :value;

-- set_lc_time_names: names of days and months in what a DDL computes; upstream's language for the length of its DDL
SET SESSION lc_time_names = :value;

-- set_lc_messages: the names in an error's message are found by the English words around them
SET SESSION lc_messages = :value;

-- set_restrict_fk_on_non_standard_key: a foreign key to an index that is not unique, as TiDB takes it (MySQL 8.4)
SET SESSION restrict_fk_on_non_standard_key = :value;

-- set_sql_generate_invisible_primary_key: no column that upstream does not have (MySQL: for administrators only)
SET SESSION sql_generate_invisible_primary_key = :value;

-- set_sql_require_primary_key: a table has the keys that it has upstream (MySQL: for administrators only)
SET SESSION sql_require_primary_key = :value;

-- set_innodb_lock_wait_timeout: seconds that a row lock is waited for
SET SESSION innodb_lock_wait_timeout = :value;

-- set_lock_wait_timeout: seconds that a table in use is waited for
SET SESSION lock_wait_timeout = :value;

-- set_wait_timeout: seconds after which the server ends an idle session, and rolls back what it held
SET SESSION wait_timeout = :value;

-- set_tidb_txn_mode: the fence needs a lock at once and not at COMMIT (TiDB)
SET SESSION tidb_txn_mode = :value;

-- set_allow_auto_random_explicit_insert: AUTO_RANDOM keys come from upstream (TiDB)
SET SESSION allow_auto_random_explicit_insert = :value;

-- set_tidb_placement_mode: upstream's placement rules are not the sink's (TiDB)
SET SESSION tidb_placement_mode = :value;

-- set_tidb_enable_external_ts_read: read what is, not a syncpoint's past (TiDB)
SET SESSION tidb_enable_external_ts_read = :value;

-- session_id: the server's number of this session
SELECT CONNECTION_ID();

-- session_and_holder: the server's number of this session, and of the one that holds a named lock
SELECT CONNECTION_ID(), IS_USED_LOCK(:lock_name);

-- session_kill: end a session; what it had not committed is rolled back
KILL :session_id;

-- limits: the largest statement that the server takes, in bytes, and how many warnings of a statement it shows
SELECT @@max_allowed_packet, @@max_error_count;

-- local_infile: whether the server takes bulk loads; no row: it does not know them
SHOW GLOBAL VARIABLES LIKE 'local_infile';

-- load_splitting: whether a Galera cluster commits a bulk load in parts; no row: the server is not made for one
SHOW GLOBAL VARIABLES LIKE 'wsrep_load_data_splitting';

-- version: which server this is
SELECT VERSION();

-- current_user: the account that the server has taken the session for
SELECT CURRENT_USER();

-- lock_get: take a named lock, waiting at most so many seconds; it is held as long as the session lives
SELECT GET_LOCK(:lock_name, :timeout_s);

-- lock_release: give a named lock back
SELECT RELEASE_LOCK(:lock_name);

-- lock_holder: the session that holds a named lock
SELECT IS_USED_LOCK(:lock_name);

-- warnings: what the last statement altered or complained about
SHOW WARNINGS;

-- timestamp_set: the time that CURRENT_TIMESTAMP defaults of a DDL see
SET SESSION timestamp = :seconds;

-- timestamp_reset: the clock again
SET SESSION timestamp = DEFAULT;

-- running_mysql: this session, and those that still execute this statement (MySQL; its information_schema.processlist cannot be read
-- while any session executes a statement with a character of four bytes)
SELECT id FROM performance_schema.processlist WHERE id = CONNECTION_ID() OR info = :statement;

-- running_mariadb: the same (MariaDB, whose info has question marks for such characters)
SELECT id FROM information_schema.processlist WHERE id = CONNECTION_ID() OR info_binary = CAST(:statement AS BINARY);

-- running_tidb: the same (TiDB)
SELECT id FROM information_schema.processlist WHERE id = CONNECTION_ID() OR info = :statement;

-- tidb_jobs: jobs of this statement that TiDB has not ended
SELECT job_id FROM information_schema.ddl_jobs
WHERE query = :statement AND state NOT IN ('synced', 'done', 'cancelled', 'rollback done');

-- blockers_locks: sessions that hold a metadata lock on the tables of a schema (MySQL 8)
SELECT t.processlist_id AS id, t.processlist_user AS user, t.processlist_host AS host, t.processlist_time AS seconds
FROM performance_schema.metadata_locks m JOIN performance_schema.threads t ON t.thread_id = m.owner_thread_id
WHERE m.lock_status = 'GRANTED' AND m.object_schema = :schema_name AND t.processlist_id <> CONNECTION_ID() LIMIT 5;

-- blockers_transactions: the oldest open transactions (MariaDB, where metadata locks are not shown)
SELECT p.id AS id, p.user AS user, p.host AS host, p.time AS seconds
FROM information_schema.innodb_trx x JOIN information_schema.processlist p ON p.id = x.trx_mysql_thread_id
WHERE p.id <> CONNECTION_ID() ORDER BY x.trx_started LIMIT 5;
