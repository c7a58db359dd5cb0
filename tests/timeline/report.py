"""What a listener reports of a range of events: the same as applier.tasks.listen, written a second time and simply."""

from bisect import bisect_left

from applier.model.events import DdlEvent, TableName
from applier.model.range_report import DdlArrival, Promises, RangeReport, ResumePoint, RowCount, TableRows

SCHEMA = "S"


SPELLINGS = {
    "create": ("CREATE TABLE `{0}` (`id` INT PRIMARY KEY)", "create table s.{0} (id int)"),
    "drop": ("DROP TABLE `S`.`{0}`", "drop table {0}"),
    "drop_schema": ("DROP DATABASE `S`", "drop schema s"),
    "truncate": ("TRUNCATE TABLE `{0}`", "truncate s.{0}"),
    "alter": ("ALTER TABLE `{0}` ADD COLUMN `x` INT", "alter table s.{0} add column x int"),
    "rename": ("RENAME TABLE `S`.`{1}` TO `S`.`{2}`", "alter table {1} rename to {2}"),
    "exchange": (
        "ALTER TABLE `S`.`{1}` EXCHANGE PARTITION `p` WITH TABLE `S`.`{2}`",
        "alter table {1} exchange partition p with table {2}",
    ),
}


DELETE, UPSERT = 0, 1


KEYLESS = "keyless"


def ddl_event(event):
    """Spell a DDL as SQL; the comment carries what the in-memory sink executes."""
    _, ts, name, op, args, text = event
    query = "what is this" if text == 2 else SPELLINGS[op][text].format(name, *args)
    return DdlEvent(commit_ts=ts, schema=SCHEMA, table=name, query=f"{query} /* {event[1:5]!r} */", ddl_type=0)


def understandable(event, world):
    """Only the names in a statement can order the DDLs of one ts in two topics: one that is not understood is the operator's."""
    if event[0] == "D" and event[5] == 2 and world.producer.topics > 1 and len(world.history.ddls_at[event[1]]) > 1:
        return (*event[:5], 1)
    return event


def operation(ddl):
    return ("D", *eval(ddl.query.split("/* ")[1].removesuffix(" */")), 0)  # noqa: S307 - our own text


def folded(name):
    return TableName(SCHEMA, name).fold()


def report_of(range_id, events, floor, rng=None, offsets=None):
    """Report what a range holds, as a listener would. With ``rng``, hold and counts are thinned out as far as that is allowed.

    ``offsets`` of the events; None: each has its own.
    """
    rows, hold, ddls, tables, top, resolved, replays, early = [], [], [], {}, -1, 0, 0, (0, 0)
    announced, ends_announced, promises, unpromised, behind = 0, False, [], 0, 0
    for offset, event in zip(offsets or range(range_id.start, range_id.end), events, strict=True):
        ends_announced = not isinstance(event, DdlEvent) and event[0] == "A"
        if ends_announced:
            announced = event[1]
            continue
        ddl = event if isinstance(event, DdlEvent) else ddl_event(event) if event[0] == "D" else None
        ts = ddl.commit_ts if ddl else event[1]
        if not early[0] and (ddl or event[0] == "R") and ts < floor and resolved <= floor:
            early = (ts, offset)
        if ddl:
            ddls.append(DdlArrival(offset, 0, ddl))
            continue
        if event[0] == "S":
            resolved = max(resolved, event[1])
            promises.append(event[1])
        elif event[1] < floor:
            replays += 1
            continue
        else:
            rows.append((event, offset))
            unpromised = unpromised if promises else max(unpromised, event[1])
            behind = max(behind, event[1]) if event[1] < resolved else behind
            tables.setdefault(event[2], []).append((event[1], offset))
        value = event[1] - (event[0] == "S")
        if value > top:
            top = value
            hold.append(ResumePoint(offset, value))
    sorted_ts = sorted(row[1] for row, _ in rows)
    counts = [RowCount(ts, bisect_left(sorted_ts, ts + 1)) for ts in sorted(set(sorted_ts))]
    thin_out(hold, counts, rng)
    report = RangeReport(
        range=range_id,
        resolved_ts=resolved,
        promises=Promises(
            first_ts=promises[0] if promises else 0,
            least_later_ts=min(promises[1:], default=0),
            unpromised_ts=unpromised,
            behind_ts=behind,
        ),
        resume_points=tuple(hold),
        ddls=tuple(ddls),
        tables=tuple(
            TableRows(
                TableName(SCHEMA, name),
                () if name == KEYLESS else ("id",),
                len(at),
                min(at)[0],
                max(at)[0],
                at[0][1],
                stream=range_id.stream,
            )
            for name, at in tables.items()
        ),
        rows=len(rows),
        bytes=10 * len(rows),
        min_ts=sorted_ts[0] if rows else 0,
        max_ts=sorted_ts[-1] if rows else 0,
        row_counts=tuple(counts),
        early_ts=early[0],
        early_offset=early[1],
        replays=replays,
        events=len(events),
        partitions=announced,
        ends_announced=ends_announced,
    )
    return report, rows


def thin_out(hold, counts, rng):
    while rng and len(counts) > 2 and rng.random() < 0.3:
        del counts[rng.randrange(len(counts) - 1)]
    while rng and len(hold) > 1 and rng.random() < 0.3:
        i = rng.randrange(len(hold) - 1)
        hold[i : i + 2] = [ResumePoint(hold[i].offset, hold[i + 1].value)]
