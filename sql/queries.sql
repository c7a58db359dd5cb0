-- Every statement that the applier runs on its bookkeeping. A statement begins with "-- name: purpose" and ends with ";".
-- Standard SQL, but for the words that each database says in its own way (applier/sinks/bookkeeping/dialect.py): {now}, {for_update},
-- {for_share}, and UPSERT, which replaces the row of a key.

-- progress_read: the progress of a replica, without waiting for a writer
SELECT epoch, window_id, checkpoint_ts, start_ts, source_state FROM applier.progress WHERE name = :name;

-- progress_updated: when the progress was last written
SELECT updated_at FROM applier.progress WHERE name = :name;

-- progress_lock: the first statement of every transaction that writes: the fence, held until COMMIT
SELECT epoch, window_id, checkpoint_ts, start_ts, source_state FROM applier.progress WHERE name = :name {for_update};

-- progress_share: the first statement of every transaction that writes rows ahead: many may hold it, and none of them past the fence
SELECT epoch, window_id, checkpoint_ts, start_ts, source_state FROM applier.progress WHERE name = :name {for_share};

-- progress_begin: a new replica at its starting point
INSERT INTO applier.progress (name, epoch, window_id, checkpoint_ts, start_ts, updated_at, source_state)
VALUES (:name, :epoch, 0, :start_ts, :start_ts, {now}, :source_state);

-- progress_advance: one commit: the next window, and the checkpoint that it makes durable
UPDATE applier.progress SET window_id = window_id + 1, checkpoint_ts = :checkpoint_ts, updated_at = {now},
source_state = COALESCE(:source_state, source_state) WHERE name = :name AND epoch = :epoch AND window_id = :window_id;

-- progress_fence: a higher epoch: writes of an older one are refused
UPDATE applier.progress SET epoch = :epoch, updated_at = {now} WHERE name = :name;

-- stream_read: the durable positions of all streams
SELECT topic, partition_number, topic_id, next_offset, resolved_ts, applied_ts FROM applier.stream WHERE name = :name;

-- stream_write: the positions that changed
UPSERT INTO applier.stream (name, topic, partition_number, topic_id, next_offset, resolved_ts, applied_ts)
KEY (name, topic, partition_number)
VALUES (:name, :topic, :partition_number, :topic_id, :next_offset, :resolved_ts, :applied_ts);

-- known_table_read: the tables that were absent or empty before this replica's first event on them
SELECT schema_name, table_name, is_ahead FROM applier.known_table WHERE name = :name;

-- known_table_write: store that fact, in the transaction that relies on it
UPSERT INTO applier.known_table (name, schema_name, table_name, since_ts, is_ahead)
KEY (name, schema_name, table_name)
VALUES (:name, :schema_name, :table_name, :since_ts, 0);

-- known_table_ahead: whether a table's rows are written ahead of the checkpoint, in the transaction that passes them
UPDATE applier.known_table SET is_ahead = :is_ahead WHERE name = :name AND schema_name = :schema_name AND table_name = :table_name;

-- table_location_read: where the sink has upstream's tables; an empty name: left out
SELECT upstream_schema, upstream_table, schema_name, table_name FROM applier.table_location WHERE name = :name;

-- table_location_write: a table was met, renamed or left out, in the transaction that relies on it
UPSERT INTO applier.table_location (name, upstream_schema, upstream_table, schema_name, table_name, since_ts)
KEY (name, upstream_schema, upstream_table)
VALUES (:name, :upstream_schema, :upstream_table, :schema_name, :table_name, :since_ts);

-- table_location_remove: upstream has no table of this name any more
DELETE FROM applier.table_location WHERE name = :name AND upstream_schema = :upstream_schema AND upstream_table = :upstream_table;

-- owner_read: the run that owns the replica, and how old its heartbeat is by the clock of the database
SELECT epoch, run_id, host, process, started_at, heartbeat_at, {now} AS now FROM applier.owner WHERE name = :name;

