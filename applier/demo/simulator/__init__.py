"""A small upstream: seeded transactions and DDLs, the records that producers make of them, and an oracle that executes them.

Imports ``model`` and the parts of a TSO; never the applier's decoders. Read ``history`` first, then ``producer``:

- what happens upstream: ``history`` draws rows (``workload``) and DDLs (``schema_evolution``) for the tables of ``table_family``;
  ``catalogue`` is the present state, ``operation`` and ``schema`` are its values;
- what a changefeed writes: ``producer``, with ``item`` and ``item_encoder`` (reduced images and large rows too),
  ``dispatch``, and an encoder for each format (``wire_format``): ``open_protocol`` with ``encoder``, ``canal_json``, ``simple`` and
  ``simple_avro``;
- where it goes: ``kafka_log`` to any broker, ``broker`` is an embedded one;
- what must come out: ``sqlite_oracle`` executes the same history, ``compare`` finds every difference.

What only tests and docker/compose.yaml need is in tests/rig: an oracle for servers, large logs, the upstream of the containers.
"""
