"""Log lines: constant messages, facts beside them, on standard error."""

import io
import json
import logging
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest
import stamina
from stamina.instrumentation import get_on_retry_hooks, set_on_retry_hooks

from applier.model.errors import Remedy, RetryableSinkError
from applier.model.position import Ts
from applier.sources.ticdc.tso import TSO_TIMELINE
from applier.telemetry.log import NOISY_LOGGERS, RepetitionFilter, StderrHandler, configure_logging, extra_of, use_format, use_level
from applier.telemetry.log_event import LogEvent
from applier.telemetry.observer import SilentObserver
from applier.telemetry.retries import retries_noted
from applier.telemetry.run_state import RunState

TS = 470625449688432640


@pytest.fixture(autouse=True)
def loggers_as_they_were():
    root = logging.getLogger()
    handlers, names = list(root.handlers), ("applier", *NOISY_LOGGERS)
    levels = {name: logging.getLogger(name).level for name in names}
    hooks = get_on_retry_hooks()
    yield
    set_on_retry_hooks(hooks)
    root.handlers[:] = handlers
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)


def test_a_log_line_holds_level_logger_message_and_sorted_facts(capsys):
    configure_logging(logging.INFO)
    logging.getLogger("applier.engine").info(
        "checkpoint", extra=extra_of({"rows": 5, "checkpoint_ts": TS, "remedy": "look at it", "nothing": ""}, TSO_TIMELINE)
    )

    line = capsys.readouterr().err
    when = "2026-11-21 20:40:16.060Z"
    assert line.endswith(f"INFO applier.engine: checkpoint checkpoint_ts={TS} ({when}) nothing='' remedy='look at it' rows=5\n")


class _Places:
    """Timestamps that are places in a log: only the latest has a time."""

    def time_ms(self, ts: Ts) -> int | None:
        return 1_000 if ts > 50 else None

    def text(self, ts: Ts) -> str:
        return f"log.000001:{ts}"


def test_a_timestamp_that_is_a_place_is_spelled_as_commands_take_it(capsys):
    configure_logging(logging.INFO)
    logging.getLogger("applier.engine").info("a", extra=extra_of({"checkpoint_ts": 100, "start_ts": 4, "none_ts": 0}, _Places()))
    use_format("json")
    logging.getLogger("applier.engine").info("a", extra=extra_of({"checkpoint_ts": 100}, _Places()))
    text, entry = capsys.readouterr().err.splitlines()
    assert text.endswith(" a checkpoint_position='log.000001:100 (1970-01-01 00:00:01.000Z)' none_ts=0 start_position=log.000001:4")
    assert json.loads(entry).items() >= {"checkpoint_ts": 100, "checkpoint_position": "log.000001:100"}.items()


def test_a_log_line_begins_with_the_time_in_utc_whatever_the_zone_of_the_machine(capsys, monkeypatch):
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        configure_logging(logging.INFO)
        at_s = 1764664816.06
        facts = {"name": "applier", "levelname": "INFO", "levelno": logging.INFO, "msg": "begins", "created": at_s}
        logging.getLogger().handle(logging.makeLogRecord(facts))
    finally:
        monkeypatch.undo()
        time.tzset()
    assert capsys.readouterr().err == "2025-12-02 08:40:16.060Z INFO applier: begins\n"


def test_tracebacks_of_py4j_about_an_ended_jvm_are_left_out(capsys):
    configure_logging(logging.INFO)
    facts = {"name": "root", "levelname": "ERROR", "levelno": logging.ERROR}
    logging.getLogger().handle(logging.makeLogRecord(facts | {"msg": "Exception while sending command.", "module": "java_gateway"}))
    logging.getLogger().handle(logging.makeLogRecord(facts | {"msg": "of another library", "module": "other"}))
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith("of another library")


def test_facts_stand_before_a_traceback(capsys):
    configure_logging(logging.INFO)
    try:
        int("x")
    except ValueError:
        logging.getLogger("applier").exception("failed", extra={"table": "a.b"})

    lines = capsys.readouterr().err.splitlines()
    assert lines[0].endswith("failed table=a.b")
    assert lines[-1] == "ValueError: invalid literal for int() with base 10: 'x'"


def test_the_level_is_the_programs_and_libraries_are_quiet(capsys):
    configure_logging(logging.DEBUG)
    logging.getLogger("applier.kafka").debug("own")
    for name in NOISY_LOGGERS:
        logging.getLogger(name).info("chatter")
        logging.getLogger(name).warning("trouble")

    text = capsys.readouterr().err
    assert "own" in text
    assert "chatter" not in text
    assert text.count("trouble") == len(NOISY_LOGGERS)


def test_configuring_twice_does_not_double_the_lines(capsys):
    configure_logging()
    configure_logging()
    logging.getLogger("applier").warning("once")
    assert capsys.readouterr().err.count("once") == 1


