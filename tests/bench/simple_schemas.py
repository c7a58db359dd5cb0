"""Where the schemas of simple's rows lie, and what three ways to find them cost. A script: ``python tests/bench/simple_schemas.py``.

A model of the producers' rules (canal_json_and_simple.md 6): each sender knows tables by their rows, sends a schema before the first row of
a table, again each 120 s or 10,000 rows at a tick of 5 s, forgets a table after 30 minutes, and broadcasts DDLs; some DDLs are held back by
an event filter. Knows nothing of the decoder, except for the sizes by which it searches. Three ways:

- ``store``: reports carry schemas to the driver, which keeps them and hands them to the next jobs. A row whose schema no earlier job has
  reported, and its own range does not have before it, must be placed without its key, or its range be read twice.
- ``late``: nothing is known when a row is placed: all rows of a table go to one bucket, and the key is read from each image alone.
- ``log``: the reading process searches the log around the row, in pieces, and remembers what it has found.
"""

import random
import sys
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from pathlib import Path
from statistics import median
from time import process_time

sys.path.insert(0, str(Path(__file__).parents[2]))

from applier.model.position import Offset, Stream
from applier.sources.port import Record
from applier.sources.simple import SimpleDecoder
from applier.sources.simple.schema_log import FIRST_PIECE, GROWTH, HORIZON_MS
from tests.builders import simple_wire
from tests.rig.simple_placing import KnownLog

HOURS_S, PARTITIONS, SENDERS, PROCESSES = 2 * 3600, 8, 2, 4
RATES = [30.0] * 2 + [1.0] * 18 + [1 / 600] * 180
"""Rows a second of each table: few hot ones, many that are nearly silent."""
SCHEMA, ROW = 0, 1


def produced(seed, *, filtered=0.2, bootstraps=True):
    """Return for each partition its messages in order: (time, kind, table, version)."""
    rng = random.Random(seed)
    rows = [(t, table) for table, rate in enumerate(RATES) for t in arrivals(rng, rate)]
    ddls = [(rng.uniform(0, HOURS_S), table, rng.random() < filtered) for table in range(len(RATES)) if rng.random() < 0.3]
    events = sorted([(t, 1, table, False) for t, table in rows] + [(t, 0, table, hidden) for t, table, hidden in ddls])
    partitions, versions = [[] for _ in range(PARTITIONS)], Counter()
    known = [{} for _ in range(SENDERS)]
    tick = 0.0
    for t, is_row, table, hidden in events:
        while tick <= t:
            for sender in known:
                broadcast_due(sender, partitions, tick) if bootstraps else None
            tick += 5
        if not is_row:
            versions[table] += 1
            if not hidden:
                broadcast(partitions, (t, SCHEMA, table, versions[table]))
            continue
        sender, version = known[table % SENDERS], versions[table]
        if table not in sender and bootstraps:
            broadcast(partitions, (t, SCHEMA, table, version))
        sent_s, count = sender.get(table, (t, 0, 0, 0))[:2]
        sender[table] = (sent_s, count + 1, t, version)
        partitions[rng.randrange(PARTITIONS)].append((t, ROW, table, version))
    return partitions


def arrivals(rng, rate):
    t = rng.expovariate(rate)
    while t < HOURS_S:
        yield t
        t += rng.expovariate(rate)


def broadcast(partitions, message):
    for partition in partitions:
        partition.append(message)


def broadcast_due(sender, partitions, tick):
    for table, (sent_s, count, last_s, version) in list(sender.items()):
        if tick - last_s > 1800:
            del sender[table]
        elif tick - sent_s >= 120 or count >= 10_000:
            sender[table] = (tick, 0, last_s, version)
            broadcast(partitions, (tick, SCHEMA, table, version))


def by_store(partitions, starts):
    """Count rows without a schema in their range or an earlier job: a cold store, then jobs of one second; and backlogs of 16 ranges."""
    live = rows = backlog = cut = 0
    for start_s in starts:
        known = set()
        for second in range(600):
            ranges = [unknown(section(one, start_s + second, start_s + second + 1), known) for one in partitions]
            live, rows = live + sum(lacking for lacking, _, _ in ranges), rows + sum(count for _, count, _ in ranges)
            known = known.union(*(own for _, _, own in ranges))
        parts = [(one, start_s + part * 37.5) for one in partitions for part in range(16)]
        lacking = [unknown(section(one, first_s, first_s + 37.5), frozenset())[0] for one, first_s in parts]
        backlog, cut = backlog + sum(lacking), cut + sum(map(bool, lacking))
    share = cut / (len(starts) * 16 * PARTITIONS)
    print(
        f"store: {live / rows:.0%} of the rows of live jobs after a cold start, {backlog / rows:.0%} of a backlog in 16 ranges a partition,"
    )
    print(f"       have their schema neither in their range nor in the store; {share:.0%} of such ranges have such rows")