-- owner_lock: the same, against a concurrent take-over
SELECT epoch, run_id, host, process, started_at, heartbeat_at, {now} AS now FROM applier.owner WHERE name = :name {for_update};

-- owner_write: this run owns the replica
UPSERT INTO applier.owner (name, epoch, run_id, host, process, started_at, heartbeat_at)
KEY (name)
VALUES (:name, :epoch, :run_id, :host, :process, {now}, {now});

-- owner_raise: the next epoch of this run
UPDATE applier.owner SET epoch = :epoch, heartbeat_at = {now} WHERE name = :name AND run_id = :run_id;

-- owner_beat: renew the heartbeat; no row: another run took over
UPDATE applier.owner SET heartbeat_at = {now} WHERE name = :name AND run_id = :run_id;

-- owner_release: this run released the replica
DELETE FROM applier.owner WHERE name = :name AND run_id = :run_id;

-- session_write: a session of the replica, known by the named lock that it holds while it lives
UPSERT INTO applier.owner_session (name, token, host, process, opened_at)
KEY (name, token)
VALUES (:name, :token, :host, :process, {now});

-- session_read: the sessions that were registered
SELECT token, host, process FROM applier.owner_session WHERE name = :name;

-- session_forget: a session that has ended
DELETE FROM applier.owner_session WHERE name = :name AND token = :token;

-- ledger_read: all DDLs that began, are done or were skipped
SELECT ddl_ts, schema_name, table_name, touches, ddl_type, query, state, before_state, began_at, ended_at, error, time_ms, session
FROM applier.ddl_ledger WHERE name = :name;

-- ledger_recent: the newest DDLs, with the beginning of their texts
SELECT ddl_ts, schema_name, table_name, touches, ddl_type, SUBSTR(query, 1, :at_most_text) AS query, state, '' AS before_state, began_at, ended_at,
SUBSTR(error, 1, :at_most_text) AS error, time_ms, session FROM applier.ddl_ledger WHERE name = :name ORDER BY ddl_ts DESC, began_at DESC LIMIT :at_most;

-- ledger_since: which DDLs the ledger has from a timestamp on, without their texts
SELECT ddl_ts, schema_name, table_name, touches, state FROM applier.ddl_ledger WHERE name = :name AND ddl_ts >= :ddl_ts;

-- ledger_at: which DDLs the ledger has at some timestamps, without their texts
SELECT ddl_ts, schema_name, table_name, touches, state FROM applier.ddl_ledger WHERE name = :name AND ddl_ts IN :times;

-- ledger_statements: the texts of upstream's DDLs (what a skipped one made, upstream has too)
SELECT ddl_ts, schema_name, table_name, ddl_type, query, state, began_at, time_ms, session FROM applier.ddl_ledger
WHERE name = :name AND state <> 'intent';

-- ledger_history: the same with the tables that they touch, and whether the sink has run them, from a ts on
SELECT ddl_ts, schema_name, table_name, touches, ddl_type, query, state, began_at, time_ms, session FROM applier.ddl_ledger
WHERE name = :name AND ddl_ts >= :ddl_ts AND state <> 'intent';

-- ledger_intents: the DDLs that began and did not end, also those that run beside the rows
SELECT ddl_ts, schema_name, table_name, touches, ddl_type, query, state, before_state, began_at, ended_at, error, time_ms, session
FROM applier.ddl_ledger WHERE name = :name AND state IN ('intent', 'background');

-- ledger_intent: before a DDL runs
INSERT INTO applier.ddl_ledger
(name, ddl_ts, identity_hash, schema_name, table_name, touches, ddl_type, query, state, before_state, began_at, ended_at, error,
time_ms, session)
VALUES (:name, :ddl_ts, :identity_hash, :schema_name, :table_name, :touches, :ddl_type, :query, :state, :before_state,
{now}, NULL, '', :time_ms, :session);

