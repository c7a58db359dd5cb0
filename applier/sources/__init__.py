"""Where events come from: the port that a source implements (``port``), and the sources; a second one is one more package here.

May import ``model``, ``ddl``, ``planner`` and ``coordinator``; not the sinks. Read ``port`` first.
"""
