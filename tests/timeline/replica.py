"""The engine and the sink around a coordinator, in memory: reads the streams of a world in random ranges, crashes, and starts again.

After every commit the sink is compared with upstream at the checkpoint. Raises Broken where they differ.
"""

import random
from bisect import bisect_left
from collections import deque

import pytest

from applier.coordinator import Coordinator, Policy, read_ahead
from applier.coordinator import stream_state as stored_offset
from applier.coordinator.step import ApplySegment, Evict, ExecuteDdl, NeedNames, SaveProgress
from applier.model.events import FoldedName
from applier.model.position import Listing, PartitionExtent, Stream
from tests.timeline.memory_sink import Broken, Crash, MemorySink
from tests.timeline.report import SCHEMA, folded, operation, report_of, understandable


class Simulation:
    """One world, one seed of schedules. ``model`` is the module that made the world: it executes DDLs."""

    def __init__(self, world, model, seed, *, crash_rate=0.0, start_ts=0, coordinator=Coordinator, until_ts=None):
        self.world, self.model, self.rng = world, model, random.Random(seed)
        self.crash_rate, self.crashes, self.checked, self.new_coordinator = crash_rate, 0, 0, coordinator
        history = world.history
        self.streams = {s: [understandable(e, world) for e in events] for s, events in world.streams.items()}
        self.sink = MemorySink(model_copy(history.after(start_ts) if start_ts else history.initial), start_ts)
        self.until_ts, self.now = until_ts, 0
        self.pace = self.rng.choice((1, 1, 3, 8))
        rng = self.rng
        self.policy = Policy(
            segment_rows=rng.choice((1, 2, 5, 100)),
            range_records=rng.choice((1, 2, 3, 50)),
            first_plan_bytes=rng.choice((1, 10**4, 10**6)),
            plan_bytes=rng.choice((1, 10**3, 10**6)),
            cached_bytes=rng.choice((1, 30, 10**6)),
            merge_ranges=rng.choice((1, 4, 99)),
        )
        self.most_ahead = rng.choice((0, 1, 3, 1000))
        self.limits = {
            "FAN": rng.choice((2, 3, 8)),
            "LEAD": rng.choice((1, 40, 10**6)) / self.policy.plan_bytes,
            "WAITING": rng.choice((1, 40, 10**6)) / self.policy.plan_bytes,
            "MERGED": self.policy.plan_bytes / rng.choice((1000, 10**6)),
        }
        self.most_held = rng.choice((1, 3, 1000))
        self.states = []

    def run(self):
        with pytest.MonkeyPatch.context() as patched:
            for name, limit in self.limits.items():
                patched.setattr(read_ahead, name, limit)
            patched.setattr(stored_offset, "MAX_HELD", self.most_held)
            return self._run()

    def _run(self):
        while True:
            try:
                self.live()
                return self.finish()
            except Crash:
                self.crashes += 1

    def crash(self):
        if self.crash_rate and self.crashes < 12 and self.rng.random() < self.crash_rate:
            raise Crash

    def advance(self):
        if self.rng.random() < 0.7:
            self.now = min(len(self.world.log), self.now + self.rng.randint(0, 1 + self.pace))

    def listing(self):
        ends = {s: bisect_left(at, self.now) for s, at in self.world.at.items()}
        return Listing({Stream(f"t{topic}", p): PartitionExtent(0, end) for (topic, p), end in ends.items()})

    def ends(self):
        return {Stream(f"t{t}", p): len(events) for (t, p), events in self.world.streams.items()}

    def live(self):
        self.settle()
        self.reading, self.cached, self.ahead = [], {}, deque()
        self.coordinator = self.new_coordinator(self.sink.starting_point(), policy=self.policy, until_ts=self.until_ts)
        self.coordinator.list(self.listing())
        for _ in range(40 * len(self.world.log) + 400):
            self.reading += self.coordinator.plan()
            for _ in range(self.rng.randint(1, 4)):
                self.read()
            self.crash()
            self.advance()
            self.list()
            while self.perform(self.next_step()) and self.rng.random() < 0.8:
                if self.rng.random() < 0.3:
                    self.read()
            if self.rng.random() < 0.1:
                self.perform(self.coordinator.progress_step())
            if self.now == len(self.world.log) and self.coordinator.is_caught_up(self.ends()):
                return
        raise Broken("no progress")

    def list(self):
        self.coordinator.list(self.listing())
        # Void: a new partition has taken W back. An open step goes on.
        while self.ahead and self.ahead[-1].window.upto_ts > self.coordinator.watermark:
            self.ahead.pop()

    def meanwhile(self):
        """What an engine does while a step is open: it cuts segments ahead, plans, reads and lists."""
        for act in self.rng.sample((self.cut_ahead, self.plan, self.advance, self.read, self.list), self.rng.randint(0, 4)):
            act()

    def plan(self):
        self.reading += self.coordinator.plan()

    def cut_ahead(self):
        for segment in self.coordinator.segments_ahead(self.most_ahead):
            if self.ahead and segment.window.after_ts != self.ahead[-1].window.upto_ts:
                raise Broken("a segment ahead does not follow the one before it")
            if not segment.rows or segment.window.upto_ts > self.coordinator.watermark:
                raise Broken("a segment ahead is empty, or not closed")
            self.ahead.append(segment)

    def next_step(self):
        if self.rng.random() < 0.5:
            self.cut_ahead()
        return self.coordinator.next_step()

    def check_ahead(self, step):
        """A segment has the bounds that were handed out, and the same content, unless its group at A comes along."""
        if not self.ahead:
            return
        segment = self.ahead.popleft()
        if (segment.window.after_ts, segment.window.upto_ts) != (step.window.after_ts, step.window.upto_ts):
            raise Broken(f"the segment {segment} became {step}")
        if not step.window.again and segment != step.segment:
            raise Broken(f"the content of {segment} became {step}")

    def read(self):
        if not self.reading:
            return
        range_id = self.reading.pop(self.rng.randrange(len(self.reading)))
        if self.rng.random() < 0.05:
            self.coordinator.forget(range_id)
            return
        events, offsets = self.events_of(range_id)
        report, rows = report_of(range_id, events, self.coordinator.floor_ts, self.rng, offsets)
        self.cached[range_id] = rows
        times = self.coordinator.ddls_to_ask([report])
        self.coordinator.add_settled(key for key in self.sink.settled() if key.ts in times)
        self.coordinator.report(report)

    def events_of(self, range_id):
        """The events of a range, and their offsets, where not each has its own."""
        return self.streams[int(range_id.stream.topic[1:]), range_id.stream.partition][range_id.start : range_id.end], None

    def perform(self, step):
        match step:
            case None:
                return False
            case ApplySegment():
                self.apply(step)
            case ExecuteDdl():
                self.execute(step)
            case NeedNames():
                self.coordinator.answer_names(step, {name.fold() for name in step.tables if name.table in self.sink.tables})
            case Evict():
                if any(range_id in segment.ranges for segment in self.ahead for range_id in step.ranges):
                    raise Broken("a range was released that a segment ahead needs")
                released = [self.cached.pop(range_id) for range_id in step.ranges]
                kept = {place for rows in self.cached.values() for place in rows}
                streams = [range_id.stream for range_id in step.ranges]
                lost = [(s, place[0]) for s, rows in zip(streams, released, strict=True) for place in rows if place not in kept]
                if not all(self.is_spent(stream, row) for stream, row in lost):
                    raise Broken(f"a range was released that still matters: {[place for place in lost if not self.is_spent(*place)]}")
                self.coordinator.evicted(step)
            case SaveProgress():
                self.sink.commit(self.sink.checkpoint_ts, step.positions)
                self.coordinator.saved(step)
        self.crash()
        return True

    def apply(self, step):
        if step.window.after_ts != self.sink.checkpoint_ts:
            raise Broken("a segment does not begin at the checkpoint")
        if step.window.upto_ts > self.coordinator.watermark:
            raise Broken("a segment reaches beyond the watermark")
        if self.rng.random() < 0.1:
            self.coordinator.withdraw(step)
            step = self.coordinator.next_step()
        self.check_ahead(step)
        chosen = self.chosen(step)
        self.crash()
        self.meanwhile()
        self.sink.write(chosen)
        self.sink.commit(step.window.upto_ts, step.positions)
        self.check(f"segment ({step.window.after_ts}, {step.window.upto_ts}]")
        self.crash()
        self.coordinator.applied(step)

    def chosen(self, step):
        """The rows of the segment, as executors find them: in its ranges. What arrived after it was cut is a replay, or comes at A."""
        within = [
            (range_id, row, offset)
            for range_id, rows in self.cached.items()
            for row, offset in rows
            if self.is_in(step, row, range_id.stream)
        ]
        chosen = [(row, offset) for range_id, row, offset in within if range_id in step.segment.ranges]
        names, known = {table.name.fold() for table in step.segment.tables}, [row for row, _ in chosen]
        late = [row for range_id, row, _ in within if range_id not in step.segment.ranges and row not in known]
        if any(row[1] != step.window.upto_ts for row in late) or any(folded(row[2]) not in names for row in known):
            raise Broken("a segment does not know of a row in it")
        if len(chosen) > step.segment.rows:
            raise Broken("a segment holds more rows than it says")
        return chosen

    def is_spent(self, stream, row):
        del stream
        return row[1] < self.sink.checkpoint_ts

    def is_in(self, step, row, stream):
        del stream
        if step.window.again and row[1] == step.window.after_ts:
            return not {folded(row[2]), FoldedName(SCHEMA.casefold(), "")} & step.window.settled_tables
        return step.window.after_ts < row[1] <= step.window.upto_ts

    def execute(self, step):
        self.crash()
        op = operation(step.ddl)
        before = {name: self.version(name) for name in self.model.touched(op)}
        self.sink.ledger[step.identity] = ["intent", op, before]
        self.sink.commit(step.identity.ts, step.positions)
        self.crash()
        self.run_ddl(op)
        self.crash()
        self.finish_ddl(step.identity, step.positions_done)
        self.crash()
        self.meanwhile()
        self.coordinator.executed(step)

    def version(self, name):
        return self.sink.tables[name][0] if name in self.sink.tables else None

    def run_ddl(self, op):
        self.sink.effects[op[:5]] = self.sink.effects.get(op[:5], 0) + 1
        try:
            self.model.run_ddl(self.sink.tables, op)
        except (KeyError, ValueError) as error:
            raise Broken(f"DDL fails in the sink: {op}: {error!r}") from error

    def finish_ddl(self, key, positions):
        self.sink.ledger[key][0] = "done"
        self.sink.commit(self.sink.checkpoint_ts, positions)
        self.check(f"DDL {self.sink.ledger[key][1]}")

    def settle(self):
        for key, (state, op, before) in list(self.sink.ledger.items()):
            if state == "intent":
                if all(self.version(name) == version for name, version in before.items()):
                    self.run_ddl(op)
                self.finish_ddl(key, {})

    def check(self, what):
        """The sink equals: all rows <= A, all DDLs < A, and of the DDLs at A exactly those that the ledger calls done."""
        sink = self.sink
        if sink.checkpoint_ts < sink.top:
            raise Broken(f"the checkpoint stepped back after {what}")
        sink.top = sink.checkpoint_ts
        expected = model_copy(self.expected(what))
        if expected and sink.tables != expected[0]:
            raise Broken(f"after {what} at {sink.checkpoint_ts} the sink has {sink.tables}, upstream {expected[0]}")
        self.checked += bool(expected)
        if not self.states or self.states[-1] != (sink.checkpoint_ts, sink.tables):
            self.states.append((sink.checkpoint_ts, model_copy(sink.tables)))

    def expected(self, what):
        sink, history = self.sink, self.world.history
        ts = sink.checkpoint_ts
        if ts == sink.start_ts and ts:
            return [history.after(ts)]
        if any(row not in sink.applied_rows for row in history.rows_at[ts]):
            if not self.world.producer.weak:
                raise Broken(f"a row at {ts} is missing after {what}")
            return []
        tables = model_copy(history.expected(ts, 0))
        done = [op[:5] for _, op in sink.done_at(ts)]
        try:
            for op in history.ddls_at[ts]:
                if op[:5] in done:
                    self.model.run_ddl(tables, op)
        except (KeyError, ValueError) as error:
            raise Broken(f"DDLs of {ts} ran in a wrong order: {done}") from error
        return [tables]

    def finish(self):
        sink = self.sink
        end = max(self.world.final_w() if self.until_ts is None else min(self.world.final_w(), self.until_ts), sink.start_ts)
        if sink.checkpoint_ts != end:
            raise Broken(f"ended at {sink.checkpoint_ts}, could have come to {end}")
        for ts in range(sink.start_ts + 1, end):
            for op in self.world.history.ddls_at.get(ts, ()):
                if sink.effects.get(op[:5]) != 1:
                    raise Broken(f"{op} took effect {sink.effects.get(op[:5], 0)} times")
        self.check("the end")


def model_copy(tables):
    if isinstance(tables, list):
        return [model_copy(item) for item in tables]
    return {name: (version, unique, dict(rows)) for name, (version, unique, rows) in tables.items()}