def unknown(messages, known):
    """Return how many rows of one range have no schema yet, how many it has, and the versions that it tells."""
    own, lacking, rows = set(), 0, 0
    for _, kind, *version in messages:
        if kind == SCHEMA:
            own.add(tuple(version))
        else:
            rows += 1
            lacking += tuple(version) not in own and tuple(version) not in known
    return lacking, rows, own


def section(partition, first_s, end_s):
    return partition[bisect_left(partition, (first_s,)) : bisect_left(partition, (end_s,))]


def by_late(partitions):
    """Show how rows divide among buckets, by key and by table."""
    tables = Counter(table for partition in partitions for _, kind, table, _ in partition if kind == ROW)
    print(f"late:  one bucket holds {max(tables.values()) / tables.total():.0%} of the rows; by their keys the fullest of 8 holds 13%")
    table = simple_wire.schema()
    values = [simple_wire.bootstrap(table), *[simple_wire.row("INSERT", simple_wire.order(n, "x" * 40)) for n in range(4_000)]]
    decoder = SimpleDecoder().in_log(KnownLog({}))
    placer = decoder.placer(Stream("bench", 0))
    records = [Record(Offset(offset), None, value) for offset, value in enumerate(values)]
    times = defaultdict(list)
    for _ in range(5):
        began = process_time()
        placed = list(placer.place_all(records))
        times["place"].append(process_time() - began)
        one = decoder.image_decoder(placed[-1].shapes[0])
        began = process_time()
        for rows in placed:
            for image in rows.image:
                one(image)
        times["alone"].append(process_time() - began)
    place, alone = (min(times[name]) / 4_000 * 1e6 for name in ("place", "alone"))
    print(f"       reading the key of each row from its image alone costs {alone:.1f} us more, of rows that take {place:.1f} us to place")


def by_log(partitions, starts, label="log:  "):
    """Count what processes read beside their ranges in the ten minutes after a cold start, by the pieces of the decoder."""
    read, searches, missing, rows = [], 0, 0, 0
    for start_s in starts:
        for process in range(PROCESSES):
            known, first, extra = set(), {}, 0
            own = [number for number in range(PARTITIONS) if number % PROCESSES == process]
            merged = sorted((message, number) for number in own for message in section(partitions[number], start_s, start_s + 600))
            for (t, kind, *version), number in merged:
                if kind == SCHEMA:
                    known.add(tuple(version))
                    continue
                rows += 1
                if tuple(version) in known:
                    continue
                searches += 1
                found, count = search(
                    partitions[number], first.setdefault(number, bisect_left(partitions[number], (start_s,))), t, known, version
                )
                first[number], extra = found, extra + count
                if tuple(version) not in known:
                    ahead = partitions[number][bisect_right(partitions[number], (t, ROW)) :]
                    place = next((i for i, one in enumerate(ahead) if one[1] == SCHEMA and list(one[2:]) == version), None)
                    waits_s = None if place is None else ahead[place][0] - t
                    missing += waits_s is None or waits_s > 130
                    known.add(tuple(version))
            read.append(extra)
    each_s = sum(map(len, partitions)) / HOURS_S
    print(f"{label} {searches} searches for {rows:,} rows of {len(starts)} cold starts of {PROCESSES} processes; a process reads")
    print(f"       {median(read):,.0f} records besides, at most {max(read):,} ({max(read) / each_s:.0f} s of the whole log)")
    print(f"       {missing} schemas came too late or never")


def search(partition, upto, row_s, known, wanted):
    """Read backwards in pieces; return where it ended, and how many records it read."""
    size, end = FIRST_PIECE, upto
    while end > 0:
        first = max(0, end - size)
        known.update(tuple(one[2:]) for one in partition[first:end] if one[1] == SCHEMA)
        end, size = first, size * GROWTH
        if tuple(wanted) in known or partition[first][0] < row_s - HORIZON_MS / 1000:
            break
    return end, upto - end


def main():
    rng = random.Random(1)
    starts = [rng.uniform(HOURS_S / 2, HOURS_S - 900) for _ in range(10)]
    partitions = produced(1)
    messages = sum(map(len, partitions))
    schemas = sum(one[1] == SCHEMA for partition in partitions for one in partition)
    print(f"{messages:,} messages in {PARTITIONS} partitions, {schemas / messages:.1%} of them schemas; {len(RATES)} tables")
    by_store(partitions, starts)
    by_late(partitions)
    by_log(partitions, starts)
    by_log(produced(1, filtered=0), starts, "log, no DDL is held back:  ")
    by_log(produced(1, bootstraps=False), starts, "log, no bootstraps:  ")


if __name__ == "__main__":
    main()
