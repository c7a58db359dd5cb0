"""Microseconds per row of placing and of image decoding, for both producers' layouts. A script: ``python tests/bench/protocol_bench.py``.

The row has 5 columns (BIGINT key, VARCHAR, DECIMAL, INT, TIMESTAMP) and takes about 310 bytes of key and value. Each timestamp differs,
so the placer's shortcut for rows of one transaction does not help, except where the line says so. ``batch`` holds 16 events a record.
"""

import json
import sys
from pathlib import Path
from time import process_time

sys.path.insert(0, str(Path(__file__).parents[2]))

from applier.model.position import Stream
from applier.sources.open_protocol import OpenProtocolPlacer, decode_record, image_decoder
from applier.sources.port import Record

ROWS = 16_000
ROUNDS = 5
BATCH = 16
COLUMNS = [("id", 8, 11), ("name", 15, 64), ("amount", 246, 65), ("qty", 3, 65), ("updated_at", 7, 65)]


def image(dialect, number, note):
    values = {"id": number, "name": note, "amount": "129012.1230", "qty": number % 100, "updated_at": "2026-11-21 01:02:03"}
    columns = sorted(COLUMNS) if dialect == "tiflow" else COLUMNS
    return {name: {"t": t, **({"h": True} if f & 2 else {}), "f": f, "v": values[name]} for name, t, f in columns}


def body(dialect, operation, number):
    new, old = image(dialect, number, f"customer number {number:08d}"), image(dialect, number, "before")
    return {"insert": {"u": new}, "update": {"u": new, "p": old}, "delete": {"d": new}}[operation]


def frame(parts):
    return b"".join(len(part).to_bytes(8, "big") + part for part in parts)


def dump(document):
    return json.dumps(document, separators=(",", ":")).encode()


def records(dialect, operation, batch, *, same_ts=False):
    result = []
    for first in range(0, ROWS, batch):
        numbers = range(first, first + batch)
        heads = [
            dump({"ts": 458173202432000000 + (0 if same_ts else number), "scm": "shop", "tbl": "orders", "t": 1}) for number in numbers
        ]
        key = (1).to_bytes(8, "big") + frame(heads)
        result.append((key, frame([dump(body(dialect, operation, number)) for number in numbers])))
    return result


def best(function):
    times = []
    for _ in range(ROUNDS):
        start = process_time()
        function()
        times.append(process_time() - start)
    return min(times) / ROWS * 1e6


def measure(label, given):
    placer = OpenProtocolPlacer(Stream("bench", 0))

    records = [Record(offset, key, value) for offset, (key, value) in enumerate(given)]

    def place():
        return list(placer.place_all(records))

    placed = place()
    decode = image_decoder(placed[0].shapes[0])

    def decode_images():
        for rows in placed:
            for image in rows.image:
                decode(image)

    size = sum(len(key) + len(value) for key, value in given) // ROWS
    print(f"{label:32}{size:5} B{best(place):8.2f} us place{best(decode_images):8.2f} us image")


def measure_whole(given):
    def decode():
        for key, value in given:
            decode_record(key, value)

    print(f"{'decode_record, whole events':39}{best(decode):8.2f} us")


def main():
    for dialect in ("tiflow", "ticdc"):
        for operation in ("insert", "update", "delete"):
            measure(f"{dialect} {operation}", records(dialect, operation, 1))
        measure(f"{dialect} insert, batch", records(dialect, "insert", BATCH))
        measure(f"{dialect} update, batch, one ts", records(dialect, "update", BATCH, same_ts=True))
    measure_whole(records("ticdc", "insert", 1))


if __name__ == "__main__":
    main()
