"""Builders of messages of the simple protocol in JSON, for tests. Knows nothing of the decoder."""

import json
from base64 import b64encode

TS = 458173202432000000
BUILT = 1_700_000_000_000
VERSION = 458173202431000000


def dump(document):
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogateescape")


def column(name, kind, *, nullable=False, **more):
    return {
        "name": name,
        "dataType": {"mysqlType": kind, "charset": "utf8mb4", "collate": "utf8mb4_bin", **more},
        "nullable": nullable,
        "default": None,
    }


def index(*columns, name="k", unique=True, primary=False, nullable=False):
    return {"name": name, "unique": unique, "primary": primary, "nullable": nullable, "columns": list(columns)}


def primary(*columns):
    return index(*columns, name="primary", primary=True)


ORDERS = (column("id", "int"), column("note", "varchar", nullable=True), column("blob", "varbinary", nullable=True))


ID_KEY = (primary("id"),)


def schema(*columns, table="orders", indexes=ID_KEY, version=VERSION, table_id=7, database="shop"):
    columns = columns or ORDERS
    return {"schema": database, "table": table, "tableID": table_id, "version": version, "columns": list(columns), "indexes": list(indexes)}


def bootstrap(table=None, built=BUILT):
    return dump({"version": 1, "type": "BOOTSTRAP", "commitTs": 0, "buildTs": built, "tableSchema": table or schema()})


def ddl(sql, table=None, before=None, ts=TS, word="ALTER"):
    members = {"version": 1, "type": word, "sql": sql, "commitTs": ts, "buildTs": BUILT}
    members |= {"tableSchema": table} if table else {}
    return dump(members | ({"preTableSchema": before} if before else {}))


def watermark(ts=TS):
    return dump({"version": 1, "type": "WATERMARK", "commitTs": ts, "buildTs": BUILT})


def row(word="INSERT", data=None, old=None, ts=TS, table="orders", version=VERSION, **members):
    document = {
        "version": 1,
        "database": "shop",
        "table": table,
        "tableID": 7,
        "type": word,
        "commitTs": ts,
        "buildTs": BUILT,
        "schemaVersion": version,
    }
    document |= members
    document |= {} if data is None else {"data": data}
    return dump(document | ({} if old is None else {"old": old}))


def order(number, note="x", blob=None):
    return {"blob": None if blob is None else b64encode(blob).decode(), "id": str(number), "note": note}
