"""The edge: one module per command. Commands import what they need when they run, so that ``--help`` waits for nothing.

May import everything. Read ``main`` first.
"""
