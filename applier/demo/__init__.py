"""The demo, and the simulator: a small upstream that the demo, the tests and the benchmarks use.

The demo starts ``applier catchup`` as a process, kills it, starts it again and compares; it may import everything below ``cli``.
The simulator may import ``model`` and the ports, never the applier's decoders: they must not check their own reading. Read ``run`` first.
"""
