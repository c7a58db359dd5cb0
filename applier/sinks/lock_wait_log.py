"""Logs that a run waits for the replica lock, and which run holds it."""

import logging
from typing import Final

from applier.model.errors import Fenced

_log: Final = logging.getLogger(__name__)


def log_lock_wait(refusal: Fenced) -> None:
    """Log the wait with the facts of ``refusal``, the error that ends the wait if the lock is not released in time."""
    # "process" is an attribute that every log record has.
    facts = {"owner_process" if name == "process" else name: value for name, value in refusal.facts.items()}
    _log.warning("waiting_for_replica_lock", extra=facts)
