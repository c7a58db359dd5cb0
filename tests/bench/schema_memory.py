"""Memory and time of what a process keeps of simple's schemas: 10,000 tables of 20 columns, two versions each.

A script: ``python tests/bench/schema_memory.py``. Memory is that of the process (resident), before and after.
"""

import sys
from pathlib import Path
from time import process_time
from uuid import uuid4

sys.path.insert(0, str(Path(__file__).parents[2]))

from applier.model.position import Offset, Stream
from applier.sources.port import Record
from applier.sources.simple import SimpleDecoder
from applier.sources.simple.message import read_message
from applier.sources.simple.schema_log import known_versions
from tests.builders import simple_wire
from tests.rig.simple_placing import KnownLog

TABLES, VERSIONS, COLUMNS = 10_000, 2, 20
KINDS = ("bigint", "varchar", "decimal", "timestamp", "int")
STREAM = Stream("bench", 0)


def resident_mib():
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024


def columns():
    return [(f"column_{number}", KINDS[number % len(KINDS)]) for number in range(COLUMNS - 1)]


def schema(table, version):
    described = [simple_wire.column("id", "bigint"), *[simple_wire.column(name, kind, nullable=True) for name, kind in columns()]]
    table_id, name = 100 + table, f"table_{table:05}"
    key = [simple_wire.primary("id")]
    return simple_wire.bootstrap(
        simple_wire.schema(*described, table=name, indexes=key, version=simple_wire.VERSION + version, table_id=table_id)
    )


def row(table, version):
    stamp = {"location": "UTC", "value": "2026-11-23 09:00:00"}
    values = {"id": "1"} | {name: stamp if kind == "timestamp" else "1" for name, kind in columns()}
    return simple_wire.row("INSERT", values, table=f"table_{table:05}", version=simple_wire.VERSION + version, tableID=100 + table)


def measured(label, work):
    memory, began = resident_mib(), process_time()
    count = work()
    seconds = process_time() - began
    print(f"{label}: {seconds:.1f} s of CPU, {seconds / count * 1e6:.0f} us each, {resident_mib() - memory:.0f} MiB more")


def main():
    pairs = [(table, version) for version in range(VERSIONS) for table in range(TABLES)]
    schemas, rows = [schema(*pair) for pair in pairs], [row(*pair) for pair in pairs]
    log = KnownLog({STREAM: schemas + rows}, log_name=uuid4().hex)
    known = known_versions(log)

    def learn():
        for value in schemas:
            known.learn(read_message(None, value))
        return len(known.versions)

    def place(of, first):
        records = [Record(Offset(first + number), None, value) for number, value in enumerate(rows)]
        return sum(len(placed.key) for placed in SimpleDecoder().in_log(of).placer(STREAM).place_all(records))

    measured(f"{len(schemas):,} schemas of {len(schemas[0]):,} bytes", learn)
    measured("a row of each", lambda: place(log, len(schemas)))
    cold = KnownLog(log.values, log_name=uuid4().hex)
    measured("a row of each, by a process that must search for their schemas", lambda: place(cold, len(schemas)))
    print(f"{sum(end - start for _, start, end in cold.read_offsets):,} records read in {len(cold.read_offsets)} pieces")


if __name__ == "__main__":
    main()
