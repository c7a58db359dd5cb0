"""Every log line of the program is one of the log events: constant, documented, at the level that its list says."""

import ast
import logging
import re
from collections.abc import Iterator
from pathlib import Path

from applier.telemetry.log_event import LogEvent

ROOT = Path(__file__).parents[3]
DOCUMENT = ROOT / "docs" / "log_events.md"
METHODS = {"note", "_note", "_tell", "debug", "info", "warning", "error", "exception", "critical"}
LOGGERS = {"LOGGER", "_log", "_watcher", "watcher", "monitor", "_monitor", "logging"}


def calls() -> Iterator[tuple[str, ast.Call, str]]:
    """Yield each call that logs or notes, with its file and its method."""
    for path in sorted((ROOT / "applier").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in METHODS and node.args:
                receiver = ast.unparse(node.func.value).removeprefix("self.").partition(".")[0]
                if receiver in LOGGERS:
                    yield str(path.relative_to(ROOT)), node, node.func.attr


def event_of(argument: ast.expr) -> LogEvent | None:
    """Return the event that an argument names, by its constant or by its name."""
    if isinstance(argument, ast.Constant):
        return LogEvent(argument.value)
    return LogEvent[argument.attr] if isinstance(argument, ast.Attribute) and ast.unparse(argument.value) == "LogEvent" else None


def test_names_are_short_and_lower_case():
    assert all(re.fullmatch(r"[a-z]+(_[a-z]+){0,3}", event) for event in LogEvent)
    assert [event.name.lower() for event in LogEvent] == [event.value for event in LogEvent]


def test_what_lower_packages_log_is_in_the_list():
    literals = [node.args[0].value for _, node, _ in calls() if isinstance(node.args[0], ast.Constant)]
    assert {"waiting_for_replica_lock", "ddl_blocked", "offsets_not_shown"} <= set(literals) <= set(LogEvent)


def test_each_line_has_the_level_of_its_event():
    levelled = [
        (path, node.lineno, method, event)
        for path, node, method in calls()
        if method in {"debug", "info", "warning", "error"} and (event := event_of(node.args[0])) is not None
    ]
    assert len(levelled) >= 8
    assert [found for found in levelled if logging.getLevelNamesMapping()[found[2].upper()] != found[3].level] == []


def test_every_event_of_the_list_is_logged_somewhere():
    source = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "applier").rglob("*.py") if path.name != "log_event.py")
    assert [event.name for event in LogEvent if f"LogEvent.{event.name}" not in source and f'"{event}"' not in source] == []


def test_the_document_lists_every_event_with_its_level_and_meaning():
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \| ([^|]*) \|$", DOCUMENT.read_text(encoding="utf-8"), re.MULTILINE)
    assert rows == [(event.value, logging.getLevelName(event.level).lower(), event.meaning) for event in LogEvent]
