"""Reads a simulated log with nothing but the json module, and checks the promises of producers (open_protocol.md section 3)."""

import json
import struct
from collections import defaultdict
from dataclasses import dataclass, field

import cramjam
import lz4.frame

LZ4_MAGIC = b"\x04\x22\x4d\x18"


def events(record):
    """Yield (key, value) of each event of a record, parsed; the value of a resolved event is None."""
    assert record.key[:8] == struct.pack(">Q", 1)
    keys, values = list(pieces(record.key[8:])), list(pieces(record.value))
    assert len(keys) == len(values)
    for key, value in zip(keys, values, strict=True):
        yield (
            json.loads(key.decode("utf-8", "surrogateescape")),
            json.loads(plain(value).decode("utf-8", "surrogateescape")) if value else None,
        )


def pieces(data):
    place = 0
    while place < len(data):
        (length,) = struct.unpack_from(">Q", data, place)
        assert place + 8 + length <= len(data)
        yield data[place + 8 : place + 8 + length]
        place += 8 + length


def plain(value):
    if value.startswith(LZ4_MAGIC):
        return lz4.frame.decompress(value)
    try:
        json.loads(value.decode("utf-8", "surrogateescape"))
    except ValueError:
        return bytes(cramjam.snappy.decompress_raw(value))
    return value


def handle_key(key, image):
    return (key["scm"], key["tbl"], *sorted((name, repr(column["v"])) for name, column in image.items() if column.get("h")))


@dataclass
class Promises:
    """Follows a log; ``broken`` names every event that is neither new above all promises nor a repetition.

    Every resolved ts holds for all streams: it is sent after everything up to it was acknowledged everywhere.
    """

    resolved: dict = field(default_factory=lambda: defaultdict(int))
    seen: set = field(default_factory=set)
    versions: dict = field(default_factory=lambda: defaultdict(int))
    ddls: dict = field(default_factory=lambda: defaultdict(set))
    broken: list = field(default_factory=list)
    fallbacks: int = 0

    def feed(self, record):
        for key, value in events(record):
            match key["t"]:
                case 3:
                    self._resolved(record.stream, key["ts"])
                case 2:
                    self._ddl(record.stream, key, value)
                case 1:
                    self._row(record.stream, key, value)

    def _resolved(self, stream, ts):
        self.fallbacks += ts < self.resolved[stream]
        self.resolved[stream] = max(self.resolved[stream], ts)

    def _promised(self):
        return max(self.resolved.values(), default=0)

    def _ddl(self, stream, key, value):
        # The other wording of an upgraded producer is the same DDL.
        identity = (key["ts"], key["scm"], key.get("tbl", ""), value["t"])
        if identity not in self.ddls and key["ts"] < self._promised():
            self.broken.append(("ddl below a promise", key))
        self.ddls[identity].add(stream)

    def _row(self, stream, key, value):
        image = value.get("u") or value["d"]
        identity = (key["ts"], "u" in value, handle_key(key, image))
        if identity in self.seen:
            return
        self.seen.add(identity)
        if key["ts"] <= self._promised():
            self.broken.append(("row at or below a promise", key))
        # The versions of a key come into one stream in commit_ts order; between streams there is no order.
        place = (stream, identity[2])
        if key["ts"] < self.versions[place]:
            self.broken.append(("row behind a later version", key))
        self.versions[place] = key["ts"]