-- ledger_settled: a DDL that is done or skipped without an intent before it
INSERT INTO applier.ddl_ledger
(name, ddl_ts, identity_hash, schema_name, table_name, touches, ddl_type, query, state, before_state, began_at, ended_at, error,
time_ms, session)
VALUES (:name, :ddl_ts, :identity_hash, :schema_name, :table_name, :touches, :ddl_type, :query, :state, '',
{now}, {now}, '', :time_ms, :session);

-- ledger_end: an intent becomes done or skipped
UPDATE applier.ddl_ledger SET state = :state, ended_at = {now}, error = ''
WHERE name = :name AND ddl_ts = :ddl_ts AND identity_hash = :identity_hash AND state IN ('intent', 'background');

-- ledger_before: the tables as they are, just before the statement is sent again
UPDATE applier.ddl_ledger SET before_state = :before_state
WHERE name = :name AND ddl_ts = :ddl_ts AND identity_hash = :identity_hash AND state IN ('intent', 'background');

-- ledger_refused: the server has refused the statement: it did not run, so there is nothing to compare; its intent stays
UPDATE applier.ddl_ledger SET before_state = '', error = :error
WHERE name = :name AND ddl_ts = :ddl_ts AND identity_hash = :identity_hash AND state IN ('intent', 'background');

-- ledger_note: who has skipped a DDL
UPDATE applier.ddl_ledger SET error = :error
WHERE name = :name AND ddl_ts = :ddl_ts AND identity_hash = :identity_hash AND state = 'skipped';

-- ledger_forget: a skip is undone
DELETE FROM applier.ddl_ledger
WHERE name = :name AND ddl_ts = :ddl_ts AND identity_hash = :identity_hash AND state = 'skipped';

-- ledger_forget_load: what an earlier load has made is dropped, and made again
DELETE FROM applier.ddl_ledger WHERE name = :name;

-- ledger_retry: the operator's decision: run it again without comparing
UPDATE applier.ddl_ledger SET before_state = '', error = ''
WHERE name = :name AND ddl_ts = :ddl_ts AND identity_hash = :identity_hash AND state IN ('intent', 'background');

-- quarantine_stored: which events of some records of a stream are stored, in any state
SELECT record_offset, event_index FROM applier.quarantine
WHERE name = :name AND topic = :topic AND partition_number = :partition_number AND record_offset IN :record_offsets AND piece = 0;

-- quarantine_store: one piece of a quarantined event
INSERT INTO applier.quarantine
(name, topic, partition_number, record_offset, event_index, piece, schema_name, table_name, handle_key, commit_ts, record, error, state,
found_at, settled_at, settled_by)
VALUES (:name, :topic, :partition_number, :record_offset, :event_index, :piece, :schema_name, :table_name, :handle_key, :commit_ts, :record,
:error, :state, {now}, NULL, NULL);

-- quarantine_read: all quarantined events, without the records
SELECT topic, partition_number, record_offset, event_index, schema_name, table_name, handle_key, commit_ts, error, state, found_at, settled_at,
settled_by FROM applier.quarantine WHERE name = :name AND piece = 0
ORDER BY found_at, topic, partition_number, record_offset, event_index;

-- quarantine_recent: the events that wait for the operator, then the newest of the others, with the beginning of their texts
SELECT topic, partition_number, record_offset, event_index, schema_name, table_name, '' AS handle_key, commit_ts, SUBSTR(error, 1, :at_most_text) AS error, state, found_at, settled_at,
settled_by FROM applier.quarantine WHERE name = :name AND piece = 0
ORDER BY CASE WHEN state = 'held' THEN 0 ELSE 1 END, found_at DESC, topic, partition_number, record_offset, event_index LIMIT :at_most;

-- quarantine_positions: the quarantined events at offsets that a run may read again
SELECT q.topic, q.partition_number, q.record_offset, q.event_index FROM applier.quarantine q
LEFT JOIN applier.stream s ON s.name = q.name AND s.topic = q.topic AND s.partition_number = q.partition_number
WHERE q.name = :name AND q.piece = 0 AND (s.next_offset IS NULL OR q.record_offset >= s.next_offset);

