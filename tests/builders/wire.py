"""Builders of Open Protocol bytes for tests, and the golden vectors. Knows nothing of the decoders."""

import json
from base64 import b64decode
from dataclasses import dataclass
from pathlib import Path
from typing import Any

VECTORS = Path(__file__).parents[1] / "data" / "vectors" / "open_protocol.jsonl"
FULL_VECTORS = Path(__file__).parents[3] / "shared" / "vectors" / "open_protocol.jsonl"
TS = 458173202432000000
VERSION = (1).to_bytes(8, "big")


@dataclass(frozen=True)
class Vector:
    name: str
    key: bytes | None
    value: bytes | None
    line: dict[str, Any]

    @property
    def is_malformed(self):
        return "error" in self.line


def read_vectors(path=VECTORS):
    with path.open(encoding="utf-8") as lines:
        return [make_vector(json.loads(line)) for line in lines]


def make_vector(line):
    key, value = (None if text is None else b64decode(text) for text in (line["key_b64"], line["value_b64"]))
    return Vector(line["name"], key, value, line)


def dump(document):
    """Write JSON as the newer producer does: nothing escaped, lone surrogates as the raw bytes they stand for."""
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogateescape")


def frame(parts):
    return b"".join(len(part).to_bytes(8, "big") + part for part in parts)


def record(*events):
    """Return (key, value) of a record; an event is (key, body), each a JSON document or bytes."""
    heads, bodies = [], []
    for head, body in events:
        heads.append(head if isinstance(head, bytes) else dump(head))
        bodies.append(body if isinstance(body, bytes) else dump(body))
    return VERSION + frame(heads), frame(bodies)


def head(ts=TS, schema="shop", table="orders", t=1, **members):
    return {"ts": ts, "scm": schema, "tbl": table, "t": t, **members}


def column(t, f, v, **members):
    return {"t": t, **({"h": True} if f & 2 else {}), "f": f, "v": v, **members}


def integer_key(v, f=11, t=3):
    return column(t, f, v)


def text(v, f=64, t=15):
    return column(t, f, v)
