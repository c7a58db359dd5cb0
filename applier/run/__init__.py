"""Runs: assembled from the configuration, followed to an end (``catchup``) or without one (``daemon``).

May import everything but ``cli`` and ``demo``. Read ``assembly`` first.
"""
