"""What a run shows: one ``RunState``, which the display, the log, the metrics, ``/status`` and the watchdog read.

The engine counts and notes events; the ``Monitor`` makes the state of it. Nothing here decides anything, and nothing holds values of rows,
secrets or connection strings. May import ``spark`` and everything below it, and needs little of it: ``coordinator``, ``sinks.port``.
Read ``run_state`` first, then ``monitor`` and ``log_event``.

This file imports nothing: every command logs, and ``applier --help`` must not wait for the coordinator.
"""
