"""What other programs print (Spark's JVM, its Python workers, librdkafka in them) as events of the log: one for each entry, not each line.

A stack trace is many lines of one entry. The event shows its first line and its cause; ``output``, which JSON logs hold, is all of it.
Without a configured log, lines are passed on to standard error as they are.
"""

import logging
import re
import sys
import time
from contextlib import suppress
from threading import Lock, Timer
from typing import Any, Final

EVENT: Final = "foreign_output"
KAFKA_EVENT: Final = "kafka_client"
KAFKA: Final = logging.getLogger("applier.kafka")

LOG4J: Final = re.compile(r"\d\d/\d\d/\d\d \d\d:\d\d:\d\d (?P<level>[A-Z]+) (?P<source>\S+?): (?P<text>.*)")
"""The pattern of log4j2.properties."""
RDKAFKA: Final = re.compile(r"(?P<facility>[A-Z0-9_]{2,}) \[(?P<client>rdkafka#[^\]]+)\] (?:\[thrd:[^\]]*\]: )?(?P<text>.*)", re.DOTALL)
"""A line of librdkafka, as Python's client gives it to a logger."""
RAISED: Final = re.compile(r"(?:Caused by: )?[\w.$]+(?:Error|Exception|Interrupt|Exit|Failure)\b")
CONTINUED: Final = re.compile(r"\s|$|Traceback |Caused by: |During handling |The above exception |" + RAISED.pattern)
"""What a line begins with that belongs to the entry before it."""
QUIET_S: Final = 0.3
"""After this time without a line an entry has ended."""
REPETITION_S: Final = 10.0
VARYING: Final = re.compile(r"[0-9a-f-]*[0-9][0-9a-f-]*")
MAX_LINES: Final = 400
MAX_TEXT: Final = 500
HARMLESS: Final = re.compile(r"(?:BrokenPipeError|ConnectionResetError): |.*\bBroken pipe\b")
"""The last words of a Python worker whose job has ended: the JVM has closed the connection."""


def kafka_facts(line: str) -> dict[str, Any] | None:
    """Return the facts of a line of librdkafka; None if it is another one."""
    match = RDKAFKA.fullmatch(line.strip())
    return None if match is None else match.groupdict()


class ForeignOutput:
    """Groups the lines of one ``origin`` and logs each entry. Thread-safe."""

    def __init__(self, origin: str) -> None:
        self._log = logging.getLogger(f"applier.{origin}")
        self._lines: list[str] = []
        self._changing = Lock()
        self._timer: Timer | None = None
        self._said: dict[str, float] = {}

    def feed(self, line: str) -> None:
        """Add a line; what it ends is logged."""
        if not self._log.hasHandlers():
            _pass_on(line)
            return
        with self._changing:
            if self._lines and (not CONTINUED.match(line) or len(self._lines) >= MAX_LINES):
                self._end_entry()
            if line.strip() or self._lines:
                self._lines.append(line.rstrip("\n"))
            self._restart_timer()

    def flush(self) -> None:
        """Log the entry that has not ended yet."""
        with self._changing:
            self._end_entry()

    def _restart_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._lines:
            self._timer = Timer(QUIET_S, self.flush)
            self._timer.daemon = True
            self._timer.start()

    def _end_entry(self) -> None:
        lines, self._lines = self._lines, []
        if not lines:
            return
        if len(lines) == 1 and (facts := kafka_facts(lines[0])) is not None:
            KAFKA.warning(KAFKA_EVENT, extra=facts)
            return
        facts = _facts(lines)
        is_quiet = HARMLESS.match(str(facts.get("cause") or facts["text"])) or self._is_repeated(facts)
        self._log.log(logging.DEBUG if is_quiet else logging.WARNING, EVENT, extra=facts)

    def _is_repeated(self, facts: dict[str, Any]) -> bool:
        """Whether the same was logged just before, except its numbers: Spark logs it for each task, directory and attempt."""
        now, said = time.monotonic(), VARYING.sub("#", f"{facts.get('source')} {facts['text']} {facts.get('cause')}")
        self._said = {text: at for text, at in self._said.items() if now - at < REPETITION_S}
        if said in self._said:
            return True
        self._said[said] = now
        return False


def _facts(lines: list[str]) -> dict[str, Any]:
    """Return the part of an entry that a reader needs: its first line, without log4j's head, and what was raised last."""
    head = LOG4J.match(lines[0])
    facts = {"text": lines[0].strip()[:MAX_TEXT]} if head is None else {"text": head["text"][:MAX_TEXT], "source": head["source"]}
    raised = [line.removeprefix("Caused by: ") for line in map(str.strip, lines[1:]) if RAISED.match(line)]
    if raised:
        facts["cause"] = raised[-1][:MAX_TEXT]
    if len(lines) > 1:
        facts["output"] = "\n".join(lines)
    return facts


def _pass_on(line: str) -> None:
    with suppress(OSError, ValueError):  # no one reads standard error any more: the JVM must not wait for that
        sys.stderr.write(line)
        sys.stderr.flush()
