"""``applier skip list`` and ``applier skip undo``: what is skipped and by whom, and the end of a rule that no run has followed yet."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from applier.cli.ddl import AFTER_BEGIN, SKIPPED_BY, SKIPPED_UNREAD
from applier.model.errors import ConfigError
from applier.model.events import TableName
from applier.model.position import Offset, Stream, Ts
from applier.model.remedy import Remedy
from applier.model.segment import is_past
from applier.sinks.ledger_entry import DdlState, LedgerEntry
from applier.sinks.port import Sink
from applier.sinks.progress import Progress
from applier.sinks.quarantine import SkipRule
from applier.telemetry.log import timeline_in_use, utc_text
from applier.telemetry.wording import one_line, option_and_time, printable

SEE: Final = Remedy("cli.list-skips", "See `applier skip list`")


class Skipped(NamedTuple):
    """One thing that is skipped. ``entry`` of a DDL in the ledger, ``rule`` of anything else; ``is_passed``: the replica is beyond it."""

    rule: SkipRule | None
    entry: LedgerEntry | None
    is_passed: bool

    @property
    def by(self) -> str:
        """Who has decided it; '' for ``[ddl]`` of the configuration."""
        if self.rule is not None:
            return self.rule.decided_by
        if self.entry is not None and self.entry.error.startswith(SKIPPED_BY):
            return self.entry.error.removeprefix(SKIPPED_BY).removesuffix(AFTER_BEGIN)
        return "an operator" if self.entry is not None and self.entry.ddl.query == SKIPPED_UNREAD else ""

    @property
    def at(self) -> datetime | None:
        """When it was decided, or found."""
        return self.rule.decided_at if self.rule is not None else self.entry.began_at if self.entry is not None else None


def skipped(sink: Sink) -> list[Skipped]:
    """Return what is skipped: the operator's rules, then the DDLs."""
    progress = sink.load()
    rules = [Skipped(rule, None, _is_rule_passed(rule, progress)) for rule in sink.bookkeeping.quarantine.skip_rules()]
    ddls = [entry for entry in sink.bookkeeping.ledger() if entry.state is DdlState.SKIPPED]
    return rules + [Skipped(None, entry, progress is not None and is_past(entry.identity.ts, progress.checkpoint_ts)) for entry in ddls]


def _is_rule_passed(rule: SkipRule, progress: Progress | None) -> bool:
    if progress is None:
        return False
    if rule.place is None:
        return is_past(rule.commit_ts, progress.checkpoint_ts)
    position = progress.positions.get(rule.place.stream)
    return position is not None and rule.place.offset < position.next_offset


def as_object(found: Skipped) -> dict[str, Any]:
    """Return one of them for programs."""
    rule, entry = found.rule, found.entry
    place = rule.place if rule is not None else None
    ts = rule.commit_ts if rule is not None else entry.identity.ts if entry is not None else 0
    table = rule.table if rule is not None else entry.ddl.name if entry is not None else None
    return {
        "stream": None if place is None else str(place.stream),
        "offset": None if place is None else place.offset,
        "event": None if place is None or place.event < 0 else place.event,
        "ts": ts or None,
        "table": None if table is None else str(table),
        "ddl": None if entry is None else entry.ddl.query,
        "by": found.by or "[ddl]",
        "at": None if found.at is None else found.at.isoformat(),
        "passed": found.is_passed,
    }


def as_lines(found: Skipped) -> list[str]:
    """Return one of them for people: what, whether the replica has passed it, and who has decided it."""
    state = "passed " if found.is_passed else "waiting"
    when = f" at {utc_text(found.at)}" if found.at is not None else ""
    who = f"by {found.by}{when}" if found.by else "by [ddl] in the configuration"
    return [f"{state}  {_what(found)}", f"    {who}"]


def _what(found: Skipped) -> str:
    if found.entry is not None:
        ddl = found.entry.ddl
        return f"{_at(ddl.commit_ts, str(ddl.name))}  {one_line(ddl.query)}"
    rule = found.rule
    if rule is None or rule.place is None:
        ts = rule.commit_ts if rule is not None else Ts(0)
        return f"{_at(ts, None if rule is None or rule.table is None else str(rule.table))}  all events"
    event = f" --event {rule.place.event}" if rule.place.event >= 0 else ""
    if timeline_in_use().spells_offsets:
        return f"--position {option_and_time(Ts(rule.place.offset), timeline_in_use())[0]}{event}"
    return f"--stream {rule.place.stream} --offset {rule.place.offset}{event}"


def _at(ts: Ts, table: str | None) -> str:
    named, when = option_and_time(ts, timeline_in_use())
    options = f"--ts {named}" if table is None else f"--ts {named} --table {printable(table)}"
    return f"{options}  {when}" if when else options


def chosen_by_place(sink: Sink, stream: Stream, offset: Offset, event: int | None) -> list[Skipped]:
    """Return the rules about a record (or one event of it); ConfigError if there is none, or the replica has passed it."""
    found = [
        one
        for one in skipped(sink)
        if one.rule is not None
        and one.rule.place is not None
        and one.rule.place[:2] == (stream, offset)
        and event in {None, one.rule.place.event}
    ]
    return _still_open(found)


def chosen_by_time(sink: Sink, ts: Ts, table: TableName | None) -> list[Skipped]:
    """Return the rules and the DDLs of a timestamp (and table); ConfigError as ``chosen_by_place``."""
    name = None if table is None else table.fold()
    found = [one for one in skipped(sink) if _ts_of(one) == ts and (name is None or _table_of(one) == name)]
    policy = [one for one in found if not one.by]
    if found and len(policy) == len(found):
        raise ConfigError(
            "this DDL is skipped by [ddl] in the configuration",
            remedy=Remedy("cli.change-ddl-setting", "Change [ddl], and restart the daemon"),
            ts=ts,
        )
    return _still_open([one for one in found if one.by])


def _ts_of(found: Skipped) -> int:
    if found.entry is not None:
        return found.entry.identity.ts
    return found.rule.commit_ts if found.rule is not None and found.rule.place is None else 0


def _table_of(found: Skipped) -> object:
    if found.entry is not None:
        return found.entry.ddl.name.fold()
    return found.rule.table if found.rule is not None else None


def _still_open(found: Sequence[Skipped]) -> list[Skipped]:
    if not found:
        raise ConfigError("nothing like this is skipped", remedy=SEE)
    begun = [one for one in found if one.entry is not None and one.entry.error.endswith(AFTER_BEGIN)]
    passed = [one for one in found if one.is_passed]
    if begun or len(passed) == len(found):
        remedy = Remedy(
            "cli.apply-from-quarantine",
            "If it is in the quarantine, apply it: `applier quarantine list` shows its place, "
            "`applier quarantine retry --stream … --offset …` applies it. A DDL must be run on the sink by hand",
        )
        raise ConfigError("the replica has passed what was skipped: it cannot be undone", remedy=remedy)
    return [one for one in found if not one.is_passed]
