"""Segments through a real Spark of this machine into a SQLite file, for what only Spark itself can show. Prints one line of JSON.

python -m tests.rig.spark_segment CASE DIRECTORY
"""

import json
import os
import re
import shutil
import signal
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pyspark import SparkContext

from applier.model.errors import ApplierError
from applier.model.events import FoldedName, TableName
from applier.model.position import Ts
from applier.model.range_report import RangeReport
from applier.model.segment import SegmentWindow
from applier.planner import STOP
from applier.planner.port import ColumnDescription
from applier.sinks.failpoint import VARIABLE
from applier.sinks.port import Sink
from applier.sinks.progress import ProgressCommit, WriteOutcome, WriteState
from applier.sinks.registry import open_sink
from applier.sinks.settings import SinkSettings
from applier.sources.open_protocol import OPEN_PROTOCOL
from applier.spark import batch as slices
from applier.spark.job import prepare_worker
from applier.spark.runner import SparkRunner
from applier.spark.session import start_context
from applier.tasks.handover import RangeContent
from applier.tasks.listen import ListenOutcome, RangeFailure
from applier.tasks.plan import PreparePlan, WritePlan
from applier.tasks.port import Prepared
from applier.tasks.write import not_written
from tests.rig.numbered_rows import FIRST_TS, NumberedRows
from tests.rig.process_tree import Role, processes
from tests.rig.spark_cluster import FROM_THE_CHECKOUT, SPARK

BUCKETS = 6
PARTITIONS = 3
CONF = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
PIECEMEAL = {
    "spark.reducer.maxSizeInFlight": "64k",
    "spark.reducer.maxReqsInFlight": "1",
    "spark.shuffle.io.maxRetries": "0",
    "spark.locality.wait": "0s",
    "spark.shuffle.readHostLocalDisk": "false",
}
"""The writer's input is fetched block by block, so that most of it is not in its JVM yet when the writer is stopped."""
MANY, WIDE = 20_000, 300
RELOADS = 5
SEGMENTS = 12
CYCLES = 9
WORK = SPARK / "work"
"""Where the workers of a ``local-cluster`` write, whatever they are told."""
DAMAGES = [
    ("cut", "listened", 1),
    ("deleted", "listened", 10_000),
    ("cut", "listened", 10_000),
    ("cut", "prepared", 10_000),
    ("deleted", "prepared", 10_000),
    ("cut", "divided", 1),
    ("deleted", "divided", 1),
]
FLIPS = [("flipped", "listened", 1), ("flipped", "listened", 10_000), ("flipped", "prepared", 10_000), ("flipped", "divided", 1)]
"""How files are damaged, after which job, and the rows that the plan names. Divided: two small segments are, between DDLs."""
EMPTY: Mapping[str, str] = MappingProxyType({})
NAME = re.compile(rb"\d{10}")
"""The text of a row in the files of a shuffle, as an image and in a statement."""
CATALOGUE = 1500
"""Tables of a large plan: more than 1 MiB."""


class Stage:
    """One Spark, one sink, one table ``shop.orders``."""

    def __init__(self, directory: Path, sink: Sink, reader: NumberedRows, conf: Mapping[str, str] = EMPTY) -> None:
        self.directory, self.sink, self.reader = directory, sink, reader
        local = {"spark.local.dir": str(directory / "spark")}
        self.context: SparkContext = start_context("test", _master(), CONF | local | dict(conf))
        self.runner = SparkRunner(self.context, lambda: reader, OPEN_PROTOCOL)
        with closing(sqlite3.connect(directory / "replica.db")) as connection:
            connection.execute('CREATE TABLE "shop.orders" (id INTEGER PRIMARY KEY, name TEXT)')

    def listen(self, partitions: int = PARTITIONS) -> list[ListenOutcome]:
        return list(self.runner.listen(self.reader.tasks(partitions, BUCKETS)))

    def plan(self, reports: list[ListenOutcome], *bounds: int, rows: int, tables: int = 0, splits: int = 1) -> PreparePlan:
        """Plan a segment of the rows of commit_ts between each two bounds; with the descriptions of so many further tables."""
        described = self.sink.describe([TableName("shop", "orders")])
        (orders,) = described.values()
        described |= {FoldedName("shop", f"t{n}"): replace(orders, table=f"t{n}", columns=_columns(n)) for n in range(tables)}
        return PreparePlan(
            windows=tuple(
                SegmentWindow(after_ts=Ts(after), upto_ts=Ts(upto), again=False, settled_tables=frozenset())
                for after, upto in pairwise(bounds)
            ),
            ranges={report.range: RangeContent.of(report) for report in reports if isinstance(report, RangeReport)},
            tables=described,
            rekeyed={},
            rows=rows,
            buckets=BUCKETS,
            bucket_splits=splits,
            dialect=self.sink.dialect,
            policy=STOP,
        )

    def _write_plan(self, window: SegmentWindow) -> WritePlan:
        progress = self.sink.load()
        assert progress is not None
        return WritePlan(writer=self.sink.writer, fence=progress.fence, commit=ProgressCommit(checkpoint_ts=window.upto_ts, positions={}))

    def apply(self, plan: PreparePlan) -> dict[str, Any]:
        return _told(self.runner.apply(plan, self._write_plan(plan.windows[0])))

    def write(self, plan: PreparePlan, prepared: Prepared, segment: int) -> dict[str, Any]:
        return _told(self.runner.write(prepared, segment, self._write_plan(plan.windows[segment])))

    def shuffle_files(self) -> list[Path]:
        """The files in which Spark keeps what is cached and what is prepared."""
        return sorted((self.directory / "spark").rglob("shuffle_*"))

    def rows(self) -> int:
        with closing(sqlite3.connect(self.directory / "replica.db")) as connection:
            return int(connection.execute('SELECT COUNT(*) FROM "shop.orders"').fetchone()[0])


