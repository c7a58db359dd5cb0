"""What runs on executors, as plain functions over iterators without a word of Spark: listen, prepare, write.

May import ``sources.port``, ``sinks`` and everything below them. Read ``listen`` first, then ``apply``.
"""
