"""One replica: the engine, which performs the coordinator's steps in order, and what it needs to keep them right.

May import ``telemetry``, ``spark`` and everything below them. Read ``engine`` first, then ``step_runner``, ``loading`` and ``recovery``.
"""
