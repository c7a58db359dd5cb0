"""What Spark, its workers and librdkafka print is an event of the log for each entry, however many lines it has."""

import logging
import time

import pytest

from applier.spark.foreign_output import QUIET_S, ForeignOutput, kafka_facts

EXECUTOR_ERROR = """\
26/11/22 23:00:00 ERROR Executor: Exception in task 0.0 in stage 0.0 (TID 0)
org.apache.spark.SparkException: Job aborted
\tat org.apache.spark.Foo.bar(Foo.scala:12)
Caused by: java.io.IOException: No space left on device
\tat java.base/java.io.FileOutputStream.write(FileOutputStream.java)
\t... 12 more
26/11/22 23:00:01 ERROR TaskSetManager: Task 0 in stage 0.0 failed 1 times; aborting job
"""
WORKER_TRACEBACK = """\
Traceback (most recent call last):
  File "worker.py", line 1, in main
    write(1)
{error}
"""


def logged(caplog, text: str) -> list[logging.LogRecord]:
    caplog.set_level(logging.DEBUG, "applier")
    output = ForeignOutput("spark")
    for line in text.splitlines(keepends=True):
        output.feed(line)
    output.flush()
    return caplog.records


def test_a_stack_is_one_entry_with_its_cause_and_the_next_line_of_log4j_begins_another(caplog):
    first, second = logged(caplog, EXECUTOR_ERROR)
    assert (first.text, first.source) == ("Exception in task 0.0 in stage 0.0 (TID 0)", "Executor")
    assert first.cause == "java.io.IOException: No space left on device"
    assert first.output.count("\n") == 5
    assert (second.message, second.text) == ("foreign_output", "Task 0 in stage 0.0 failed 1 times; aborting job")


def test_what_spark_says_of_each_task_is_shown_once_in_a_while(caplog):
    line = "26/11/22 23:00:00 ERROR TaskSetManager: Task {} in stage 0.{} failed 1 times\n"
    assert [entry.levelno for entry in logged(caplog, line.format(0, 0) + line.format(17, 1) + "another\n")] == [
        logging.WARNING,
        logging.DEBUG,
        logging.WARNING,
    ]


def test_tracebacks_of_different_errors_are_not_one_that_repeats(caplog):
    output = ForeignOutput("spark")
    for error in ("ValueError: no such column", "KeyError: 'orders'", "KeyError: 'orders'"):
        for line in WORKER_TRACEBACK.format(error=error).splitlines(keepends=True):
            output.feed(line)
        output.flush()
    assert [entry.cause for entry in caplog.records if entry.levelno == logging.WARNING] == [
        "ValueError: no such column",
        "KeyError: 'orders'",
    ]


@pytest.mark.parametrize(
    ("error", "level"),
    [("ValueError: no such column", logging.WARNING), ("BrokenPipeError: [Errno 32] Broken pipe", logging.DEBUG)],
)
def test_a_traceback_of_a_worker_is_one_entry_and_harmless_where_its_job_has_ended(error, level, caplog):
    (entry,) = logged(caplog, WORKER_TRACEBACK.format(error=error))
    assert (entry.levelno, entry.cause) == (level, error)


def test_a_line_of_librdkafka_in_a_worker_is_one_of_the_kafka_client(caplog):
    (entry,) = logged(caplog, "FAIL [rdkafka#consumer-1] [thrd:127.0.0.1:9/bootstrap]: 127.0.0.1:9/bootstrap: Connect failed\n")
    assert (entry.name, entry.message, entry.facility, entry.client) == ("applier.kafka", "kafka_client", "FAIL", "rdkafka#consumer-1")
    assert entry.text == "127.0.0.1:9/bootstrap: Connect failed"
    assert kafka_facts("FAILED to do it") is None


def test_an_entry_ends_when_nothing_follows(caplog):
    ForeignOutput("spark").feed("the last words\n")
    deadline = time.monotonic() + 50 * QUIET_S
    while not caplog.records and time.monotonic() < deadline:
        time.sleep(QUIET_S / 10)
    assert caplog.records[0].text == "the last words"
