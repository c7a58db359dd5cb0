"""Quotes names for statements. Pure: executors render statements too."""


def quote_identifier(name: str) -> str:
    """Quote a name: backticks, an inner one doubled."""
    return "`" + name.replace("`", "``") + "`"


def quote_table(schema: str, table: str) -> str:
    """Quote a table's full name."""
    return f"{quote_identifier(schema)}.{quote_identifier(table)}"
