"""The sink in one SQLite file: the embedded default. Read ``sink`` first, then ``schema_change``."""
