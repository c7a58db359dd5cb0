"""A simulated binlog and the replica that follows it: places as timestamps, whole transactions, cuts, rotation, servers that take over.

Each transaction and each DDL of the history is a group. Its rows have the place of its end as commit_ts, a DDL that of its end less one.
A server that takes over has the groups that are not executed at other places, of the next generation.
"""

from bisect import bisect_left, bisect_right
from types import SimpleNamespace

from applier.coordinator import Coordinator
from applier.model.position import Cut, Listing, PartitionExtent, Stream
from tests.timeline import upstream
from tests.timeline.memory_sink import Broken, MemorySink
from tests.timeline.replica import Simulation, model_copy

STREAM = Stream("binlog", 0)
FILE, GENERATION = 1 << 32, 1 << 56
HEADER = 4, 256


class BinlogWorld:
    """``groups``: their events without places; ``begins`` and ``ends`` their places on the server of now; ``states[n]`` after n of them."""

    def __init__(self, rng, size):
        self.rng, self.generation, self.history = rng, 0, upstream.History(rng, size)
        history = self.history
        self.groups, self.states = [], [model_copy(history.initial)]
        for ts in range(1, size + 1):
            if history.rows_at[ts]:
                self._add(history.rows_at[ts], history.expected(ts, 0))
            for number, ddl in enumerate(history.ddls_at[ts], 1):
                self._add([ddl], history.expected(ts, number))
        self.begins, self.ends, self.boundaries = [], [], []
        self.place_from(0)
        self.log, self.streams, self.producer = self.groups, {}, SimpleNamespace(topics=1)

    def _add(self, events, state):
        self.groups.append(events)
        self.states.append(model_copy(state))

    def place_from(self, executed):
        """Number the groups from ``executed`` on anew, as another server has them; return where they begin."""
        rng, file = self.rng, self.rng.randint(1, 3)
        del self.begins[executed:], self.ends[executed:]
        at = self.start = self.generation * GENERATION + file * FILE + HEADER[0]
        # What a server has before it took over is never read here: only the places that may be known of it count.
        self.boundaries = [place for place in self.boundaries if self.ends[:executed] and place <= self.ends[executed - 1]] + [at]
        for _ in self.groups[executed:]:
            if rng.random() < 0.2:
                file += 1
                self.boundaries += [self.generation * GENERATION + file * FILE + header for header in HEADER]
                at = self.boundaries[-1]
            self.begins.append(at)
            at += rng.randint(2, 900)
            self.ends.append(at)
            self.boundaries.append(at)
        self.boundaries = sorted(set(self.boundaries))
        return self.start

    def executed_at(self, ts):
        return bisect_right(self.ends, ts)

    def events_of(self, range_id):
        """Rows and DDLs of the groups that begin in a range, and its promise. Between two servers there is nothing."""
        events, offsets = [], []
        first, last = bisect_left(self.begins, range_id.start), bisect_left(self.begins, range_id.end)
        if range_id.start // GENERATION != range_id.end // GENERATION:
            first = last
        for number in range(first, last):
            if self.ends[number] > range_id.end:
                raise Broken(f"the range {range_id} ends inside of a transaction")
            for event in self.groups[number]:
                events.append((event[0], self.ends[number] - (event[0] == "D"), *event[2:]))
                offsets.append(self.begins[number])
        before = [place for place in self.boundaries if range_id.start <= place < range_id.end]
        return [*events, ("S", range_id.end)], [*offsets, before[-1] if before else range_id.start]


class BinlogSink(MemorySink):
    """Stores with the checkpoint how many groups are executed: the source's state."""

    world = None
    executed = 0

    def commit(self, ts, positions):
        super().commit(ts, positions)
        # A DDL with an intent is the ledger's: it is executed, whatever happens.
        self.executed = self.world.executed_at(ts + any(key.ts == ts for key in self.ledger))


class BinlogSimulation(Simulation):
    """``failover_rate``: how often another server answers a new run. ``world`` is a BinlogWorld."""

    def __init__(self, world, seed, *, failover_rate=0.0, coordinator=Coordinator, **options):
        super().__init__(world, upstream, seed, coordinator=coordinator, **options)
        self.failover_rate, self.failovers, self.scanned, self.effects = failover_rate, 0, 0, {}
        self.sink = BinlogSink(model_copy(world.history.initial), world.start)
        self.sink.checkpoint_ts = self.sink.top = world.start
        self.sink.world, self.sink.executed = world, 0

    def live(self):
        self.settle()
        if self.failovers < 3 and self.rng.random() < self.failover_rate and self.sink.executed < len(self.world.groups):
            self.failovers += 1
            self.world.generation += 1
            self.world.place_from(self.sink.executed)
        # The scan begins anew, at the place of the state.
        self.scanned = self.sink.executed
        super().live()

    def listing(self):
        """The scan has come as far as it has; the server's own end is known too."""
        world, rng = self.world, self.rng
        self.now = max(self.now, self.sink.executed)
        self.scanned = rng.randint(self.scanned, self.now) if rng.random() < 0.8 else self.now
        first = self.sink.positions[STREAM].next_offset if STREAM in self.sink.positions else self.sink.start_ts
        begin = max(world.start, world.ends[self.sink.executed - 1] if self.sink.executed else 0)
        last = max(begin, world.ends[self.scanned - 1] if self.scanned else 0)
        # The last boundary is always one, also where nothing has come since the beginning.
        known = [place for place in world.boundaries if begin <= place <= last]
        cuts = [Cut(place, rng.choice((1, 900))) for place in known if place == last or rng.random() < 0.6]
        if first // GENERATION != begin // GENERATION:
            # On the server before, nothing follows what is executed: no range goes on from there.
            cuts = [Cut(begin, 0), *(cut for cut in cuts if cut.offset > begin)]
        end = max(last, world.ends[self.now - 1] if self.now else 0)
        return Listing({STREAM: PartitionExtent(min(first, world.start), end, tuple(cuts))})

    def ends(self):
        return {STREAM: self.world.ends[-1] if self.world.ends else 0}

    def events_of(self, range_id):
        return self.world.events_of(range_id)

    def run_ddl(self, op):
        number = bisect_right(self.world.ends, op[1])
        self.effects[number] = self.effects.get(number, 0) + 1
        super().run_ddl(op)

    def expected(self, what):
        del what
        sink, world = self.sink, self.world
        number = world.executed_at(sink.checkpoint_ts)
        # A DDL's place is one before the end of its group.
        return [world.states[number + any(key.ts == world.ends[number] - 1 for key, _ in sink.done_at(sink.checkpoint_ts))]]

    def finish(self):
        sink, world = self.sink, self.world
        last = max(world.start, world.ends[-1] if world.ends else 0)
        end = last if self.until_ts is None else max(min(last, self.until_ts), sink.start_ts)
        if sink.checkpoint_ts != end:
            raise Broken(f"ended at {sink.checkpoint_ts}, could have come to {end}")
        done = [number for number, events in enumerate(world.groups) if events[0][0] == "D" and world.ends[number] <= end]
        if self.effects.keys() < set(done) or any(count != 1 for count in self.effects.values()):
            raise Broken(f"of the DDLs {done} these took effect: {self.effects}")
        self.check("the end")
