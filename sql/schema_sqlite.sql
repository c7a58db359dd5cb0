-- The bookkeeping tables as they are now, in SQLite.
-- Made by migrations/; a test proves that migrations from zero give exactly this. Change both together.
-- Upstream timestamps have no affinity (BLOB): integers up to 2^63-1, decimal text above.

-- the revision of these tables (Alembic)
CREATE TABLE applier_schema_version (
  version_num VARCHAR(32) NOT NULL,
  PRIMARY KEY (version_num)
);

-- how far each replica is: the fence (epoch, window_id) and the checkpoint; source_state: where a binlog stands, as the source says it
CREATE TABLE applier_progress (
  name TEXT NOT NULL,
  epoch BIGINT NOT NULL,
  window_id BIGINT NOT NULL,
  checkpoint_ts BLOB NOT NULL,
  start_ts BLOB NOT NULL,
  updated_at TEXT NOT NULL,
  source_state TEXT,
  PRIMARY KEY (name)
);

-- the run that owns a replica; apart from progress, which a writer keeps locked
CREATE TABLE applier_owner (
  name TEXT NOT NULL,
  epoch BIGINT NOT NULL,
  run_id TEXT NOT NULL,
  host TEXT NOT NULL,
  process BIGINT NOT NULL,
  started_at TEXT NOT NULL,
  heartbeat_at TEXT NOT NULL,
  PRIMARY KEY (name)
);

-- sessions of a replica, each known by the named lock that it holds while it lives
CREATE TABLE applier_owner_session (
  name TEXT NOT NULL,
  token TEXT NOT NULL,
  host TEXT NOT NULL,
  process BIGINT NOT NULL,
  opened_at TEXT NOT NULL,
  PRIMARY KEY (name, token)
);

-- the durable position of each stream; applied_ts: up to where its rows are written ahead of the checkpoint (0: nothing is)
CREATE TABLE applier_stream (
  name TEXT NOT NULL,
  topic TEXT NOT NULL,
  partition_number BIGINT NOT NULL,
  topic_id TEXT NOT NULL,
  next_offset BIGINT NOT NULL,
  resolved_ts BLOB NOT NULL,
  applied_ts BLOB DEFAULT 0 NOT NULL,
  PRIMARY KEY (name, topic, partition_number)
);

-- tables that were absent or empty before the replica's first event on them; is_ahead: whether their rows are written ahead
CREATE TABLE applier_known_table (
  name TEXT NOT NULL,
  schema_name TEXT NOT NULL,
  table_name TEXT NOT NULL,
  since_ts BLOB NOT NULL,
  is_ahead BIGINT DEFAULT 0 NOT NULL,
  PRIMARY KEY (name, schema_name, table_name)
);

-- where the sink has upstream's tables, once there is a filter or a route; empty names: rows were left out
CREATE TABLE applier_table_location (
  name TEXT NOT NULL,
  upstream_schema TEXT NOT NULL,
  upstream_table TEXT NOT NULL,
  schema_name TEXT NOT NULL,
  table_name TEXT NOT NULL,
  since_ts BLOB NOT NULL,
  PRIMARY KEY (name, upstream_schema, upstream_table)
);

-- every DDL that began, is done or was skipped; never pruned; time_ms, session: when it ran upstream, and under which variables
CREATE TABLE applier_ddl_ledger (
  name TEXT NOT NULL,
  ddl_ts BLOB NOT NULL,
  identity_hash TEXT NOT NULL,
  schema_name TEXT NOT NULL,
  table_name TEXT NOT NULL,
  touches TEXT NOT NULL,
  ddl_type BIGINT NOT NULL,
  query TEXT NOT NULL,
  state TEXT NOT NULL,
  before_state TEXT NOT NULL,
  began_at TEXT NOT NULL,
  ended_at TEXT,
  error TEXT NOT NULL,
  time_ms BIGINT,
  session TEXT,
  PRIMARY KEY (name, ddl_ts, identity_hash)
);

-- quarantined events, their records in pieces if large
CREATE TABLE applier_quarantine (
  name TEXT NOT NULL,
  topic TEXT NOT NULL,
  partition_number BIGINT NOT NULL,
  record_offset BIGINT NOT NULL,
  event_index BIGINT NOT NULL,
  piece BIGINT NOT NULL,
  schema_name TEXT NOT NULL,
  table_name TEXT NOT NULL,
  handle_key TEXT NOT NULL,
  commit_ts BLOB NOT NULL,
  record BLOB NOT NULL,
  error TEXT NOT NULL,
  state TEXT NOT NULL,
  found_at TEXT NOT NULL,
  settled_at TEXT,
  settled_by TEXT,
  PRIMARY KEY (name, topic, partition_number, record_offset, event_index, piece)
);

