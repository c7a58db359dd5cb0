"""Where events come from: the port that a source implements (``port``), and the sources. A second source is one more package here.

May import ``model``, ``ddl``, ``planner`` and ``coordinator``; not the sinks. Read ``port`` first. Only ``factory`` knows which sources
there are; outside of this package only the configuration names one. ``peek`` reads records without applying them.
"""
