"""Records of canal-json, written by hand: the applier's decoders and the simulator's encoder must both agree with them."""

import json
from typing import Any

TS = 458_173_202_432_000_001
PLAIN = {"a": ("varchar", "aa"), "b": ("varchar", None)}


def dump(document: Any) -> bytes:
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode()


def row(kind: str = "INSERT", columns: Any = None, *, old: Any = None, pk: Any = ("a",), ts: int = TS, **others: Any) -> dict[str, Any]:
    """A row; ``columns``: name -> (type, text)."""
    columns = PLAIN if columns is None else columns
    extension = {"commitTs": ts} | others.pop("extension", {})
    return {
        "id": 0,
        "database": "d",
        "table": "t",
        "pkNames": None if pk is None else list(pk),
        "isDdl": False,
        "type": kind,
        "es": ts >> 18,
        "ts": 1,
        "sql": "",
        "sqlType": dict.fromkeys(columns, 12),
        "mysqlType": {name: text for name, (text, _) in reversed(columns.items())},
        "old": None if old is None else [old],
        "data": [{name: value for name, (_, value) in columns.items()}],
        "_tidb": extension,
    } | others


def ddl(query: str, ts: int = TS, **others: Any) -> dict[str, Any]:
    nothing = dict.fromkeys(("pkNames", "sqlType", "mysqlType", "data", "old"))
    found = row(ts=ts) | nothing | {"isDdl": True, "type": "QUERY", "table": "", "sql": query}
    return found | others


def watermark(ts: int = TS) -> bytes:
    return (
        b'{"id":0,"database":"","table":"","pkNames":null,"isDdl":false,"type":"TIDB_WATERMARK","es":1,"ts":2,"sql":"","sqlType":null,'
        b'"mysqlType":null,"data":null,"old":null,"_tidb":{"watermarkTs":%d}}' % ts
    )
