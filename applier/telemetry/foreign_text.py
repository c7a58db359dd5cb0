"""Whatever else is written to ``sys.stderr`` (a traceback of a library's thread, a warning), as events of a JSON log.

A collector reads every line as JSON. Lines that C code writes to the descriptor itself (a crash of the process) stay as they are.
"""

import atexit
import io
import sys
from threading import local
from typing import Final, TextIO

from applier.spark.foreign_output import ForeignOutput


class LogWriter(io.TextIOBase):
    """Stands in the place of ``sys.stderr``, and logs the lines that are written to it. The log itself writes to ``target``."""

    def __init__(self, target: TextIO) -> None:
        self.target: Final = target
        self._entries = ForeignOutput("python")
        self._rest = ""
        self._here = local()

    def write(self, text: str) -> int:
        """Add text; whole lines are logged."""
        # A log handler that fails writes its traceback here: it must not be given to the handler again.
        if getattr(self._here, "is_logging", False):
            return self.target.write(text)
        *lines, self._rest = (self._rest + text).split("\n")
        self._here.is_logging = True
        try:
            for line in lines:
                self._entries.feed(f"{line}\n")
        finally:
            self._here.is_logging = False
        return len(text)

    def flush(self) -> None:
        """Flush the target. An entry ends when no more lines follow."""
        self.target.flush()

    def end(self) -> None:
        """Log what has no end yet."""
        if self._rest:
            self.write("\n")
        self._entries.flush()

    def fileno(self) -> int:
        """Return the target's descriptor, for processes that inherit it."""
        return self.target.fileno()

    def isatty(self) -> bool:
        """Return False: nothing is drawn into a JSON log."""
        return False


def capture_stderr() -> None:
    """Log from now on what is written to ``sys.stderr``. May be repeated."""
    if not isinstance(sys.stderr, LogWriter):
        writer = LogWriter(sys.stderr)
        sys.stderr = writer
        atexit.register(writer.end)
