-- The bookkeeping tables as they are now, for MySQL and MariaDB (and TiDB, untested).
-- Made by migrations/; a test proves that migrations from zero give exactly this. Change both together.

CREATE SCHEMA IF NOT EXISTS applier DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- the revision of these tables (Alembic)
CREATE TABLE applier.schema_version (
  version_num VARCHAR(32) NOT NULL,
  PRIMARY KEY (version_num)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- how far each replica is: the fence (epoch, window_id) and the checkpoint; source_state: where a binlog stands, as the source says it
CREATE TABLE applier.progress (
  name VARCHAR(64) NOT NULL,
  epoch BIGINT NOT NULL,
  window_id BIGINT NOT NULL,
  checkpoint_ts BIGINT UNSIGNED NOT NULL,
  start_ts BIGINT UNSIGNED NOT NULL,
  updated_at DATETIME(6) NOT NULL,
  source_state LONGTEXT DEFAULT NULL,
  PRIMARY KEY (name)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- the run that owns a replica; apart from progress, which a writer keeps locked
CREATE TABLE applier.owner (
  name VARCHAR(64) NOT NULL,
  epoch BIGINT NOT NULL,
  run_id VARCHAR(32) NOT NULL,
  host VARCHAR(255) NOT NULL,
  process BIGINT NOT NULL,
  started_at DATETIME(6) NOT NULL,
  heartbeat_at DATETIME(6) NOT NULL,
  PRIMARY KEY (name)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- sessions of a replica, each known by the named lock that it holds while it lives
CREATE TABLE applier.owner_session (
  name VARCHAR(64) NOT NULL,
  token VARCHAR(64) NOT NULL,
  host VARCHAR(255) NOT NULL,
  process BIGINT NOT NULL,
  opened_at DATETIME(6) NOT NULL,
  PRIMARY KEY (name,token)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- the durable position of each stream; applied_ts: up to where its rows are written ahead of the checkpoint (0: nothing is)
CREATE TABLE applier.stream (
  name VARCHAR(64) NOT NULL,
  topic VARCHAR(249) NOT NULL,
  partition_number BIGINT NOT NULL,
  topic_id VARCHAR(64) NOT NULL,
  next_offset BIGINT NOT NULL,
  resolved_ts BIGINT UNSIGNED NOT NULL,
  applied_ts BIGINT UNSIGNED NOT NULL,
  PRIMARY KEY (name,topic,partition_number)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- tables that were absent or empty before the replica's first event on them; is_ahead: whether their rows are written ahead
CREATE TABLE applier.known_table (
  name VARCHAR(64) NOT NULL,
  schema_name VARCHAR(192) NOT NULL,
  table_name VARCHAR(192) NOT NULL,
  since_ts BIGINT UNSIGNED NOT NULL,
  is_ahead BIGINT NOT NULL,
  PRIMARY KEY (name,schema_name,table_name)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- where the sink has upstream's tables, once there is a filter or a route; empty names: rows were left out
CREATE TABLE applier.table_location (
  name VARCHAR(64) NOT NULL,
  upstream_schema VARCHAR(192) NOT NULL,
  upstream_table VARCHAR(192) NOT NULL,
  schema_name VARCHAR(192) NOT NULL,
  table_name VARCHAR(192) NOT NULL,
  since_ts BIGINT UNSIGNED NOT NULL,
  PRIMARY KEY (name,upstream_schema,upstream_table)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- every DDL that began, is done or was skipped; never pruned; time_ms, session: when it ran upstream, and under which variables
CREATE TABLE applier.ddl_ledger (
  name VARCHAR(64) NOT NULL,
  ddl_ts BIGINT UNSIGNED NOT NULL,
  identity_hash VARCHAR(64) NOT NULL,
  schema_name VARCHAR(192) NOT NULL,
  table_name VARCHAR(192) NOT NULL,
  touches LONGTEXT NOT NULL,
  ddl_type BIGINT NOT NULL,
  query LONGTEXT NOT NULL,
  state VARCHAR(16) NOT NULL,
  before_state LONGTEXT NOT NULL,
  began_at DATETIME(6) NOT NULL,
  ended_at DATETIME(6) DEFAULT NULL,
  error LONGTEXT NOT NULL,
  time_ms BIGINT DEFAULT NULL,
  session LONGTEXT DEFAULT NULL,
  PRIMARY KEY (name,ddl_ts,identity_hash),
  KEY ddl_ledger_state (name,state)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- quarantined events, their records in pieces if large
CREATE TABLE applier.quarantine (
  name VARCHAR(64) NOT NULL,
  topic VARCHAR(249) NOT NULL,
  partition_number BIGINT NOT NULL,
  record_offset BIGINT NOT NULL,
  event_index BIGINT NOT NULL,
  piece BIGINT NOT NULL,
  schema_name VARCHAR(192) NOT NULL,
  table_name VARCHAR(192) NOT NULL,
  handle_key LONGTEXT NOT NULL,
  commit_ts BIGINT UNSIGNED NOT NULL,
  record LONGBLOB NOT NULL,
  error LONGTEXT NOT NULL,
  state VARCHAR(16) NOT NULL,
  found_at DATETIME(6) NOT NULL,
  settled_at DATETIME(6) DEFAULT NULL,
  settled_by VARCHAR(255) DEFAULT NULL,
  PRIMARY KEY (name,topic,partition_number,record_offset,event_index,piece),
  KEY quarantine_state (name,state,piece),
  KEY quarantine_place (name,piece,topic,partition_number,record_offset)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- the operator's skip rules, by position (commit_ts 0) or by timestamp (topic '', offset -1; table '' means any)
CREATE TABLE applier.skip_rule (
  name VARCHAR(64) NOT NULL,
  topic VARCHAR(249) NOT NULL,
  partition_number BIGINT NOT NULL,
  record_offset BIGINT NOT NULL,
  event_index BIGINT NOT NULL,
  commit_ts BIGINT UNSIGNED NOT NULL,
  schema_name VARCHAR(192) NOT NULL,
  table_name VARCHAR(192) NOT NULL,
  said_by VARCHAR(255) NOT NULL,
  said_at DATETIME(6) NOT NULL,
  PRIMARY KEY (name,topic,partition_number,record_offset,event_index,commit_ts,schema_name,table_name)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- how the last run of a replica ended; it tells of the owner of the same epoch only
CREATE TABLE applier.run_end (
  name VARCHAR(64) NOT NULL,
  epoch BIGINT NOT NULL,
  run_id VARCHAR(32) NOT NULL,
  command VARCHAR(255) NOT NULL,
  exit_code BIGINT NOT NULL,
  error_class VARCHAR(255) NOT NULL,
  message LONGTEXT NOT NULL,
  facts LONGTEXT NOT NULL,
  remedy LONGTEXT NOT NULL,
  ended_at DATETIME(6) NOT NULL,
  PRIMARY KEY (name)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- replicas that an operator has paused, until they are resumed
CREATE TABLE applier.pause (
  name VARCHAR(64) NOT NULL,
  said_by VARCHAR(255) NOT NULL,
  said_at DATETIME(6) NOT NULL,
  PRIMARY KEY (name)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- the dump that `applier load` has loaded (state loading, done), and the timestamp at which the stream continues it
CREATE TABLE applier.loaded_dump (
  name VARCHAR(64) NOT NULL,
  start_ts BIGINT UNSIGNED NOT NULL,
  directory LONGTEXT NOT NULL,
  loader VARCHAR(255) NOT NULL,
  state VARCHAR(16) NOT NULL,
  loaded_by VARCHAR(255) NOT NULL,
  began_at DATETIME(6) NOT NULL,
  ended_at DATETIME(6) DEFAULT NULL,
  PRIMARY KEY (name)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- what XA transactions have changed that are prepared and not committed, in pieces; place: where upstream's log prepares them
CREATE TABLE applier.prepared_transaction (
  name VARCHAR(64) NOT NULL,
  place BIGINT UNSIGNED NOT NULL,
  piece BIGINT NOT NULL,
  content LONGBLOB NOT NULL,
  PRIMARY KEY (name,place,piece)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- how far the initial copy of a replica is (state planning, copying, read); read: the stream continues it from start_ts, right from upto_ts on
CREATE TABLE applier.copy (
  name VARCHAR(64) NOT NULL,
  epoch BIGINT NOT NULL,
  attempt BIGINT NOT NULL,
  state VARCHAR(16) NOT NULL,
  start_ts BIGINT UNSIGNED NOT NULL,
  upto_ts BIGINT UNSIGNED NOT NULL,
  left_out LONGTEXT NOT NULL,
  began_at DATETIME(6) NOT NULL,
  read_at DATETIME(6) DEFAULT NULL,
  PRIMARY KEY (name)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- the tables of a copy by upstream's names, with the digest of the definition that all their chunks must have
CREATE TABLE applier.copy_table (
  name VARCHAR(64) NOT NULL,
  schema_name VARCHAR(192) NOT NULL,
  table_name VARCHAR(192) NOT NULL,
  sink_schema VARCHAR(192) NOT NULL,
  sink_table VARCHAR(192) NOT NULL,
  digest VARCHAR(64) NOT NULL,
  row_estimate BIGINT NOT NULL,
  size_estimate BIGINT NOT NULL,
  PRIMARY KEY (name,schema_name,table_name)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- the chunks of a copy: lower_key < key <= upper_key; with done_at their rows are in the sink, and no view was later than high_ts
CREATE TABLE applier.copy_chunk (
  name VARCHAR(64) NOT NULL,
  schema_name VARCHAR(192) NOT NULL,
  table_name VARCHAR(192) NOT NULL,
  chunk BIGINT NOT NULL,
  lower_key LONGTEXT DEFAULT NULL,
  upper_key LONGTEXT DEFAULT NULL,
  row_count BIGINT DEFAULT NULL,
  size_bytes BIGINT DEFAULT NULL,
  high_ts BIGINT UNSIGNED DEFAULT NULL,
  done_at DATETIME(6) DEFAULT NULL,
  PRIMARY KEY (name,schema_name,table_name,chunk)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