def test_lines_go_to_the_standard_error_of_the_moment(monkeypatch):
    configure_logging()
    borrowed = io.StringIO()
    monkeypatch.setattr(sys, "stderr", borrowed)
    logging.getLogger("applier").warning("later")
    assert "later" in borrowed.getvalue()
    assert sum(isinstance(h, StderrHandler) for h in logging.getLogger().handlers) == 1


def test_a_collector_gets_one_json_object_per_line_with_facts_of_their_own_type(capsys):
    configure_logging(logging.INFO)
    use_format("json")
    logging.getLogger("applier.engine").info(
        "checkpoint", extra={"checkpoint_ts": 2**63 + 1, "lag_s": 0.5, "table": "é.\udcff", "path": Path("a")}
    )
    entry = json.loads(capsys.readouterr().err)
    assert datetime.fromisoformat(entry.pop("time")).tzinfo is UTC
    assert entry == {
        "level": "info",
        "logger": "applier.engine",
        "message": "checkpoint",
        "checkpoint_ts": 2**63 + 1,
        "lag_s": 0.5,
        "table": "é.\udcff",
        "path": "a",
    }


def test_a_traceback_in_json_stays_on_the_line(capsys):
    configure_logging(logging.INFO)
    use_format("json")
    try:
        int("x")
    except ValueError:
        logging.getLogger("applier").exception("failed")
    (line,) = capsys.readouterr().err.splitlines()
    assert json.loads(line)["traceback"].endswith("ValueError: invalid literal for int() with base 10: 'x'")


@pytest.mark.parametrize(("asked", "wanted", "effective"), [(30, 20, 20), (30, 40, 40), (10, 20, 10), (20, 40, 20), (20, 10, 10)])
def test_the_configuration_names_the_level_and_never_takes_away_what_the_command_line_asked_for(asked, wanted, effective):
    configure_logging(asked)
    use_level(wanted)
    assert logging.getLogger("applier").level == effective


def kafka_record(text, created):
    record = logging.makeLogRecord({"name": "applier.kafka", "msg": text})
    record.created = created
    return record


def test_repeated_lines_of_librdkafka_pass_once_in_a_while():
    passes = RepetitionFilter().filter
    assert [passes(kafka_record(f"b:1: refused (after {i}ms in state CONNECT)", 100.0 + i)) for i in range(12)] == [
        i in {0, 10} for i in range(12)
    ]
    assert passes(kafka_record("b:2: refused (after 1ms in state CONNECT)", 111.0))


def test_repeated_lines_of_the_program_itself_all_pass(capsys):
    configure_logging(logging.INFO)
    for ts in (1, 2, 2):
        logging.getLogger("applier.engine").info("checkpoint", extra={"checkpoint_ts": ts})
    assert capsys.readouterr().err.count("checkpoint_ts") == 3


def test_a_silent_observer_shows_nothing(capsys):
    observer = SilentObserver()
    observer.update(RunState(phase="writing"))
    observer.note(LogEvent.DDL_APPLIED, query="DROP TABLE t")
    assert capsys.readouterr() == ("", "")


def fail_once(error):
    stamina.set_testing(True, attempts=3)
    try:
        for attempt in stamina.retry_context(on=type(error), attempts=3):
            with attempt:
                if attempt.num == 1:
                    raise error
    finally:
        stamina.set_testing(False)


class Watching:
    def __init__(self):
        self.notes = []

    def changed(self):
        pass

    def note(self, message, /, **facts):
        self.notes.append((message, facts))


def test_a_retry_of_a_run_is_noted_with_class_code_and_reason_and_one_of_a_command_is_logged(capfd):
    configure_logging()
    watching = Watching()
    with retries_noted(watching):
        fail_once(RetryableSinkError("deadlock", remedy=Remedy("test.remedy", "none"), code=1213, table="a.b"))
    fail_once(RetryableSinkError("after the run"))
    facts = {"error": "RetryableSinkError", "attempt": 1, "wait_s": 0.0, "code": 1213, "reason": "deadlock", "is_inner": True}
    assert watching.notes == [("retry", facts)]
    out, err = capfd.readouterr()
    assert (out, err.endswith("WARNING applier: retry attempt=1 error=RetryableSinkError reason='after the run' wait_s=0.0\n")) == (
        "",
        True,
    )
    assert err.count("\n") == 1


def test_the_message_of_another_librarys_error_is_not_logged(capsys):
    configure_logging(logging.INFO)
    fail_once(OSError("password=hunter2"))
    line = capsys.readouterr().err
    assert line.endswith("WARNING applier: retry attempt=1 error=OSError wait_s=0.0\n")
    assert "hunter2" not in line