def _master() -> str:
    return sys.argv[3] if len(sys.argv) > 3 else "local[2]"


def _columns(table: int) -> tuple[ColumnDescription, ...]:
    return tuple(ColumnDescription(name=f"c{number}", sql_type=f"varchar({table})", nullable=True) for number in range(20))


def _told(outcome: WriteOutcome) -> dict[str, Any]:
    return {"state": outcome.state, "rows": outcome.rows, "error": type(outcome.error).__name__, "text": str(outcome.error)}


def large_plans(directory: Path, sink: Sink) -> dict[str, Any]:
    """Apply many segments whose plans are large, small and shuffled ones in turn, and look at what Spark keeps."""
    stage = Stage(directory, sink, NumberedRows(SEGMENTS))
    reports = stage.listen()
    found = []
    for number in range(SEGMENTS):
        after = FIRST_TS - 1 + number
        found.append(stage.apply(stage.plan(reports, after, after + 1, rows=1 if number % 2 else 10_000, tables=CATALOGUE)))
    return {
        "states": sorted({one["state"] for one in found}),
        "rows": stage.rows(),
        "files": _files(stage),
        "kept_bytes": _kept_bytes(stage),
        "temporary": stage.context.parallelize([0], 1).map(_temporary_directory).collect(),
    }


def _temporary_directory(_: int) -> str:
    """Return where a task makes temporary files."""
    prepare_worker("write")
    return tempfile.gettempdir()


def _files(stage: Stage) -> int:
    """Count the files that PySpark has made for what it sends."""
    return sum(1 for path in Path(stage.context._temp_dir).rglob("*") if path.is_file())


def _kept_bytes(stage: Stage) -> int:
    """Return how much of Spark's storage memory is used once nothing is cached and its cleaner has seen what nobody refers to any more."""
    stage.runner.release_all()
    least = sys.maxsize
    for _ in range(10):
        stage.context._jvm.System.gc()
        time.sleep(0.2)
        most_and_left = stage.context._jsc.sc().getExecutorMemoryStatus().values().head()
        least = min(least, most_and_left._1() - most_and_left._2())
    return least


def stopped_writer(directory: Path, sink: Sink) -> dict[str, Any]:
    """Apply one large segment, whose writer stops before its first element; the test does something to its input, and lets it continue."""
    conf = dict(FROM_THE_CHECKOUT) | PIECEMEAL | {f"spark.executorEnv.{VARIABLE}": "write.before_input:1:stop"}
    stage = Stage(directory, sink, NumberedRows(MANY, WIDE), conf)
    stage.context.setLogLevel("WARN")  # Spark says of each failed fetch
    outcomes = []
    while not outcomes or (outcomes[-1]["state"] == WriteState.RELOAD and len(outcomes) < RELOADS):
        stage.runner.release_all()
        outcomes.append(stage.apply(stage.plan(stage.listen(), 0, FIRST_TS + MANY, rows=PARTITIONS * MANY)))
    return {"outcomes": outcomes, "rows": stage.rows()}


