"""Runs a program under a limit of memory, as a container does: a control group for the process and all that it starts."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

ROOTS = (("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max"))
"""The memory controller, as version 1 of control groups and as version 2 mounts it, each with its limit."""
NAME = "applier-bench"
ENTER = 'echo $$ >"$0" && exec "$@"'


@contextmanager
def limited(mib: int) -> Iterator[list[str]]:
    """Yield what to put in front of a command so that it runs under the limit; 0: nothing. SystemExit where groups cannot be made."""
    if not mib:
        yield []
        return
    group, limit = _group()
    try:
        group.mkdir(exist_ok=True)
        (group / limit).write_text(f"{mib << 20}\n", encoding="ascii")
    except OSError as error:
        raise SystemExit(f"a limit of memory needs root and a control group: {error}") from error
    try:
        yield ["sh", "-c", ENTER, str(group / "cgroup.procs")]
    finally:
        with suppress(OSError):  # a process that ends at this moment is still in it; the next run uses it again
            group.rmdir()


def _group() -> tuple[Path, str]:
    for root, limit in ROOTS:
        if (Path(root) / "cgroup.procs").exists():
            return Path(root) / NAME, limit
    raise SystemExit("a limit of memory needs control groups (Linux)")