-- quarantine_record: the pieces of one record
SELECT record FROM applier.quarantine
WHERE name = :name AND topic = :topic AND partition_number = :partition_number AND record_offset = :record_offset
AND event_index = :event_index ORDER BY piece;

-- quarantine_count: how many events wait for the operator
SELECT COUNT(*) FROM applier.quarantine WHERE name = :name AND piece = 0 AND state = 'held';

-- quarantine_settle: the operator's decision about an event that waits
UPDATE applier.quarantine SET state = :state, settled_at = {now}, settled_by = :settled_by
WHERE name = :name AND topic = :topic AND partition_number = :partition_number AND record_offset = :record_offset
AND event_index = :event_index AND state = 'held';

-- pause_read: whether an operator has paused the replica
SELECT said_by, said_at FROM applier.pause WHERE name = :name;

-- pause_begin: the operator pauses the replica
INSERT INTO applier.pause (name, said_by, said_at) VALUES (:name, :said_by, {now});

-- pause_end: the operator resumes the replica
DELETE FROM applier.pause WHERE name = :name;

-- skip_write: a rule: skip this event
UPSERT INTO applier.skip_rule (name, topic, partition_number, record_offset, event_index, commit_ts, schema_name, table_name, said_by, said_at)
KEY (name, topic, partition_number, record_offset, event_index, commit_ts, schema_name, table_name)
VALUES (:name, :topic, :partition_number, :record_offset, :event_index, :commit_ts, :schema_name, :table_name, :said_by, {now});

-- skip_read: all skip rules
SELECT topic, partition_number, record_offset, event_index, commit_ts, schema_name, table_name, said_by, said_at FROM applier.skip_rule
WHERE name = :name;

-- skip_remove: a rule is undone
DELETE FROM applier.skip_rule
WHERE name = :name AND topic = :topic AND partition_number = :partition_number AND record_offset = :record_offset
AND event_index = :event_index AND commit_ts = :commit_ts AND schema_name = :schema_name AND table_name = :table_name;

-- run_end_write: how the last run has ended
UPSERT INTO applier.run_end (name, epoch, run_id, command, exit_code, error_class, message, facts, remedy, ended_at)
KEY (name)
VALUES (:name, :epoch, :run_id, :command, :exit_code, :error_class, :message, :facts, :remedy, {now});

-- run_end_read: how the last run has ended
SELECT epoch, command, exit_code, error_class, message, facts, remedy, ended_at FROM applier.run_end WHERE name = :name;

-- loaded_dump_read: the dump that the sink was loaded from
SELECT start_ts, directory, loader, state, loaded_by, began_at, ended_at FROM applier.loaded_dump WHERE name = :name;

-- loaded_dump_begin: a load begins; until it has ended well, no run starts
UPSERT INTO applier.loaded_dump (name, start_ts, directory, loader, state, loaded_by, began_at, ended_at)
KEY (name)
VALUES (:name, :start_ts, :directory, :loader, 'loading', :loaded_by, {now}, NULL);

-- loaded_dump_end: it has ended well
UPDATE applier.loaded_dump SET state = 'done', ended_at = {now} WHERE name = :name;

-- replica_names: all replicas of which something is stored
SELECT name FROM applier.progress
UNION SELECT name FROM applier.stream
UNION SELECT name FROM applier.known_table
UNION SELECT name FROM applier.table_location
UNION SELECT name FROM applier.ddl_ledger
UNION SELECT name FROM applier.quarantine
UNION SELECT name FROM applier.loaded_dump
UNION SELECT name FROM applier.copy
UNION SELECT name FROM applier.skip_rule
UNION SELECT name FROM applier.pause
UNION SELECT name FROM applier.run_end;

-- progress_rows: how much the progress of a replica holds
SELECT COUNT(*) FROM applier.progress WHERE name = :name;