def poisonous_range(directory: Path, sink: Sink) -> dict[str, Any]:
    """Listen twice to ranges one of which kills its worker; note which were read how often."""
    log = directory / "reads"
    stage = Stage(directory, sink, NumberedRows(40, log=log, deadly=1))
    reported = []
    for _ in range(2):
        log.write_text("", encoding="utf-8")
        outcomes = stage.listen(6)
        reads = log.read_text(encoding="utf-8").split()
        failed = [outcome.error.facts for outcome in outcomes if isinstance(outcome, RangeFailure)]
        reported.append({"failed": failed, "reads": {partition: reads.count(partition) for partition in sorted(set(reads))}})
    return {
        "listened": reported,
        "cached": sorted(outcome.range.stream.partition for outcome in outcomes if outcome.range in stage.runner._batches),
    }


def failure_in_cache(directory: Path, sink: Sink) -> dict[str, Any]:
    """Lose a cached range while the source is silent: what its second listener caches is a failure. Then let the source answer again."""
    silent = directory / "silent"
    stage = Stage(directory, sink, NumberedRows(40, silent=silent))
    reports = stage.listen()
    _lose(stage)
    silent.touch()
    first = stage.apply(stage.plan(reports, 0, 100, rows=10_000))
    silent.unlink()
    stage.runner.release_all()
    second = stage.apply(stage.plan(stage.listen(), 0, 100, rows=10_000))
    return {"first": first, "second": second, "rows": stage.rows()}


def _lose(stage: Stage) -> None:
    """Delete the files of all batches, as the death of an executor does: Spark listens again where they are needed."""
    for shuffle in stage.runner._batches._left:
        shuffle.forget()


def many_cycles(directory: Path, sink: Sink) -> dict[str, Any]:
    """Listen, prepare and write again and again, with what fails in between; count what is left on Spark's disk."""
    stage = Stage(directory, sink, NumberedRows(2 * CYCLES))
    found = []
    for number in range(CYCLES):
        after = FIRST_TS - 1 + 2 * number
        reports = stage.listen()
        plan = stage.plan(reports, after, after + 1, after + 2, rows=10_000, splits=1 + number % 2)
        prepared = stage.runner.prepare(plan)
        assert isinstance(prepared, Prepared)
        found.extend(stage.write(plan, prepared, segment) for segment in range(2))
        stage.runner.drop(prepared)
        refused = stage.runner.prepare(replace(plan, tables={}))  # each of its segments fails
        assert isinstance(refused, Prepared)
        stage.runner.drop(refused)
        if number % 2:  # the other cycles' ranges are released as they are listened to again
            stage.runner.release([report.range for report in reports])
    cached = _left(stage)
    prepared = stage.runner.prepare(stage.plan(reports, 0, 1, rows=10_000)) if reports[0].range in stage.runner._batches else None
    stage.runner.release_all()
    return {
        "states": sorted({one["state"] for one in found}),
        "rows": stage.rows(),
        "prepared": prepared is not None,
        "cached_files": len(cached),
        "left_files": [path.name for path in _left(stage)],
    }


def _left(stage: Stage) -> list[Path]:
    """Return the files of shuffles once no more go: Spark deletes them in a thread of its own."""
    files, looks = stage.shuffle_files(), 0
    while looks < 3:
        time.sleep(0.2)
        before, files = files, stage.shuffle_files()
        looks = looks + 1 if files == before else 0
    return files


def damaged_files(directory: Path, sink: Sink) -> dict[str, Any]:
    """Cut or delete files of shuffles between the jobs of the lanes, and apply until it is done; note what each attempt has written."""
    stage = Stage(directory, sink, NumberedRows(2 * len(DAMAGES)), {"spark.shuffle.io.maxRetries": "0"})
    return {"damages": [_with_damage(stage, number, *damage) for number, damage in enumerate(DAMAGES)], "rows": stage.rows()}


def flipped_bits(directory: Path, sink: Sink) -> dict[str, Any]:
    """Change a byte of each element in the files of shuffles that Spark does not compress, and so does not check."""
    stage = Stage(directory, sink, NumberedRows(2 * len(FLIPS)), {"spark.shuffle.compress": "false"})
    flips = [_with_damage(stage, number, *damage) for number, damage in enumerate(FLIPS)]
    with closing(sqlite3.connect(directory / "replica.db")) as connection:
        names = [name for (name,) in connection.execute('SELECT name FROM "shop.orders" ORDER BY id')]
    return {"flips": flips, "rows": stage.rows(), "names": names}


