"""Apply a TiCDC Open Protocol change stream to a relational database, transaction-consistently and exactly once."""

__version__ = "0.1.0"
