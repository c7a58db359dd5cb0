"""Where rows go: the port that the pipeline sees (``port``), the bookkeeping that all databases share, one package per dialect.

May import ``planner``, ``coordinator`` and everything below them; not the sources. Read ``port`` first.
"""