-- the operator's skip rules, by position (commit_ts 0) or by timestamp (topic '', offset -1; table '' means any)
CREATE TABLE applier_skip_rule (
  name TEXT NOT NULL,
  topic TEXT NOT NULL,
  partition_number BIGINT NOT NULL,
  record_offset BIGINT NOT NULL,
  event_index BIGINT NOT NULL,
  commit_ts BLOB NOT NULL,
  schema_name TEXT NOT NULL,
  table_name TEXT NOT NULL,
  said_by TEXT NOT NULL,
  said_at TEXT NOT NULL,
  PRIMARY KEY (name, topic, partition_number, record_offset, event_index, commit_ts, schema_name, table_name)
);

-- how the last run of a replica ended; it tells of the owner of the same epoch only
CREATE TABLE applier_run_end (
  name TEXT NOT NULL,
  epoch BIGINT NOT NULL,
  run_id TEXT NOT NULL,
  command TEXT NOT NULL,
  exit_code BIGINT NOT NULL,
  error_class TEXT NOT NULL,
  message TEXT NOT NULL,
  facts TEXT NOT NULL,
  remedy TEXT NOT NULL,
  ended_at TEXT NOT NULL,
  PRIMARY KEY (name)
);

-- replicas that an operator has paused, until they are resumed
CREATE TABLE applier_pause (
  name TEXT NOT NULL,
  said_by TEXT NOT NULL,
  said_at TEXT NOT NULL,
  PRIMARY KEY (name)
);

-- the dump that `applier load` has loaded (state loading, done), and the timestamp at which the stream continues it
CREATE TABLE applier_loaded_dump (
  name TEXT NOT NULL,
  start_ts BLOB NOT NULL,
  directory TEXT NOT NULL,
  loader TEXT NOT NULL,
  state TEXT NOT NULL,
  loaded_by TEXT NOT NULL,
  began_at TEXT NOT NULL,
  ended_at TEXT,
  PRIMARY KEY (name)
);

-- what XA transactions have changed that are prepared and not committed, in pieces; place: where upstream's log prepares them
CREATE TABLE applier_prepared_transaction (
  name TEXT NOT NULL,
  place BLOB NOT NULL,
  piece BIGINT NOT NULL,
  content BLOB NOT NULL,
  PRIMARY KEY (name, place, piece)
);

-- how far the initial copy of a replica is (state planning, copying, read); read: the stream continues it from start_ts, right from upto_ts on
CREATE TABLE applier_copy (
  name TEXT NOT NULL,
  epoch BIGINT NOT NULL,
  attempt BIGINT NOT NULL,
  state TEXT NOT NULL,
  start_ts BLOB NOT NULL,
  upto_ts BLOB NOT NULL,
  left_out TEXT NOT NULL,
  began_at TEXT NOT NULL,
  read_at TEXT,
  PRIMARY KEY (name)
);

-- the tables of a copy by upstream's names, with the digest of the definition that all their chunks must have
CREATE TABLE applier_copy_table (
  name TEXT NOT NULL,
  schema_name TEXT NOT NULL,
  table_name TEXT NOT NULL,
  sink_schema TEXT NOT NULL,
  sink_table TEXT NOT NULL,
  digest TEXT NOT NULL,
  row_estimate BIGINT NOT NULL,
  size_estimate BIGINT NOT NULL,
  PRIMARY KEY (name, schema_name, table_name)
);

-- the chunks of a copy: lower_key < key <= upper_key; with done_at their rows are in the sink, and no view was later than high_ts
CREATE TABLE applier_copy_chunk (
  name TEXT NOT NULL,
  schema_name TEXT NOT NULL,
  table_name TEXT NOT NULL,
  chunk BIGINT NOT NULL,
  lower_key TEXT,
  upper_key TEXT,
  row_count BIGINT,
  size_bytes BIGINT,
  high_ts BLOB,
  done_at TEXT,
  PRIMARY KEY (name, schema_name, table_name, chunk)
);

-- what waits for the operator, and what a run may meet again
CREATE INDEX applier_ddl_ledger_state ON applier_ddl_ledger (name, state);
CREATE INDEX applier_quarantine_state ON applier_quarantine (name, state, piece);
CREATE INDEX applier_quarantine_place ON applier_quarantine (name, piece, topic, partition_number, record_offset);
