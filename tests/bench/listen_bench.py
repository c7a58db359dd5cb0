"""From a Kafka message to its place in a chunk: microseconds per row of one core, reading from memory (no broker).

The row has five columns and about 310 bytes of key and value; the figure includes placing, bucketing, packing and the report.
"""

import time
from dataclasses import dataclass

from applier.model.position import Offset, Stream, Ts
from applier.model.range_report import RangeId
from applier.sources.open_protocol import OPEN_PROTOCOL
from applier.sources.port import Record
from applier.tasks.listen import ListenTask, listen

ROWS = 200_000
BATCH = 1000
ROUNDS = 5
BUCKETS = 4
STREAM = Stream("bench", 0)


@dataclass(frozen=True)
class Records:
    """A reader over messages that were made before."""

    messages: list

    def read(self, ranges):
        for range_id in ranges:
            for first in range(range_id.start, range_id.end, BATCH):
                # A message of Kafka gives key, value and offset by calls, as here a slice and a tuple each.
                yield (
                    range_id,
                    [Record(Offset(first + i), key, value) for i, (key, value) in enumerate(self.messages[first : first + BATCH])],
                )


def message(number):
    key = b'{"ts":%d,"scm":"shop","tbl":"orders","t":1}' % (458_173_202_432_000_000 + number // 10)
    value = (
        b'{"u":{"id":{"t":8,"h":true,"f":11,"v":%d},"customer":{"t":15,"f":64,"v":"customer number %08d of the shop"},'
        b'"note":{"t":15,"f":64,"v":"words %06d"},"amount":{"t":246,"f":65,"v":"%d.%02d"},'
        b'"made":{"t":12,"f":65,"v":"2025-11-24 10:00:00"}}}' % (number, number % 100_000, number % 1000, number % 10_000, number % 100)
    )
    framed_key = (1).to_bytes(8, "big") + len(key).to_bytes(8, "big") + key
    return framed_key, len(value).to_bytes(8, "big") + value


def main():
    messages = [message(number) for number in range(ROWS)]
    task = ListenTask(range=RangeId(STREAM, Offset(0), Offset(ROWS)), floor_ts=Ts(1), buckets=BUCKETS)
    size = sum(len(key) + len(value) for key, value in messages) / ROWS
    best = float("inf")
    for _ in range(ROUNDS):
        began = time.process_time()
        rows = sum(getattr(element, "rows", 0) for element in listen([task], Records(messages), OPEN_PROTOCOL)) // 2
        best = min(best, time.process_time() - began)
        assert rows == ROWS
    print(f"{size:.0f} bytes a row: {best / ROWS * 1e6:.2f} us/row from message to chunk (best of {ROUNDS})")


if __name__ == "__main__":
    main()
