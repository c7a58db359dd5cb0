"""Runs groups of checks at the same time, and yields their findings group by group, as they come."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from queue import Empty, Queue
from threading import Thread
from typing import Final

from applier.check.finding import CheckFinding, not_examined, of_error
from applier.check.shared_facts import FactNotKnownError
from applier.model.errors import ApplierError

Group = Callable[[], Iterable[CheckFinding]]

AGAIN: Final = "Run `applier check` again"
DEFECT_REMEDY: Final = "Report this with the version of applier. It does not stop a run"


def examine(groups: Mapping[str, Group], *, within_s: float) -> Iterator[CheckFinding]:
    """Run all groups and yield what they find, in the order of ``groups``. What is not known ``within_s`` is not examined."""
    until = time.monotonic() + within_s
    queues = {name: _start(name, group) for name, group in groups.items()}
    for name, queue in queues.items():
        yield from _taken(name, queue, until)


def _start(name: str, group: Group) -> "Queue[CheckFinding | None]":
    queue: Queue[CheckFinding | None] = Queue()

    def work() -> None:
        try:
            for finding in group():
                queue.put(finding)
        except ApplierError as error:
            queue.put(of_error(name, error))
        except FactNotKnownError as error:
            queue.put(not_examined(name, f"{error} are not known", AGAIN))
        except Exception as error:  # noqa: BLE001 - a check that fails is no reason to stop a replica that may run well
            queue.put(not_examined(name, f"this check failed itself: {type(error).__name__}: {error}", DEFECT_REMEDY))
        finally:
            queue.put(None)

    # A daemon: a server that never answers must not keep the command from ending.
    Thread(target=work, name=f"applier-check-{name}", daemon=True).start()
    return queue


def _taken(name: str, queue: "Queue[CheckFinding | None]", until: float) -> Iterator[CheckFinding]:
    while True:
        try:
            found = queue.get(timeout=max(0.0, until - time.monotonic()))
        except Empty:
            yield not_examined(name, "no answer in time", AGAIN)
            return
        if found is None:
            return
        yield found