-- progress_delete: the progress of a replica that is reset or removed
DELETE FROM applier.progress WHERE name = :name;

-- stream_rows: how much the positions of a replica holds
SELECT COUNT(*) FROM applier.stream WHERE name = :name;

-- stream_delete: the positions of a replica that is reset or removed
DELETE FROM applier.stream WHERE name = :name;

-- known_table_rows: how much the known tables of a replica holds
SELECT COUNT(*) FROM applier.known_table WHERE name = :name;

-- known_table_delete: the known tables of a replica that is reset or removed
DELETE FROM applier.known_table WHERE name = :name;

-- table_location_rows: how much the locations of tables of a replica holds
SELECT COUNT(*) FROM applier.table_location WHERE name = :name;

-- table_location_delete: the locations of tables of a replica that is reset or removed
DELETE FROM applier.table_location WHERE name = :name;

-- ddl_ledger_rows: how much the ledger of a replica holds
SELECT COUNT(*) FROM applier.ddl_ledger WHERE name = :name;

-- ddl_ledger_delete: the ledger of a replica that is reset or removed
DELETE FROM applier.ddl_ledger WHERE name = :name;

-- quarantine_rows: how much the quarantine of a replica holds
SELECT COUNT(*) FROM applier.quarantine WHERE name = :name AND piece = 0;

-- quarantine_delete: the quarantine of a replica that is reset or removed
DELETE FROM applier.quarantine WHERE name = :name;

-- loaded_dump_rows: how much the loaded dump of a replica holds
SELECT COUNT(*) FROM applier.loaded_dump WHERE name = :name;

-- loaded_dump_delete: the loaded dump of a replica that is reset or removed
DELETE FROM applier.loaded_dump WHERE name = :name;

-- skip_rule_rows: how much the skip rules of a replica holds
SELECT COUNT(*) FROM applier.skip_rule WHERE name = :name;

-- skip_rule_delete: the skip rules of a replica that is reset or removed
DELETE FROM applier.skip_rule WHERE name = :name;

-- pause_rows: how much the pause of a replica holds
SELECT COUNT(*) FROM applier.pause WHERE name = :name;

-- pause_delete: the pause of a replica that is reset or removed
DELETE FROM applier.pause WHERE name = :name;

-- run_end_rows: how much the end of the last run of a replica holds
SELECT COUNT(*) FROM applier.run_end WHERE name = :name;

-- run_end_delete: the end of the last run of a replica that is reset or removed
DELETE FROM applier.run_end WHERE name = :name;

-- run_end_epoch: the epoch of the last run that has ended, which outlives a reset
SELECT epoch FROM applier.run_end WHERE name = :name;

-- prepared_transaction_write: a piece of what a prepared transaction has changed
UPSERT INTO applier.prepared_transaction (name, place, piece, content)
KEY (name, place, piece)
VALUES (:name, :place, :piece, :content);

-- prepared_transaction_read: the next piece
SELECT content FROM applier.prepared_transaction WHERE name = :name AND place = :place AND piece = :piece;

-- prepared_transaction_sizes: which prepared transactions are kept, and how large they are
SELECT place, SUM(LENGTH(content)) AS size FROM applier.prepared_transaction WHERE name = :name GROUP BY place;

-- prepared_transaction_forget: some that are settled, or that are written once more
DELETE FROM applier.prepared_transaction WHERE name = :name AND place IN :places;

-- prepared_transaction_rows: how much the prepared transactions of a replica hold
SELECT COUNT(*) FROM applier.prepared_transaction WHERE name = :name;

-- prepared_transaction_delete: the prepared transactions of a replica that is reset or removed
DELETE FROM applier.prepared_transaction WHERE name = :name;

-- copy_read: how far the initial copy is
SELECT epoch, attempt, state, start_ts, upto_ts, left_out, began_at, read_at FROM applier.copy WHERE name = :name;

-- copy_share: the first statement of every transaction that writes a chunk: many may hold it, and none of them past the fence
SELECT epoch, attempt, state FROM applier.copy WHERE name = :name {for_share};

