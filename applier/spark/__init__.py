"""The runner: tasks as Spark jobs, the session and its JVM, and what is done when Spark is lost.

May import ``tasks`` and everything below it. Read ``runner`` first.
"""
