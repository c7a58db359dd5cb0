"""Small random upstream histories, and logs that a producer may legally write of them: the applier's side is in replica.py.

An event is a tuple: ("R", ts, table, kind, key, image, old_key) with kind d (delete), u (upsert) or m (update that changed its key);
("D", ts, name, op, args, text) with name the event's own table (RENAME: the new one) and text the spelling; ("S", ts) resolved.
image = (secondary unique value or None, value, version of the table when it was written).
"""

import random
from bisect import bisect_left

NAMES = ("a", "b", "c", "d", "e")


def touched(ddl):
    _, _, name, op, args, _ = ddl
    if op == "drop_schema":
        return frozenset(NAMES)
    return frozenset(args[:2]) if op in ("rename", "exchange") else frozenset((name,))


def run_ddl(tables, ddl):
    """Execute on {name: (version, has_unique, rows)}; KeyError or ValueError where a database would fail."""
    _, _, name, op, args, _ = ddl
    if op == "create":
        _free(tables, name)
        tables[name] = (args[0], args[1], {})
    elif op == "drop":
        del tables[name]
    elif op == "drop_schema":
        tables.clear()
    elif op == "rename":
        _free(tables, args[1])
        tables[args[1]] = tables.pop(args[0])
    elif op == "exchange":
        (_, unique_a, rows_a), (_, unique_b, rows_b) = tables[args[0]], tables[args[1]]
        tables[args[0]], tables[args[1]] = (args[2], unique_a, rows_b), (args[3], unique_b, rows_a)
    else:
        _, unique, rows = tables[name]
        tables[name] = (args[0], unique, {} if op == "truncate" else rows)


def _free(tables, name):
    if name in tables:
        raise ValueError(name)


def copy_tables(tables):
    return {name: (version, unique, dict(rows)) for name, (version, unique, rows) in tables.items()}


class History:
    """What happened upstream: for each ts rows, then DDLs."""

    def __init__(self, rng, size, *, raw=True, uniques=0.6, ddls=0.4, first_ts=1):
        self.rng, self.number, self.raw = rng, 0, raw
        tables = {name: (self._next(), rng.random() < uniques, {}) for name in NAMES[: rng.randint(1, 3)]}
        self.initial = copy_tables(tables)
        self.states = {0: [copy_tables(tables)]}
        self.rows_at, self.ddls_at = {0: frozenset()}, {0: []}
        self.max_ts = 0
        for ts in range(1, size + 1):
            rows = self._rows(ts, tables) if ts >= first_ts and rng.random() < 0.75 else []
            states = [copy_tables(tables)]
            ddls_at = self._ddls(ts, tables) if rng.random() < ddls else []
            tables = copy_tables(tables)
            for ddl in ddls_at:
                run_ddl(tables, ddl)
                states.append(copy_tables(tables))
            self.rows_at[ts], self.ddls_at[ts], self.states[ts], self.max_ts = rows, ddls_at, states, ts
        for ts in range(size + 1, size + 4):
            self.rows_at[ts], self.ddls_at[ts], self.states[ts] = [], [], [copy_tables(tables)]
        self.items = [event for ts in range(1, size + 1) for event in (*self.rows_at[ts], *self.ddls_at[ts])]

    def _next(self):
        self.number += 1
        return self.number

    def _rows(self, ts, tables):
        """Change some keys of some tables; deletes come before upserts; secondary unique values may swap owners."""
        rng, out = self.rng, []
        for name in rng.sample(sorted(tables), rng.randint(0, len(tables))):
            version, unique, rows = tables[name]
            keys = rng.sample((1, 2, 3), rng.randint(1, 3))
            values = [v for v in (1, 2, 3, 4) if v not in {rows[k][0] for k in rows if k not in keys}]
            rng.shuffle(values)
            deletes, upserts = [], []
            for key in keys:
                old = rows.pop(key, None)
                if old is not None and rng.random() < 0.6:
                    deletes.append(("R", ts, name, "d", key, old, None))
                if old is None or not deletes or deletes[-1][4] != key or rng.random() < 0.4:
                    image = (values.pop() if unique else None, self._next(), version)
                    upserts.append(("R", ts, name, "u", key, image, None))
            rows |= {row[4]: row[5] for row in upserts}
            if self.raw and len(keys) > 1 and len(upserts) == 1 and [d[4] for d in deletes] and deletes[0][4] != upserts[0][4]:
                gone = deletes.pop(0)  # the same change as one raw update of the key
                upserts = [("R", ts, name, "m", upserts[0][4], upserts[0][5], gone[4])]
            out += [*deletes, *upserts]
        return out

    def _ddls(self, ts, tables):  # noqa: C901 - one branch per kind of DDL
        rng, tables, out = self.rng, copy_tables(tables), []
        present = rng.sample(sorted(tables), len(tables))
        absent = rng.sample([n for n in NAMES if n not in tables], len(NAMES) - len(tables))

        def do(name, op, *args):
            out.append(("D", ts, name, op, args, 0))
            run_ddl(tables, out[-1])

        what = rng.choice(
            (
                "create",
                "drop",
                "truncate",
                "alter",
                "alter",
                "rename",
                "chain",
                "chain",
                "exchange",
                *(("drop_schema",) if rng.random() < 0.3 else ()),
            )
        )
        if what == "create" or not present:
            for name in absent[: rng.choice((1, 2))]:
                do(name, "create", self._next(), rng.random() < 0.5)
        elif what in ("truncate", "alter"):
            do(present[0], what, self._next())
        elif what == "drop":
            do(present[0], "drop")
        elif what == "drop_schema":
            do("", "drop_schema")
        elif what == "rename" and absent:
            do(absent[0], "rename", present[0], absent[0])
        elif what == "chain" and absent[:1] and present[1:]:
            for old, new in ((present[0], absent[0]), (present[1], present[0]), (absent[0], present[1])):
                do(new, "rename", old, new)
        elif what == "exchange" and len(present) > 1 and tables[present[0]][1] == tables[present[1]][1]:
            do(present[0], "exchange", present[0], present[1], self._next(), self._next())
        return out

    def after(self, ts):
        return self.states[ts][-1]

    def expected(self, ts, ddls_done):
        return self.states[ts][ddls_done]


