"""The vocabulary that all packages share: positions, events, ranges and their reports, errors, and the rules of time.

Imports nothing of the applier, and knows no source and no database. Read ``segment`` first: it alone decides ``<`` against ``<=`` of
timestamps. Then ``events`` (what arrives) and ``range_report`` (what a listener says of it).
"""
