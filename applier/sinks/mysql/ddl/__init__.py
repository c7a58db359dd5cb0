"""Runs upstream's DDLs exactly once on servers whose DDL commits by itself. Read ``runner`` first."""