def _with_damage(stage: Stage, number: int, how: str, when: str, rows: int) -> list[dict[str, Any]]:
    after = FIRST_TS - 1 + 2 * number
    attempts: list[dict[str, Any]] = []
    while not attempts or (attempts[-1]["state"] == WriteState.RELOAD and len(attempts) < RELOADS):
        stage.runner.release_all()
        _left(stage)
        reports, is_first = stage.listen(), not attempts
        cached = set(stage.shuffle_files())
        if is_first and when == "listened":
            _damage(how, cached)
        if when == "divided":
            attempts.append(_between_ddls(stage, reports, after, how if is_first else None))
        elif rows == 1:
            attempts.append(stage.apply(stage.plan(reports, after, after + 2, rows=rows)))
        else:
            plan = stage.plan(reports, after, after + 1, after + 2, rows=rows)
            prepared = stage.runner.prepare(plan)
            if is_first and when == "prepared":
                _damage(how, set(stage.shuffle_files()) - cached)
            attempts.append(_written(stage, plan, prepared))
        attempts[-1]["rows_now"] = stage.rows()
    return attempts


def _between_ddls(stage: Stage, reports: list[ListenOutcome], after: int, how: str | None) -> dict[str, Any]:
    """Apply two small segments from slices of what is cached, whose files are damaged between the two."""
    slices.COST_OF_A_JOB = -(10**9)  # type: ignore[misc] # divided however little it saves
    cached = set(stage.shuffle_files())
    outcome = stage.apply(replace(stage.plan(reports, after, after + 1, rows=1), later=(Ts(after + 2),)))
    if outcome["state"] != WriteState.COMMITTED:
        return outcome
    if how is not None:
        _damage(how, set(stage.shuffle_files()) - cached)
    return stage.apply(stage.plan(reports, after + 1, after + 2, rows=1))


def _written(stage: Stage, plan: PreparePlan, prepared: Prepared | ApplierError) -> dict[str, Any]:
    """Write two segments."""
    if not isinstance(prepared, Prepared):
        return _told(not_written(prepared))
    outcome = stage.write(plan, prepared, 0)
    return stage.write(plan, prepared, 1) if outcome["state"] == WriteState.COMMITTED else outcome


def _damage(how: str, files: set[Path]) -> None:
    assert files
    flips = 0
    for path in files:
        if how == "deleted":
            path.unlink()
        elif path.suffix == ".data" and how == "cut":
            os.truncate(path, path.stat().st_size // 2)
        elif path.suffix == ".data":
            data, changed = NAME.subn(lambda found: found[0][:-1] + bytes([found[0][-1] ^ 1]), path.read_bytes())
            path.write_bytes(data)
            flips += changed
    assert flips or how != "flipped", "Spark has compressed what it keeps"


def killed_executors(directory: Path, sink: Sink) -> dict[str, Any]:
    """Kill an executor between the jobs of the lanes: after listening, and after preparing."""
    stage = Stage(directory, sink, NumberedRows(8), FROM_THE_CHECKOUT)
    outcomes: list[dict[str, Any]] = []
    for number, rows in enumerate((1, 10_000)):
        after = FIRST_TS - 1 + 4 * number
        reports = stage.listen()
        _kill_an_executor()
        if rows == 1:
            outcomes.append(stage.apply(stage.plan(reports, after, after + 4, rows=rows)))
        else:
            plan = stage.plan(reports, after, after + 2, after + 4, rows=rows)
            prepared = stage.runner.prepare(plan)
            _kill_an_executor()
            outcomes.append(_written(stage, plan, prepared))
        outcomes[-1]["rows_now"] = stage.rows()
    application = stage.context.applicationId
    stage.runner.close()
    shutil.rmtree(WORK / application, ignore_errors=True)
    return {"outcomes": outcomes}


def _kill_an_executor() -> None:
    executor = next(iter(processes(os.getpid(), Role.EXECUTOR)))
    executor.signal(signal.SIGKILL)


CASES: dict[str, Callable[[Path, Sink], dict[str, Any]]] = {
    "large_plans": large_plans,
    "stopped_writer": stopped_writer,
    "poisonous_range": poisonous_range,
    "failure_in_cache": failure_in_cache,
    "many_cycles": many_cycles,
    "damaged_files": damaged_files,
    "flipped_bits": flipped_bits,
    "killed_executors": killed_executors,
}


def main() -> None:
    case, directory = CASES[sys.argv[1]], Path(sys.argv[2])
    with open_sink(SinkSettings(url=f"sqlite:///{directory}/replica.db")) as sink:
        sink.migrate()
        sink.acquire()
        sink.begin(Ts(0))
        print(json.dumps(case(directory, sink), default=str))


if __name__ == "__main__":
    main()
