"""The log events: every name with its level and its meaning. A name never changes: alerts and dashboards depend on it.

A log line is one event and its facts. ``sinks``, ``sources`` and the packages below them may not import telemetry, so they log the same
names as literals; ``tests/unit/telemetry/test_log_event.py`` compares those literals, and ``docs/log_events.md``, with this list.
"""

import logging
from enum import StrEnum
from typing import Self


class LogEvent(StrEnum):
    """What may happen in a run. The value is the message of the log line; the facts of the line say to what, and why."""

    level: int
    meaning: str

    def __new__(cls, name: str, level: int, meaning: str) -> Self:
        """Make an event that is its name."""
        event = str.__new__(cls, name)
        event._value_, event.level, event.meaning = name, level, meaning
        return event

    REPLICA_CREATED = "replica_created", logging.INFO, "the first run of a replica has started at `start_ts`"
    REPLICA_RESUMED = "replica_resumed", logging.INFO, "a run has started at the checkpoint that the sink holds"
    COPY_BEGAN = (
        "copy_began",
        logging.INFO,
        "a new replica copies `tables` tables of upstream, which have about `rows` rows; the stream continues at `start_ts`",
    )
    COPY_RESUMED = "copy_resumed", logging.INFO, "a run continues the copy that an earlier one has begun at `start_ts`"
    COPY_PROGRESS = "copy_progress", logging.INFO, "so many `rows` and `bytes` are copied: one line after each job"
    COPY_REPEATED = (
        "copy_repeated",
        logging.WARNING,
        "a DDL has renamed, exchanged or changed `tables` while they were copied, so their values may be mixed: the copy begins again",
    )
    COPY_READ = (
        "copy_read",
        logging.INFO,
        "all rows are copied; the replica is consistent when its checkpoint has reached `upto_ts`",
    )
    SPARK_STARTED = "spark_started", logging.INFO, "Spark runs on `master`; its start took `seconds`"
    CHECKPOINT_ADVANCED = (
        "checkpoint_advanced",
        logging.INFO,
        "everything up to `checkpoint_ts` is durable in the sink: one line every 10 seconds at most, and one at the end",
    )
    EARLY_COLUMN = (
        "early_column",
        logging.WARNING,
        "rows of `table` carry `column` before the DDL that adds it (pingcap/tiflow issue 12760): its early values are dropped",
    )
    ROWS_WAIT = (
        "rows_wait",
        logging.WARNING,
        "rows of a table could not be written ahead of the watermark (`reason`); in this run they wait for it",
    )
    ROWS_REFUSED = (
        "rows_refused",
        logging.WARNING,
        "rows could not be written ahead of the watermark (`reason`); then the progress could not be written either, as the next line says",
    )
    DELETES_WITHOUT_ROW = (
        "deletes_without_row",
        logging.WARNING,
        "upstream has deleted `rows` rows of `table` that the sink did not have; `applier docs runbook` says when that is correct",
    )
    DDL_APPLIED = "ddl_applied", logging.INFO, "a DDL has run on the sink"
    DDL_SKIPPED = "ddl_skipped", logging.INFO, "a DDL was not run, because of `[ddl]` in the configuration or of `applier skip`"
    STATEMENTS_SKIPPED = (
        "statements_skipped",
        logging.INFO,
        "statements of the binlog were not run, because they change no table of the replica (account, routine, …): a kind that comes first",
    )
    DDL_BLOCKED = "ddl_blocked", logging.WARNING, "a DDL waits for a lock that the sessions in `blocked_by` hold; it will be retried"
    WAITING_FOR_DDL = (
        "waiting_for_ddl",
        logging.WARNING,
        "the server still executes a DDL of an earlier run in `sessions`; the run waits for it",
    )
    REBUILDING_TABLE = (
        "rebuilding_table",
        logging.INFO,
        "MySQL rebuilds a table, because EXCHANGE PARTITION refuses instantly added columns",
    )
    INDEX_LEFT_OUT = (
        "index_left_out",
        logging.INFO,
        "the sink does without an `index` of upstream, because its server cannot have it; no row depends on it",
    )
    INDEX_BUILDING = "index_building", logging.INFO, "a new index is built in the background (`[ddl] background`)"
    INDEX_BUILT = "index_built", logging.INFO, "an index that was built in the background is there"
    INDEX_BUILD_FAILED = (
        "index_build_failed",
        logging.INFO,
        "an index could not be built in the background (`code` of the server): the DDL runs in the foreground now",
    )
    EVENT_QUARANTINED = "event_quarantined", logging.INFO, "an event was stored in the quarantine instead of being applied"
    BULK_LOAD_REFUSED = "bulk_load_refused", logging.INFO, "a bulk load was rolled back; its segment is written by REPLACE instead"
    BULK_LOADS_ENDED = (
        "bulk_loads_ended",
        logging.WARNING,
        "this run makes no more bulk loads: the server does not take them, or has `refused` several",
    )
    DIFFERENCE_ACCEPTED = "difference_accepted", logging.INFO, "a sink table differs from upstream's, and `[sink.accept]` allows that"
    RETRY = (
        "retry",
        logging.WARNING,
        "something fails and is retried: one line at growing intervals, with the `attempt`, how long it fails, and the end of the retries",
    )
    RETRY_ABANDONED = "retry_abandoned", logging.INFO, "a shutdown has ended the retries of an operation; the next start continues there"
    RECOVERING = "recovering", logging.INFO, "reloading state from the checkpoint, for this `reason`"
    STATE_RELOADED = "state_reloaded", logging.INFO, "the state was reloaded; the run continues from the checkpoint under a new epoch"
    RECOVERED = "recovered", logging.INFO, "what failed works again, `after_s`"
    WATERMARK_STALLED = (
        "watermark_stalled",
        logging.WARNING,
        "the watermark cannot advance: `stream` has shown no resolved event for `source.stall_after_s`",
    )
    WATERMARK_RESUMED = "watermark_resumed", logging.INFO, "`stream` no longer holds back the watermark"
    NO_PROGRESS = "no_progress", logging.WARNING, "the run has made no step for `silent_s`; `phase` and `ddl` say what it waits for"
    WAITING_FOR_REPLICA_LOCK = "waiting_for_replica_lock", logging.WARNING, "another run owns the replica; the facts name it"
    AMBIGUOUS_TIME_ZONE = (
        "ambiguous_time_zone",
        logging.WARNING,
        "`source.time_zone` has an hour that occurs twice; TIMESTAMPs in it may be wrong",
    )
    UNKNOWN_MEMBER = (
        "unknown_member",
        logging.WARNING,
        "records of `protocol` have a `member` that no version known here has; it is ignored, and named once in each process",
    )
    OFFSETS_NOT_SHOWN = (
        "offsets_not_shown",
        logging.WARNING,
        "Kafka refuses the group offsets, which lag tools read; the replica does not need them",
    )
    TOPIC_NOT_EXAMINED = (
        "topic_not_examined",
        logging.WARNING,
        "Kafka does not show the settings of `topic`: whether it is compacted, and so loses rows, is not known",
    )
    HTTP_LISTENING = "http_listening", logging.INFO, "metrics and status are served at `address`"
    HTTP_ADDRESS_IN_USE = "http_address_in_use", logging.WARNING, "the HTTP server waits until its address is free; the run continues"
    HTTP_REQUEST_FAILED = "http_request_failed", logging.WARNING, "an HTTP request ended with a defect of applier"
    OWNER_LOST = "owner_lost", logging.WARNING, "another run owns the replica, or the heartbeat has failed: the run ends, for this `reason`"
    SHUTDOWN_REQUESTED = "shutdown_requested", logging.INFO, "a signal has asked the run to stop; it saves its progress first"
    SHUTDOWN_FORCED = "shutdown_forced", logging.WARNING, "the process ends at once; the next start continues from the checkpoint"
    SHUTDOWN_COMPLETE = "shutdown_complete", logging.INFO, "the run has saved its progress and ends"
    COMMAND_FAILED = "command_failed", logging.ERROR, "a command ends with `exit_code`; `error_message` and `remedy` say why and what to do"
    PAUSED = "paused", logging.INFO, "an operator has paused the replica: the run keeps it, and reads nothing"
    PAUSE_ENDED = "pause_ended", logging.INFO, "the replica was resumed after `after_s`; the run continues from the checkpoint"
    FOREIGN_OUTPUT = (
        "foreign_output",
        logging.WARNING,
        "an entry that Spark, a Python worker or a library has printed: `text`, its `cause`, and in JSON all of it as `output`",
    )
    BINLOG_CONNECTION_LOST = (
        "binlog_connection_lost",
        logging.WARNING,
        "the connection that walks ahead in the binlog was lost (`reason`, `cause`); it is opened again",
    )
    BINLOG_CONNECTION_RESTORED = (
        "binlog_connection_restored",
        logging.INFO,
        "that connection is open again, at the position where it was lost",
    )
    KAFKA_CLIENT = "kafka_client", logging.WARNING, "a line of librdkafka, Kafka's client"
    COMMAND_INTERRUPTED = "command_interrupted", logging.WARNING, "Ctrl-C has ended a command; `reason` says what that means"
    UNEXPECTED_ERROR = (
        "unexpected_error",
        logging.ERROR,
        "a command ends because of a defect of applier: please report it with its traceback",
    )
