"""What runs on executors, as plain functions over iterators that do not know Spark: listen, prepare, write; and the runner's port.

May import ``sources.port``, ``sinks`` and everything below them. Read ``port`` first, then ``listen``, ``prepare``, ``write``; ``handover``
says why no task trusts the end of its input.
"""
