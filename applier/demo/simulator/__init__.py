"""A small upstream: seeded transactions and DDLs, the records that producers make of them, and oracles that execute them.

Imports the vocabulary and ports only. Read ``history`` first, then ``producer``.
"""