class Producer:
    """Sends a history in order of ts to partitions at different paces, with restarts, growth, retries and stale resolved events.

    ``grows_at_beginning``: whether partitions are added while the producer stands at the first promise of a topic, or before it. None: as
    it happens in a few histories.
    """

    weak = False

    def __init__(self, rng, history, dispatcher=None, *, grows_at_beginning=None):
        self.rng, self.history, self.grows_at_beginning = rng, history, grows_at_beginning
        self.topics = rng.choice((1, 1, 2))
        self.partitions = [rng.randint(2 if dispatcher else 1, 3) for _ in range(self.topics)]
        self.promises_to_all, self.first_promise = dispatcher is not None, history.max_ts
        self.dispatcher = dispatcher or rng.choice(("table", "key", "ts"))
        self.log, self.active, self.has_grown, self.is_at_beginning = [], set(), False, True
        self.first_promises, self.beginnings = {}, 0
        self.restarts_left = rng.choice((0, 1, 2, 3))
        self.produce()

    def topic_of(self, name):
        return 0 if self.topics == 1 or name in ("a", "c", "") else 1

    def streams(self, topic=None):
        return [(t, p) for t in range(self.topics) if topic in (None, t) for p in range(self.partitions[t])]

    def targets(self, event):
        """The streams an event goes to: a row to one, a DDL to all partitions of the topic of its (old) table."""
        if event[0] == "D":
            streams = self.streams(self.topic_of(event[4][0] if event[3] == "rename" else event[2]))
            self.rng.shuffle(streams)
            return streams
        topic = self.topic_of(event[2])
        number = {"table": ord(event[2]), "key": ord(event[2]) + event[4], "ts": event[1]}[self.dispatcher]
        return [(topic, number % self.partitions[topic])]

    def produce(self):
        rng, items = self.rng, self.history.items
        self.position, self.left, self.promised, self.spelling = 0, [], 0, 0
        while self.position < len(items) or self.left or rng.random() < 0.5:
            x = rng.random()
            if x < 0.6:
                self.send_next()
            elif x < 0.9:
                streams = self.streams()
                everywhere = self.promises_to_all and (not self.log or rng.random() < 0.8)
                everywhere = everywhere or (self.grows_at_beginning and self.is_at_beginning)
                self.resolve(streams if everywhere else rng.sample(streams, rng.randint(1, len(streams))))
            elif x < 0.94 and self.log:
                self.log.append(self.log[-1])
            elif self.restarts_left:
                self.restart()
        self.promised = self.history.max_ts + rng.choice((0, 1, 2))
        for stream in self.streams():
            if stream[0] in self.active:
                self.log.append((stream, ("S", self.promised)))

    def send_next(self):
        items = self.history.items
        if not self.left:
            if self.position == len(items):
                return
            event = items[self.position]
            self.position += 1
            self.left = [(stream, event) for stream in self.targets(event)]
        stream, event = self.left.pop()
        if event[0] == "D" and self.spelling:
            twins = sum(other[0] == "D" and other[1:3] == event[1:3] for other in items)
            event = (*event[:5], self.rng.choice((0, 1, 1 if twins > 1 else 2)))
        self.active.add(stream[0])
        self.log.append((stream, event))

    def bound(self):
        """The greatest ts that may be promised now: rows at it have been sent, a DDL at it may follow."""
        following = [event for _, event in self.left] or self.history.items[self.position : self.position + 1]
        if not following:
            return self.history.max_ts
        return following[0][1] - (following[0][0] == "R")

    def resolve(self, streams):
        self.promised = max(self.promised, int(self.promises_to_all), self.rng.randint(self.promised, max(self.promised, self.bound())))
        self.first_promise, self.is_at_beginning = min(self.first_promise, self.promised), False
        for stream in streams:
            if stream[0] in self.active or stream[0] == 0:
                self.active.add(stream[0])
                self.first_promises.setdefault(stream[0], self.promised)
                self.log.append((stream, ("S", self.promised)))

    def restart(self):
        """Go back to an older checkpoint: everything after it comes again, resolved events included; partitions may have been added."""
        self.restarts_left -= 1
        if self.grows_at_beginning:
            self.begin_again()
            return
        # Where partitions count as always there if they begin with the same promise, a producer must not start again with it.
        first_ts = self.first_promise if self.grows_at_beginning is None else self.last_first_promise()
        is_begun = self.promises_to_all and self.promised > first_ts
        self.promised = self.rng.randint(first_ts + 1 if is_begun else 0, self.promised)
        self.go_back()
        if self.rng.random() < 0.5 and (is_begun or not self.promises_to_all):
            self.partitions[self.rng.randrange(self.topics)] += 1
            self.has_grown = True

    def last_first_promise(self):
        """The greatest of the topics' first promises; more than any if a topic has rows and no promise."""
        return max(self.first_promises.values()) if self.active <= self.first_promises.keys() and self.active else self.history.max_ts + 9

    def go_back(self):
        self.position = sum(e[1] < self.promised or (e[1] == self.promised and e[0] == "R") for e in self.history.items)
        self.left, self.spelling, self.is_at_beginning = [], 1, True

    def begin_again(self):
        """Restart from any promise, mostly from the very first one of a topic, and add a partition to this topic."""
        topic = self.rng.randrange(self.topics)
        first_ts = self.first_promises.get(topic, 0)
        self.promised = first_ts if self.rng.random() < 0.7 else self.rng.randint(0, self.promised)
        self.go_back()
        if topic in self.first_promises or topic not in self.active:
            self.partitions[topic] += 1
            self.has_grown = True
            self.beginnings += bool(first_ts) and self.promised == first_ts


class World:
    """A history with its log, by stream: ``streams[s]`` are the events, ``at[s]`` their places in real time.

    With ``dispatcher`` a changefeed that ``consistency = "row"`` allows; nothing happens at 1 then, which is how an ``applied_ts`` begins.
    """

    def __init__(self, seed, size, dispatcher=None, **producer):
        rng = random.Random(seed)
        rows = {"raw": dispatcher != "key", "uniques": 0.2, "ddls": 0.15, "first_ts": 2} if dispatcher else {}
        self.history = History(rng, size, **rows)
        self.producer = Producer(rng, self.history, dispatcher, **producer)
        self.log = self.producer.log
        self.streams, self.at = {}, {}
        for moment, (stream, event) in enumerate(self.log):
            self.streams.setdefault(stream, []).append(event)
            self.at.setdefault(stream, []).append(moment)

    def end(self, stream, now):
        return bisect_left(self.at[stream], now)

    def final_w(self):
        return min((max((e[1] for e in events if e[0] == "S"), default=0) for events in self.streams.values()), default=0)
