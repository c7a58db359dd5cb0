"""Microseconds per row of placing and of image decoding: Open Protocol, simple in JSON, simple in Avro, of the same rows.

A script: ``python tests/bench/simple_bench.py``. The rows are those of ``protocol_bench``, one in each record.
"""

import sys
from pathlib import Path
from time import process_time
from uuid import uuid4

sys.path.insert(0, str(Path(__file__).parents[2]))

from applier.model.position import Offset, Stream
from applier.sources.open_protocol import OPEN_PROTOCOL
from applier.sources.port import PlacedRows, Record
from applier.sources.simple import SimpleDecoder
from tests.bench.protocol_bench import COLUMNS, records
from tests.builders import simple_wire
from tests.rig.simple_placing import KnownLog

ROWS = 16_000
ROUNDS = 7
TYPES = {8: "bigint", 246: "decimal", 3: "int", 15: "varchar", 7: "timestamp"}
AVRO_KINDS = {"bigint": 2, "int": 2, "varchar": 8, "decimal": 8, "timestamp": 12}


def long(number):
    number = (number << 1) ^ (number >> 63)
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*found, number])


def text(value):
    data = value.encode()
    return long(len(data)) + data


def values(number, note):
    return {"id": number, "name": note, "amount": "129012.1230", "qty": number % 100, "updated_at": "2026-11-21 01:02:03"}


def json_image(number, note):
    row = {name: str(value) for name, value in sorted(values(number, note).items())}
    return row | {"updated_at": {"location": "UTC", "value": row["updated_at"]}}


def avro_image(number, note):
    row = values(number, note)
    entries = []
    for name, code, _ in COLUMNS:
        kind = AVRO_KINDS[TYPES[code]]
        written = {2: long, 8: text, 12: lambda value: text("UTC") + text(value)}[kind](row[name])
        entries.append(text(name) + bytes([kind]) + written)
    return b"\x02" + long(len(entries)) + b"".join(entries) + b"\0"


def of_json(operation):
    for number in range(ROWS):
        new, old = json_image(number, f"customer number {number:08d}"), json_image(number, "before")
        images = {"insert": (new, None), "update": (new, old), "delete": (None, new)}[operation]
        yield simple_wire.row(operation.upper(), *images, ts=simple_wire.TS + number)


def of_avro(operation):
    kind = ("insert", "update", "delete").index(operation)
    for number in range(ROWS):
        new, old = avro_image(number, f"customer number {number:08d}"), avro_image(number, "before")
        images = {"insert": (new, b"\0"), "update": (new, old), "delete": (b"\0", new)}[operation]
        head = b"\x16\6\6" + long(1) + text("shop") + text("orders") + long(7) + long(kind)
        head += long(simple_wire.TS + number) + long(simple_wire.BUILT) + long(simple_wire.VERSION)
        yield head + b"\0\0\0" + images[0] + images[1]


def best(function):
    times = []
    for _ in range(ROUNDS):
        start = process_time()
        function()
        times.append(process_time() - start)
    return min(times) / ROWS * 1e6


def measure(label, decoder, given, first=()):
    stream = Stream("bench", 0)
    placer = decoder.placer(stream)
    list(placer.place_all(first))

    def place():
        return list(placer.place_all(given))

    placed = [rows for rows in place() if isinstance(rows, PlacedRows)]
    assert sum(len(rows.key) for rows in placed) == ROWS
    decode = decoder.images_decoder(placed[0].shapes[0])

    def decode_images():
        for rows in placed:
            decode(rows.image)

    size = sum(len(record.key or b"") + len(record.value) for record in given) // ROWS
    print(f"{label:32}{size:5} B{best(place):8.2f} us place{best(decode_images):8.2f} us image")


def main():
    table = simple_wire.schema(
        *[simple_wire.column(name, TYPES[code], nullable=name != "id") for name, code, _ in COLUMNS], indexes=[simple_wire.primary("id")]
    )
    schema = [Record(Offset(0), None, simple_wire.bootstrap(table))]
    for operation in ("insert", "update", "delete"):
        given = [Record(Offset(offset), *record) for offset, record in enumerate(records("tiflow", operation, 1))]
        measure(f"open-protocol {operation}", OPEN_PROTOCOL, given)
        for name, written in (("JSON", of_json), ("Avro", of_avro)):
            decoder = SimpleDecoder().in_log(KnownLog({}, log_name=uuid4().hex))
            given = [Record(Offset(offset + 1), None, value) for offset, value in enumerate(written(operation))]
            measure(f"simple {name} {operation}", decoder, given, schema)


if __name__ == "__main__":
    main()
