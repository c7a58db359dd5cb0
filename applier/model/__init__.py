"""The vocabulary: positions, events, ranges and their reports, errors, and which timestamps belong to a segment.

Imports nothing of the applier. Read ``segment`` first: it alone decides ``<`` against ``<=``.
"""
