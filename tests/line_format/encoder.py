"""Writes records of the format. It knows nothing of the decoder."""

from urllib.parse import quote


def _line(*fields):
    return " ".join(quote(str(field), safe="") for field in fields)


def _columns(columns):
    for name, (mysql_type, flags, value) in columns.items():
        yield f"{quote(name)}:{mysql_type}:{flags}={'~' if value is None else quote(str(value), safe='')}"


def put(ts, schema, table, **columns):
    return " ".join([_line("put", ts, schema, table), *_columns(columns)])


def updated(ts, schema, table, before, after):
    return " ".join([_line("upd", ts, schema, table), *_columns(before), "|", *_columns(after)])


def deleted(ts, schema, table, **columns):
    return " ".join([_line("del", ts, schema, table), *_columns(columns)])


def ddl(ts, schema, table, ddl_type, query):
    return _line("ddl", ts, schema, table or "~", ddl_type, query)


def resolved(ts):
    return _line("resolved", ts)


def record(*events):
    return None, "\n".join(events).encode()
