"""A simulated upstream that lives: for the containers of ``docker/compose.yaml``, where no TiDB is.

It executes a history in a database of its own, as TiDB would, and writes what a changefeed would write to Kafka, with the time of the wall
clock. ``comparison`` holds it still and compares the replica with it. Read ``feed`` first.
"""
