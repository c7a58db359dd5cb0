"""Tells the open pages how a run has ended, before its HTTP server stops."""

import time
from threading import Event
from typing import Any, Final

from applier.model.errors import ApplierError

ASKS_S: Final = 5.0
"""A page asks every second: somebody who asked this recently will ask again."""


class EndNotice:
    """Adds the end of the run to its status. Thread-safe: each field is replaced at once."""

    def __init__(self) -> None:
        self._end: dict[str, Any] | None = None
        self._asked_s: float | None = None
        self._read = Event()

    def end(self, error: BaseException | None) -> None:
        """Record how the run has ended. The first error counts: one that happens while the run closes is not the reason."""
        if self._end is None:
            self._end = _facts(error)

    def told(self, document: dict[str, Any]) -> dict[str, Any]:
        """Return the status that somebody has asked for, with the end of the run as ``end``: None while it runs."""
        self._asked_s = time.monotonic()
        end = self._end
        if end is None:
            return document | {"end": None}
        self._read.set()
        return document | {"end": end, "is_ready": False}

    def wait_until_read(self, at_most_s: float) -> None:
        """Wait until a page has read the end, if one has asked for the status in the last ``ASKS_S``."""
        if self._asked_s is not None and time.monotonic() - self._asked_s < ASKS_S:
            self._read.wait(at_most_s)


def _facts(error: BaseException | None) -> dict[str, Any]:
    if error is None:
        return {"exit_code": 0, "error": None, "error_class": None, "remedy": None}
    kind = type(error).__name__
    if isinstance(error, ApplierError):
        facts = ", ".join(f"{name}={value}" for name, value in error.facts.items())
        text = error.message + (f" [{facts}]" if facts else "")
        return {"exit_code": error.exit_code, "error": text, "error_class": kind, "remedy": error.remedy}
    return {"exit_code": None, "error": kind, "error_class": kind, "remedy": None}
