"""Examines whether a replica can run, before it runs: Kafka, the topics, the sink, Spark, this machine. Changes nothing.

Each module examines one of them and yields findings. Read ``everything`` first.
"""
