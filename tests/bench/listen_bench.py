"""From a Kafka message to its place in a chunk: microseconds per row of one core, reading from memory (no broker), by format.

The row has five columns, and 330 bytes of key and value in Open Protocol, 500 in canal-json; the figure includes placing, bucketing,
packing and the report. The formats are measured in turn, so that what else the machine does slows all of them.
"""

import time
from dataclasses import dataclass

from applier.model.position import Offset, Stream, Ts
from applier.model.range_report import RangeId
from applier.sources.canal_json import CANAL_JSON
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


TYPES = ['"id":"bigint"', '"customer":"varchar"', '"note":"varchar"', '"amount":"decimal"', '"made":"datetime"']


def canal_message(number):
    # Go prints a map from any of its members on: as many orders of a small table's types as it has columns.
    first = number % len(TYPES)
    types = ",".join(TYPES[first:] + TYPES[:first]).encode()
    return None, (
        b'{"id":0,"database":"shop","table":"orders","pkNames":["id"],"isDdl":false,"type":"INSERT","es":1747792062500,"ts":1747792063%03d,'
        b'"sql":"","sqlType":{"id":-5,"customer":12,"note":12,"amount":3,"made":93},"mysqlType":{%b},"old":null,'
        b'"data":[{"id":"%d","customer":"customer number %08d of the shop","note":"words %06d","amount":"%d.%02d",'
        b'"made":"2025-11-24 10:00:00"}],"_tidb":{"commitTs":%d}}'
        % (
            number % 1000,
            types,
            number,
            number % 100_000,
            number % 1000,
            number % 10_000,
            number % 100,
            458_173_202_432_000_000 + number // 10,
        )
    )


FORMATS = {"open-protocol": (message, OPEN_PROTOCOL), "canal-json": (canal_message, CANAL_JSON)}


def main():
    task = ListenTask(range=RangeId(STREAM, Offset(0), Offset(ROWS)), floor_ts=Ts(1), buckets=BUCKETS)
    messages = {name: [make(number) for number in range(ROWS)] for name, (make, _) in FORMATS.items()}
    best = dict.fromkeys(FORMATS, float("inf"))
    for _ in range(ROUNDS):
        for name, (_, decoder) in FORMATS.items():
            began = time.process_time()
            rows = sum(getattr(element, "rows", 0) for element in listen([task], Records(messages[name]), decoder)) // 2
            best[name] = min(best[name], time.process_time() - began)
            assert rows == ROWS
    for name, seconds in best.items():
        size = sum(len(key or b"") + len(value) for key, value in messages[name]) / ROWS
        print(f"{name}: {size:.0f} bytes a row: {seconds / ROWS * 1e6:.2f} us/row from message to chunk (best of {ROUNDS})")


if __name__ == "__main__":
    main()
