"""Counts what a function does, in bytecode instructions: the same on every machine, unlike seconds."""

import sys
from collections.abc import Callable


def operations(function: Callable[[], object]) -> int:
    """Return how many instructions of Python ``function`` executes, those of what it calls included."""
    count = 0

    def trace(frame, event, _):
        nonlocal count
        frame.f_trace_lines, frame.f_trace_opcodes = False, True
        count += event == "opcode"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        function()
    finally:
        sys.settrace(before)
    return count


def growth(cost_of: Callable[[int], Callable[[], object]], size: int) -> float:
    """Return how many times as much twice the size costs. ``cost_of`` prepares a function for a size; only what that does is counted."""
    return operations(cost_of(2 * size)) / operations(cost_of(size))
