"""The simulated replica with ``consistency = "row"``: rows ahead of W, by writers that a crash stops one by one.

After every commit each key of the sink is as upstream had it at the checkpoint, or, if it was written ahead, at the version that was
written last; nothing at or below an ``applied_ts`` is missing; and nothing is written over it.
"""

import itertools
from dataclasses import replace

from applier.coordinator.policy import RowPolicy
from applier.coordinator.step import ApplyRows, AskKeys, ForgetRows
from applier.model.position import Stream
from tests.timeline.memory_sink import Broken, Crash, final_versions
from tests.timeline.replica import Simulation
from tests.timeline.report import folded

WRITERS = 2


class RowsSimulation(Simulation):
    """``switch_rate``: how often a new run has the other consistency."""

    def __init__(self, world, model, seed, *, switch_rate=0.0, **options):
        super().__init__(world, model, seed, **options)
        self.switch_rate, self.written_ahead, self.reloads = switch_rate, 0, 0
        self.rows = RowPolicy(
            by_table=world.producer.dispatcher == "table",
            most_rows=self.rng.choice((1, 3, 100)),
            settle_span=0,
            # Taken for granted only where it is so: partitions may have been added before the first run.
            checks_beginning=world.producer.grows_at_beginning is not False or world.producer.has_grown,
        )
        self.policy = replace(self.policy, rows=self.rows)
        self.lagging = self.rng.choice([Stream(f"t{topic}", partition) for topic, partition in sorted(self.streams) or [(0, 0)]])

    def live(self):
        if self.rng.random() < self.switch_rate:
            self.policy = replace(self.policy, rows=None if self.policy.rows else self.rows)
        self.rows_of_run = set()
        super().live()

    def read(self):
        """One stream lags."""
        waiting = [range_id for range_id in self.reading if range_id.stream == self.lagging and self.rng.random() < 0.9]
        self.reading = [range_id for range_id in self.reading if range_id not in waiting]
        super().read()
        self.reading += waiting

    def perform(self, step):
        match step:
            case AskKeys():
                tables = self.sink.tables
                known = {table.name.table for table in step.tables} & set(tables)
                self.coordinator.answer_keys(step, {folded(name): None if tables[name][1] else ("id",) for name in known})
            case ApplyRows():
                self.apply_rows(step)
            case ForgetRows():
                self.forget_rows(step)
            case _:
                return super().perform(step)
        self.crash()
        return True

    def apply_rows(self, step):
        names = {table.name.fold() for table in step.tables}
        rows = [
            (range_id.stream, row, offset)
            for range_id in step.ranges
            for row, offset in self.cached[range_id]
            if folded(row[2]) in names and self.is_in_span(step, range_id.stream, row)
        ]
        self.check_rows(rows)
        self.meanwhile()
        final = final_versions([(row, offset) for _, row, offset in rows])
        refused = bool(names) and self.rng.random() < 0.03
        for writer in self.rng.sample(range(WRITERS), WRITERS - refused):
            self.sink.write_keys({place: version for place, version in final.items() if (ord(place[0]) + place[1]) % WRITERS == writer})
            self.crash()
        if refused:
            self.coordinator.rows_refused(step, self.rng.choice(sorted(names)))
            return
        self.written_ahead += sum(row[1] > self.coordinator.watermark for _, row, _ in rows)
        self.sink.applied_rows |= {row for _, row, _ in rows}
        self.rows_of_run |= {(stream, row) for stream, row, _ in rows}
        self.sink.ahead_tables = {
            name for name in self.sink.ahead_tables | set(step.ahead_tables) if step.ahead_tables.get(name, name in self.sink.ahead_tables)
        }
        self.sink.commit(self.sink.checkpoint_ts, step.positions)
        self.check(f"rows ahead {step.spans}")
        self.crash()
        self.coordinator.rows_written(step)

    def forget_rows(self, step):
        self.reloads += 1
        if self.reloads > 2 * len(self.streams):
            raise Broken("rows are forgotten again and again")
        self.sink.commit(self.sink.checkpoint_ts, step.positions)
        if any(position.applied_ts for position in self.sink.positions.values()):
            raise Broken("rows that were forgotten count as written")
        raise Crash

    @staticmethod
    def is_in_span(step, stream, row):
        after_ts, upto_ts = step.spans.get(stream, (0, 0))
        return after_ts < row[1] <= upto_ts

    def check_rows(self, rows):
        """Nothing is written beyond a DDL that has not run, or again."""
        for stream, row, _ in rows:
            if self.is_written(stream, row) or (stream, row) in self.rows_of_run:
                raise Broken(f"{row} of {stream} is written again")
            for ts in range(self.sink.start_ts + 1, row[1]):
                if missing := [ddl for ddl in self.world.history.ddls_at[ts] if ddl[:5] not in self.sink.effects]:
                    raise Broken(f"{row} overtakes {missing}")

    def applied_ts(self, stream):
        position = self.sink.positions.get(stream)
        return position.applied_ts if position else 0

    def is_written(self, stream, row):
        """Whether the progress says that a row is in the sink ahead of the checkpoint."""
        return self.sink.checkpoint_ts <= self.applied_ts(stream) >= row[1] and folded(row[2]) in self.sink.ahead_tables

    def is_in(self, step, row, stream):
        written = step.window.written
        if written and folded(row[2]) in written.tables and row[1] <= written.upto.get(stream, 0):
            return False
        if super().is_in(step, row, stream):
            is_written = (stream, row) in self.rows_of_run or self.is_written(stream, row)
            if self.policy.rows and is_written and not self.is_same_again(step, row):
                raise Broken(f"{row} of {stream} is written again by a segment")
            return True
        return False

    def is_same_again(self, step, row):
        """Whether a row comes again with its group at the checkpoint, and stands in the sink: a table may have come to be ahead since."""
        versions = [self.sink.latest.get(place, (row[1],))[0] for place in final_versions([(row, 0)])]
        return step.window.again and row[1] == step.window.after_ts and max(versions) <= row[1]

    def is_spent(self, stream, row):
        # Rows at exactly A too: a stream that is beyond has no latecomer there.
        at_checkpoint = row[1] == self.sink.checkpoint_ts < self.applied_ts(stream)
        is_written = (stream, row) in self.rows_of_run or self.is_written(stream, row)
        return super().is_spent(stream, row) or (self.policy.rows is not None and (at_checkpoint or is_written))

    def expected(self, what):
        self.check_promised(what)
        found = super().expected(what)
        for tables in found:
            self.lay_over(tables)
        return found

    def lay_over(self, tables):
        """Set each key that was written ahead to what upstream had at that version."""
        now = self.sink.checkpoint_ts
        ahead = {place: version for place, version in self.sink.latest.items() if version[0] > now}
        history = self.world.history
        rows = [(row, 0) for ts in range(now + 1, max(history.rows_at) + 1) for row in history.rows_at[ts]]
        for place, version in ahead.items():
            upto = [(row, offset) for row, offset in rows if row[1] <= version[0]]
            _, image = final_versions(upto)[place]
            if image is None:
                tables[place[0]][2].pop(place[1], None)
            else:
                tables[place[0]][2][place[1]] = image

    def check_promised(self, what):
        """Everything up to a stream's applied_ts that came before the promise behind it is in the sink; what comes later is a replay."""
        for (topic, partition), events in self.streams.items():
            stream = Stream(f"t{topic}", partition)
            before = itertools.takewhile(lambda event: event[0] != "S" or event[1] <= self.applied_ts(stream), events)  # noqa: B023
            for row in [event for event in before if event[0] == "R" and event[1] > self.sink.checkpoint_ts]:
                versions = [self.sink.latest.get(place, (0,)) for place in final_versions([(row, 0)])]
                if self.is_written(stream, row) and min(versions)[0] < row[1] and not self.comes_again(stream, row):
                    raise Broken(f"after {what} {row} of {stream} is missing, and applied_ts says it is not")

    def comes_again(self, home, row):
        """Whether a row is also in a partition that was added: until W has passed it there, an earlier version may stand in the sink."""
        streams = {Stream(f"t{topic}", partition): events for (topic, partition), events in self.streams.items()}
        return any(row in events and stream != home and not self.is_written(stream, row) for stream, events in streams.items())
