"""A few streams written and read by hand: ``write`` events, ``turn`` one cycle, compare the steps that come out."""

from applier.coordinator import Coordinator, Policy
from applier.coordinator.starting_point import StartingPoint
from applier.coordinator.step import ApplySegment, Evict, ExecuteDdl, NeedNames, SaveProgress
from applier.model.events import DdlEvent, FoldedName
from applier.model.position import Listing, PartitionExtent, Stream, StreamPosition
from tests.timeline.report import report_of

P0, P1, P2 = Stream("t", 0), Stream("t", 1), Stream("t", 2)
OTHER = Stream("other", 0)


def row(ts, table="a", key=1):
    return ("R", ts, table, "u", key, (None, ts, 1), None)


def resolved(ts):
    return ("S", ts)


def ddl(ts, query, table="a", schema="S"):
    return DdlEvent(commit_ts=ts, schema=schema, table=table, query=query, ddl_type=0)


def positions(**offsets):
    """positions(t0=5) is next_offset 5 for t/0."""
    return {Stream(name[:-1], int(name[-1])): StreamPosition(next_offset=offset, resolved_ts=0) for name, offset in offsets.items()}


def folded(*tables):
    return frozenset(FoldedName("s", table) for table in tables)


class Scenario:
    """A coordinator, and the streams that it reads."""

    def __init__(self, *streams, checkpoint=0, start=0, stored=None, settled=(), touched=frozenset(), policy=None, until=None):
        self.log = {stream: [] for stream in streams or (P0,)}
        self.earliest, self.names, self.reports = {}, frozenset(), {}
        self.coordinator = Coordinator(
            StartingPoint(
                checkpoint_ts=checkpoint,
                start_ts=start,
                positions=stored or {},
                settled=frozenset(settled),
                ddl_touched_at_checkpoint=touched,
            ),
            policy=policy or Policy(),
            until_ts=until,
        )

    def write(self, stream, *events):
        self.log.setdefault(stream, []).extend(events)
        return self

    def list(self):
        self.coordinator.list(Listing({s: PartitionExtent(self.earliest.get(s, 0), len(events)) for s, events in self.log.items()}))

    def read(self, *ranges):
        for range_id in ranges or self.coordinator.plan():
            events = self.log[range_id.stream][range_id.start : range_id.end]
            report, _ = report_of(range_id, events, self.coordinator.floor_ts)
            self.reports[range_id] = report
            self.coordinator.report(report)

    def turn(self):
        """List, read all that is planned, list again, and perform every step; return the steps in short."""
        self.list()
        self.read()
        self.list()
        return self.steps()

    def steps(self):
        out = []
        while (step := self.coordinator.next_step()) is not None:
            self.confirm(step)
            if not isinstance(step, Evict | NeedNames):
                out.append(step)
        return [brief(step) for step in out]

    def next_segment(self):
        """Return the next step, which must be a segment, unconfirmed."""
        step = self.coordinator.next_step()
        assert isinstance(step, ApplySegment)
        return step

    def confirm(self, step):
        match step:
            case ApplySegment():
                self.coordinator.applied(step)
            case ExecuteDdl():
                self.coordinator.executed(step)
            case Evict():
                self.coordinator.evicted(step)
            case SaveProgress():
                self.coordinator.saved(step)
            case NeedNames():
                self.asked = step.tables
                self.coordinator.answer_names(step, self.names)


def brief(step):
    """('apply', after, upto, rows at most), ('again', …) for one that takes the group at ``after`` along, ('ddl', ts, query)."""
    if isinstance(step, ExecuteDdl):
        return ("ddl", step.identity.ts, step.ddl.query)
    return ("again" if step.window.again else "apply", step.window.after_ts, step.window.upto_ts, step.segment.rows)
