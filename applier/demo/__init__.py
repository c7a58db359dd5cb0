"""The demo, and the simulator: a small upstream that the demo, the tests and the benchmarks use.

The simulator may import ``model`` and the ports; it never reads its own writing with the applier's decoders. Read ``stage`` first.
"""
