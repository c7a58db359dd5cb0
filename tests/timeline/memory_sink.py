"""A sink in memory: tables, progress and ledger of the simulated replica."""

from applier.coordinator.starting_point import StartingPoint
from tests.timeline.report import DELETE, UPSERT


class Broken(Exception):
    pass


class Crash(Exception):
    pass


class MemorySink:
    """The durable side, and what the oracle remembers of it."""

    def __init__(self, tables, start_ts):
        self.tables, self.checkpoint_ts, self.start_ts = tables, start_ts, start_ts
        self.positions, self.ledger = {}, {}
        self.effects, self.applied_rows, self.top = {}, set(), start_ts
        self.ahead_tables, self.latest = set(), {}
        """``latest``: of each key the version that was written last."""

    def done_at(self, ts):
        return [(key, op) for key, (state, op, _) in self.ledger.items() if state == "done" and key.ts == ts]

    def settled(self):
        return [key for key, (state, _, _) in self.ledger.items() if state == "done"]

    def starting_point(self):
        touched = [key.touches for key, _ in self.done_at(self.checkpoint_ts)]
        return StartingPoint(
            checkpoint_ts=self.checkpoint_ts,
            start_ts=self.start_ts,
            positions=dict(self.positions),
            settled=frozenset(key for key in self.settled() if key.ts >= self.checkpoint_ts),
            ddl_touched_at_checkpoint=None if None in touched else frozenset().union(*touched),
            ahead_tables=frozenset(self.ahead_tables),
        )

    def commit(self, ts, positions):
        for stream, position in positions.items():
            if position.next_offset < self.positions.get(stream, position).next_offset:
                raise Broken(f"stored offset of {stream} went back")
        self.checkpoint_ts = ts
        self.positions.update(positions)

    def write(self, rows):
        """All deletes in any order, then all REPLACEs in any order: the last event per key by (ts, delete first, offset)."""
        self.write_keys(final_versions(rows))
        self.applied_rows |= {row for row, _ in rows}

    def write_keys(self, final):
        for name, key in final:
            if name not in self.tables:
                raise Broken(f"row for {name}, which the sink does not have")
            if final[name, key][1] is None:
                self.tables[name][2].pop(key, None)
        for (name, key), (_, image) in final.items():
            if image is not None:
                self._replace(name, key, image)
        self.latest.update((place, version) for place, (version, _) in final.items())

    def _replace(self, name, key, image):
        version, unique, data = self.tables[name]
        if image[2] != version:
            raise Broken(f"row of {name} on the wrong side of a DDL: {image}, table has version {version}")
        for other in [k for k, value in data.items() if k != key and unique and value[0] == image[0]]:
            del data[other]
        data[key] = image


def final_versions(rows):
    """The last version of each key: {(table, key): ((ts, delete or upsert, offset), image)}."""
    final = {}
    for (_, ts, name, kind, key, image, old), offset in rows:
        images = (
            [(old, DELETE, None), (key, UPSERT, image)] if kind == "m" else [(key, *((DELETE, None) if kind == "d" else (UPSERT, image)))]
        )
        for at, order, value in images:
            final[name, at] = max(final.get((name, at), ((0, 0, 0), None)), ((ts, order, offset), value), key=lambda x: x[0])
    return final