-- copy_lock: waits for the chunks that are being written, and keeps new ones out
SELECT epoch, attempt, state FROM applier.copy WHERE name = :name {for_update};

-- copy_begin: a copy begins, or begins again
UPSERT INTO applier.copy (name, epoch, attempt, state, start_ts, upto_ts, left_out, began_at, read_at)
KEY (name)
VALUES (:name, :epoch, :attempt, 'planning', :start_ts, :start_ts, :left_out, {now}, NULL);

-- copy_move: the next state; chunks of older epochs are refused
UPDATE applier.copy SET epoch = :epoch, state = :state WHERE name = :name;

-- copy_end: all chunks are in the sink
UPDATE applier.copy SET state = 'read', upto_ts = :upto_ts, read_at = {now} WHERE name = :name;

-- copy_rows: how much the copy of a replica holds
SELECT COUNT(*) FROM applier.copy WHERE name = :name;

-- copy_delete: the copy of a replica that is reset or removed
DELETE FROM applier.copy WHERE name = :name;

-- copy_table_write: a table that is copied
UPSERT INTO applier.copy_table (name, schema_name, table_name, sink_schema, sink_table, digest, row_estimate, size_estimate)
KEY (name, schema_name, table_name)
VALUES (:name, :schema_name, :table_name, :sink_schema, :sink_table, :digest, :row_estimate, :size_estimate);

-- copy_table_read: the tables that are copied
SELECT schema_name, table_name, sink_schema, sink_table, digest, row_estimate, size_estimate FROM applier.copy_table WHERE name = :name;

-- copy_table_rows: how much the copied tables of a replica hold
SELECT COUNT(*) FROM applier.copy_table WHERE name = :name;

-- copy_table_delete: the copied tables of a replica that is reset or removed, or copied again
DELETE FROM applier.copy_table WHERE name = :name;

-- copy_chunk_plan: a chunk that is going to be written
UPSERT INTO applier.copy_chunk (name, schema_name, table_name, chunk, lower_key, upper_key, row_count, size_bytes, high_ts, done_at)
KEY (name, schema_name, table_name, chunk)
VALUES (:name, :schema_name, :table_name, :chunk, :lower_key, :upper_key, NULL, NULL, NULL, NULL);

-- copy_chunk_done: its rows are in the sink, in the transaction that has written them
UPDATE applier.copy_chunk SET row_count = :row_count, size_bytes = :size_bytes, high_ts = :high_ts, done_at = {now}
WHERE name = :name AND schema_name = :schema_name AND table_name = :table_name AND chunk = :chunk;

-- copy_chunk_find: whether an earlier attempt has written a chunk
SELECT row_count, size_bytes, high_ts FROM applier.copy_chunk
WHERE name = :name AND schema_name = :schema_name AND table_name = :table_name AND chunk = :chunk AND done_at IS NOT NULL;

-- copy_chunk_read: all chunks of a copy, by table and number
SELECT schema_name, table_name, chunk, lower_key, upper_key, row_count, size_bytes, high_ts, done_at FROM applier.copy_chunk
WHERE name = :name ORDER BY schema_name, table_name, chunk;

-- copy_chunk_sums: what is in the sink of each table
SELECT schema_name, table_name, COUNT(*) AS chunks, COUNT(done_at) AS done, SUM(row_count) AS row_count, SUM(size_bytes) AS size_bytes,
SUM(CASE WHEN upper_key IS NULL THEN 1 ELSE 0 END) AS last_ones FROM applier.copy_chunk WHERE name = :name GROUP BY schema_name, table_name;

-- copy_chunk_rows: how much the chunks of a replica hold
SELECT COUNT(*) FROM applier.copy_chunk WHERE name = :name;

-- copy_chunk_delete: the chunks of a replica that is reset or removed, or whose copy begins again
DELETE FROM applier.copy_chunk WHERE name = :name;
