"""All checks together: everything for ``applier check``, and the quick ones for the beginning of a run."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import import_module
from queue import Empty, Queue
from threading import Thread
from typing import Final, Protocol

from applier.check.machine import examine_machine, examine_spark, spark_properties
from applier.check.shared_facts import FactNotKnownError, SharedFacts
from applier.check.sink import examine_sink
from applier.config import Config
from applier.model.errors import ApplierError, Remedy
from applier.model.finding import CheckFinding, not_examined, of_error
from applier.sources.factory import kit_of


class Examination(Protocol):
    """The type of ``examine`` in the module of a source's checks."""

    def __call__(self, config: Config, shared: SharedFacts, *, patience_s: float, wait_s: float | None = None) -> Iterator[CheckFinding]:
        """Examine the source.

        ``wait_s``: also what it holds and the position of the replica, and wait so long for new events; None: what a second is enough for.
        """
        ...


def name_of_source(config: Config) -> str:
    """Return what messages call the source's server."""
    return kit_of(config.source_settings()).server


def examine_source(config: Config, shared: SharedFacts, *, patience_s: float, wait_s: float | None = None) -> Iterator[CheckFinding]:
    """Examine the source. ``wait_s``: also what it holds, and wait so long for new events; None: do not."""
    examine: Examination = import_module(kit_of(config.source_settings()).checks).examine
    return examine(config, shared, patience_s=patience_s, wait_s=wait_s)


Group = Callable[[], Iterable[CheckFinding]]

AGAIN: Final = Remedy("check.run-check-again", "Run `applier check` again")
DEFECT_REMEDY: Final = Remedy("check.report-examination", "Report this with the version of applier. It does not stop a run")


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


PATIENCE_S: Final = 10.0
"""How long one request to Kafka may take."""
LONGEST_S: Final = 60.0
"""Beyond the wait for resolved events."""


def examine_everything(config: Config, *, wait_s: float) -> Iterator[CheckFinding]:
    """Yield all findings, group by group."""
    shared = SharedFacts()
    groups = {
        name_of_source(config): lambda: examine_source(config, shared, patience_s=PATIENCE_S, wait_s=wait_s),
        "sink": lambda: examine_sink(config, shared, patience_s=wait_s + 3 * PATIENCE_S),
        "Spark": lambda: examine_spark(config),
        "machine": lambda: examine_machine(config, spark_properties(config)),
    }
    return examine(groups, within_s=wait_s + LONGEST_S)


def examine_quickly(config: Config, *, within_s: float) -> Iterator[CheckFinding]:
    """Yield the findings that a second is enough for. What a run examines itself before it starts Spark is not repeated."""
    shared = SharedFacts()
    groups = {
        name_of_source(config): lambda: examine_source(config, shared, patience_s=within_s),
        "sink": lambda: examine_sink(config, shared),
        "Spark": lambda: examine_spark(config),
        "machine": lambda: examine_machine(config, spark_properties(config)),
    }
    return examine(groups, within_s=within_s)
