"""The runner: tasks as Spark jobs, the session and its JVM, and what happens when a job fails or Spark is lost.

May import ``tasks`` and everything below it. Read ``runner`` first, then ``on_demand`` (start and restart of Spark), ``failing_range``
(a range that crashes its listener) and ``failure`` (Spark's failures as errors).
"""
