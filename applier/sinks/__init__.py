"""Where rows go: one transaction per segment writes the rows and the progress (DESIGN.md section 8).

``port`` is what the pipeline sees; its values have modules of their own (``settings``, ``progress``, ``quarantine``, …).
``bookkeeping``, ``write_transaction`` and ``sql_sink`` are what all databases share. ``kit`` is what other packages ask of a database;
``registry`` finds the kit by the URL, and is the only module that names the databases. May import ``planner``, ``coordinator`` and
everything below them; not the sources. Read ``port`` first,
then ``write_transaction``.
"""
