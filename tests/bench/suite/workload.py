"""The workloads: what upstream does, how many partitions its topic has, and which rows the sink has at the end.

The sink's tables exist before a run (as after a load of the schema), so a topic holds rows and resolved events only: DDLs are measured
elsewhere. One millisecond of upstream is one transaction of 50 rows; a resolved event follows each 10,000 rows.
"""

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path

from applier.demo.simulator.dispatch import Dispatcher
from applier.demo.simulator.json_text import Flavour
from applier.demo.simulator.operation import Row, RowChange, UpstreamStep
from applier.demo.simulator.producer import LogRecord, ProducerOptions
from applier.demo.simulator.schema import Table
from applier.demo.simulator.wire_format import WireFormat
from applier.model.position import Ts
from applier.sources.ticdc.tso import LOGICAL_BITS
from tests.bench.suite.rows import MIXED, mixed, order, orders
from tests.rig.bulk_history import bulk_log

START_MS = 1_764_000_000_000
PER_TRANSACTION = 50
RESOLVED_EVERY = 200
"""Steps of upstream, so 10,000 rows."""
NO_RESOLVED = 1 << 60
SLOTS = 4096
TABLES_OF_D = tuple(orders(f"orders{number:03d}") for number in range(1000))

Changes = Callable[[int], Iterator[RowChange]]
FinalRows = Callable[[int], Iterable[tuple[Table, Row]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """``changes(rows)``: what upstream does, one row change after the other; ``final(rows)``: what the sink has then, ordered by table.

    ``slots``: as those of ``bulk_log``.
    """

    name: str
    title: str
    rows: int
    tables: tuple[Table, ...]
    changes: Changes
    final: FinalRows
    partitions: int = 4
    slots: Sequence[int] | None = None
    dispatcher: Dispatcher = Dispatcher.INDEX_VALUE
    is_one_transaction: bool = False
    form: WireFormat = WireFormat.OPEN_PROTOCOL

    def topic(self, rows: int) -> str:
        """Return the name of the topic for this many rows: it changes with the code that makes them."""
        return f"bench-{self.name}-{rows}-{self.partitions}-{_fingerprint()}"

    def log(self, rows: int) -> Iterator[LogRecord]:
        """Encode the changes as the records of the topic."""
        topic, dispatcher = self.topic(rows), self.dispatcher
        options = ProducerOptions(topic=topic, partitions=self.partitions, dispatcher=dispatcher, flavour=Flavour.TICDC, form=self.form)
        every = NO_RESOLVED if self.is_one_transaction else RESOLVED_EVERY
        return bulk_log(self._steps(rows), options, resolved_every=every, slots=self.slots)

    def _steps(self, rows: int) -> Iterator[UpstreamStep]:
        batch: list[RowChange] = []
        at_ms = START_MS
        for change in self.changes(rows):
            batch.append(change)
            if len(batch) == PER_TRANSACTION:
                yield UpstreamStep(Ts(at_ms << LOGICAL_BITS), tuple(batch), ())
                batch = []
                at_ms += not self.is_one_transaction
        if batch:
            yield UpstreamStep(Ts(at_ms << LOGICAL_BITS), tuple(batch), ())


def _fingerprint() -> str:
    """Return what stands for the content of topics: a hash of the code that makes the rows."""
    here = Path(__file__)
    return sha256(here.read_bytes() + (here.parent / "rows.py").read_bytes()).hexdigest()[:8]


def _inserts(table: Table, make: Callable[[int], Row], rows: int) -> Iterator[RowChange]:
    return (RowChange(table, None, make(number)) for number in range(1, rows + 1))


def _inserted(table: Table, make: Callable[[int], Row], rows: int) -> Iterator[tuple[Table, Row]]:
    return ((table, make(number)) for number in range(1, rows + 1))


def _spread_inserts(rows: int, run: int) -> Iterator[RowChange]:
    """Insert into the tables of D, ``run`` rows into one after the other, in no order that anybody could use."""
    return (RowChange(TABLES_OF_D[(number - 1) // run * 7919 % 1000], None, order(number)) for number in range(1, rows + 1))


def _spread(rows: int, run: int) -> Iterator[tuple[Table, Row]]:
    # 7919 and 1000 have no common divisor: the runs of one table are 1,000 apart.
    first = {number * 7919 % 1000: number for number in range(1000)}
    for place, table in enumerate(TABLES_OF_D):
        for begin in range(first[place] * run + 1, rows + 1, 1000 * run):
            yield from ((table, order(number)) for number in range(begin, min(begin + run, rows + 1)))


def _mixed_changes(rows: int, final: dict[int, int]) -> Iterator[RowChange]:
    """Of ten changes insert five rows, update four and delete one, of all that live; leave ``final``: row -> version.

    No row changes twice in one transaction: upstream writes its net effect.
    """
    rng, table = random.Random("bench B"), ORDERS
    live: list[int] = []
    used: set[int] = set()
    inserted = 0
    for change in range(rows):
        if change % PER_TRANSACTION == 0:
            used.clear()
        choice = rng.random()
        place = int(rng.random() * len(live))
        while choice >= 0.5 and len(live) > PER_TRANSACTION and live[place] in used:
            place = int(rng.random() * len(live))
        if choice < 0.5 or len(live) <= PER_TRANSACTION:
            inserted += 1
            live.append(inserted)
            used.add(inserted)
            final[inserted] = 0
            yield RowChange(table, None, order(inserted))
            continue
        number = live[place]
        used.add(number)
        version = final[number]
        if choice < 0.9:
            final[number] = version + 1
            yield RowChange(table, order(number, version), order(number, version + 1))
        else:
            live[place] = live[-1]
            live.pop()
            del final[number]
            yield RowChange(table, order(number, version), None)


def _mixed_final(rows: int) -> Iterator[tuple[Table, Row]]:
    final: dict[int, int] = {}
    for _ in _mixed_changes(rows, final):
        pass
    return ((ORDERS, order(number, final[number])) for number in sorted(final))


def _uneven() -> Sequence[int]:
    """Give partition n of 64 a weight of 1/(n+1): the first one gets a fifth of all rows, the last one a three-hundredth."""
    weights = [1 / (place + 1) for place in range(64)]
    counts = [max(1, round(SLOTS * weight / sum(weights))) for weight in weights]
    return tuple(place for place, count in enumerate(counts) for _ in range(count))


ORDERS = orders()
_A = {"tables": (ORDERS,), "changes": partial(_inserts, ORDERS, order), "final": partial(_inserted, ORDERS, order)}
_D = {"tables": TABLES_OF_D, "rows": 1_000_000}
WORKLOADS = {
    workload.name: workload
    for workload in (
        Workload(name="A", title="inserts of 200-byte rows, 4 partitions", rows=1_000_000, **_A),
        *(
            Workload(name=f"A-{form}", title=f"A as {form}", rows=1_000_000, form=form, **_A)
            for form in WireFormat
            if form is not WireFormat.OPEN_PROTOCOL
        ),
        Workload(
            name="B",
            title="50 % inserts, 40 % updates, 10 % deletes",
            rows=1_000_000,
            tables=(ORDERS,),
            changes=lambda rows: _mixed_changes(rows, {}),
            final=_mixed_final,
        ),
        Workload(
            name="C",
            title="inserts of 40 columns of mixed types",
            rows=200_000,
            tables=(MIXED,),
            changes=partial(_inserts, MIXED, mixed),
            final=partial(_inserted, MIXED, mixed),
        ),
        Workload(
            name="D",
            title="inserts into 1,000 tables, ten rows of a table after one another",
            dispatcher=Dispatcher.TABLE,
            changes=partial(_spread_inserts, run=10),
            final=partial(_spread, run=10),
            **_D,
        ),
        Workload(
            name="D-turns",
            title="inserts into 1,000 tables, each row into another",
            changes=partial(_spread_inserts, run=1),
            final=partial(_spread, run=1),
            **_D,
        ),
        Workload(name="F", title="one transaction", rows=1_000_000, is_one_transaction=True, **_A),
        Workload(name="G", title="64 partitions with uneven load", rows=1_000_000, partitions=64, slots=_uneven(), **_A),
        Workload(name="G-even", title="64 partitions with the same load", rows=1_000_000, partitions=64, **_A),
    )
}
"""The backlogs. E, the live feed, is in ``live``."""
