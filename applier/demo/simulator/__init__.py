"""A small upstream: seeded transactions and DDLs, the records that producers make of them, and oracles that execute them.

May import ``model`` and the sinks' settings; never the applier's decoders. Read ``history`` first, then ``producer``, then ``oracle``:

- what happens upstream: ``history`` over ``workload`` (rows) and ``schema_evolution`` (DDLs, with ``table_factory`` and ``alter_clauses``), on
  the tables of ``table_family``; ``catalogue`` is the present state, ``operation`` and ``schema`` are its values;
- what a changefeed writes: ``producer``, with ``item``, ``dispatch`` and ``encoder`` (``json_text``, ``go_quote``); ``bulk_history`` writes much of it;
- where it goes: ``kafka_log`` to a broker, ``broker`` is one of our own;
- what must come out: ``oracle`` (``sqlite_oracle``, ``mysql_oracle``), compared by ``compare``.
"""
