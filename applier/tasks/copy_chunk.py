"""COPY: chunks of upstream's tables, each read in a view of its own and written in one transaction, with its row of the bookkeeping.

One session of upstream serves the chunks of a task, one after the other. A chunk that fails ends the task: the driver gives the others out
again, where another attempt can help.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from applier.copy.planner import PlannedTask
from applier.copy.port import ChunkDone, ChunkReader, ChunkWriter, CopyFence
from applier.model.errors import ApplierError
from applier.model.events import TableName
from applier.sinks.failpoint import reach


class CopyTask(NamedTuple):
    """A chunk, and the table of the sink that takes it."""

    planned: PlannedTask
    target: TableName


@dataclass(frozen=True, slots=True)
class CopyWork:
    """What every task of a copy needs. Picklable."""

    fence: CopyFence
    reader: ChunkReader
    writer: ChunkWriter


class ChunkOutcome(NamedTuple):
    """How a chunk ended: in the sink, or with the error that has ended its task."""

    table: TableName
    number: int
    done: ChunkDone | None
    error: ApplierError | None = None


def copy_chunks(work: CopyWork, tasks: Sequence[CopyTask]) -> Iterator[ChunkOutcome]:
    """Copy chunks in turn; yield the outcome of each. The first error ends it: what was not reached is not reported."""
    at = 0
    try:
        with work.reader.open() as session:
            for at, ((table, chunk), target) in enumerate(tasks):  # noqa: B007 - the error's chunk
                with session.read(table, chunk) as rows:
                    done = work.writer.write(work.fence, table, target, chunk, rows.blocks(), rows.finish)
                reach("copy.after_chunk")
                yield ChunkOutcome(table.name, chunk.number, done)
    except ApplierError as error:
        table, chunk = tasks[at].planned
        yield ChunkOutcome(table.name, chunk.number, None, error)
