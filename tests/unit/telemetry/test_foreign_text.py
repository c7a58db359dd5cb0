"""In a JSON log every line of standard error is JSON, whoever has written it."""

import json
import subprocess
import sys

PROGRAM = """
import logging, sys, threading, warnings
from applier.telemetry.log import capture_stderr
from applier.telemetry.log import configure_logging, use_format

configure_logging(logging.WARNING)
use_format("json")
capture_stderr()
capture_stderr()
print("a library's line", file=sys.stderr)
warnings.warn("a library's warning")
thread = threading.Thread(target=lambda: 1 / 0)
thread.start()
thread.join()
logging.getLogger("applier.kafka").error("FAIL [rdkafka#consumer-1] [thrd:x]: refused")
sys.stderr.write("without an end")
"""


def test_lines_of_libraries_and_tracebacks_of_threads_are_json():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    entries = [json.loads(line) for line in done.stderr.splitlines()]
    assert entries[0]["text"] == "a library's line"
    assert "a library's warning" in entries[1]["text"]
    assert [entry["cause"] for entry in entries if "cause" in entry] == ["ZeroDivisionError: division by zero"]
    assert [entry["client"] for entry in entries if entry["message"] == "kafka_client"] == ["rdkafka#consumer-1"]
    assert entries[-1]["text"] == "without an end"
