"""Microseconds of CPU per row from packed chunks to SQL text: five columns, images as a producer writes them, 16,384 rows per chunk.

python tests/bench/planner_bench.py [rows] [versions per key]
"""

import gc
import sys
from time import process_time

import msgspec

from applier.model.chunk import Chunk, pack
from applier.model.events import FoldedName
from applier.model.position import Stream, Ts
from applier.model.segment import SegmentWindow
from applier.planner import PlanTarget, TransactionSet, plan_bucket
from applier.planner.port import ColumnDescription, TableDescription
from applier.planner.rendering import GROUP_ROWS
from applier.sinks.mysql.dialect import MysqlDialect
from applier.sources.column_flags import shape_of
from applier.sources.open_protocol import OPEN_PROTOCOL, images_decoder

COLUMNS = (("id", 8, 11), ("name", 15, 64), ("amount", 246, 65), ("at", 12, 65), ("score", 5, 65))
SHAPE = shape_of("shop", "orders", tuple(COLUMNS))
TABLE = TableDescription(
    schema="shop",
    table="orders",
    columns=(
        ColumnDescription(name="id", sql_type="bigint(20)", nullable=False),
        ColumnDescription(name="name", sql_type="varchar(64)", nullable=True),
        ColumnDescription(name="amount", sql_type="decimal(20,2)", nullable=True),
        ColumnDescription(name="at", sql_type="datetime(6)", nullable=True),
        ColumnDescription(name="score", sql_type="double", nullable=True),
    ),
    unique_keys=(("id",),),
    primary_key=("id",),
)


def image(row: int) -> bytes:
    values = (row, f"customer number {row}", f"{row}.25", "2024-05-06 07:08:09.123456", row * 0.37)
    columns = [
        f'"{name}":{{"t":{kind},"f":{flags},"v":{msgspec.json.encode(value).decode()}}}'
        for (name, kind, flags), value in zip(COLUMNS, values, strict=True)
    ]
    return ("{" + ",".join(columns) + "}").encode()


def chunks(rows: int, versions: int) -> list[bytes]:
    packed = []
    for start in range(0, rows, 16384):
        span = range(start, min(start + 16384, rows))
        keys = [row // versions for row in span]
        chunk = Chunk(
            origins=[(Stream("topic", 0), SHAPE)],
            origin=[0] * len(span),
            commit_ts=[(row // 10 + 1) << 18 for row in span],
            kind=[1] * len(span),
            offset=list(span),
            index=[0] * len(span),
            key=[msgspec.msgpack.encode([key]) for key in keys],
            image=[image(key) for key in keys],
        )
        packed.append(pack(0, chunk).data)
    return packed


def main() -> None:
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 200_000
    versions = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    data = chunks(rows, versions)
    window = SegmentWindow(after_ts=Ts(0), upto_ts=Ts(2**63), again=False, settled_tables=frozenset())
    decode = images_decoder(SHAPE)
    target = PlanTarget({FoldedName("shop", "orders"): TABLE}, {}, MysqlDialect())
    images = [image(row) for row in range(20_000)]
    for _ in range(3):
        gc.collect()
        began = process_time()
        for start in range(0, len(images), GROUP_ROWS):
            decode(images[start : start + GROUP_ROWS])
        decoding = (process_time() - began) / len(images) * 1e6
        began = process_time()
        written = size = 0
        for item in plan_bucket(data, window, target, OPEN_PROTOCOL):
            if not isinstance(item, TransactionSet):
                written, size = written + item.rows, size + len(item.text)
        spent = process_time() - began
        print(f"{spent / rows * 1e6:.2f} us/row ({decoding:.2f} of it decodes its image); {written} of {rows} rows written, {size} bytes")


if __name__ == "__main__":
    main()
