"""Which ranges share a listening task: about as many tasks as there are cores, of about as many expected bytes each."""

from collections.abc import Sequence
from typing import Final

from applier.tasks.listen import ListenTask

TASK_BYTES: Final = 4 << 20
"""Below it one task more costs more than it saves: a few megabytes are read in less than a tenth of a second."""


def pack(tasks: Sequence[ListenTask], most: int) -> list[list[ListenTask]]:
    """Divide ranges into at most ``most`` groups; each keeps the order in which they came."""
    expected = sum(task.expected_bytes for task in tasks)
    number = max(1, min(most, len(tasks), -(-expected // TASK_BYTES)))
    loads = [0] * number
    groups: list[list[int]] = [[] for _ in range(number)]
    # The largest first, each to the group that has least: within a third of the best division, whatever the sizes.
    for index in sorted(range(len(tasks)), key=lambda index: -tasks[index].expected_bytes):
        least = loads.index(min(loads))
        groups[least].append(index)
        loads[least] += max(1, tasks[index].expected_bytes)
    return [[tasks[index] for index in sorted(group)] for group in groups if group]
