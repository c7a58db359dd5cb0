"""What ``applier inspect`` is asked for: its options, what they mean for the source at hand, and which events they choose."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import assert_never

from applier.cli.inspected import Inspected, handle_key, plain_text
from applier.cli.option import ms_of_time, parse_table
from applier.cli.position import source_kit
from applier.config import Config
from applier.model.errors import ConfigError, NeedsOperator, ProtocolError
from applier.model.events import AdminEvent, DdlEvent, Event, Image, ResolvedEvent, RowEvent, TableName
from applier.model.position import Ts
from applier.model.remedy import Remedy
from applier.model.segment import is_asked_for
from applier.model.topic_name import is_named
from applier.sources.kit import AskedRecords, Records
from applier.sources.peek import PeekChoice


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownEvents:
    """What an event must be. None and (): no restriction. ``keys``: VALUE of a key of one column, or COLUMN=VALUE of all of them."""

    table: TableName | None = None
    keys: tuple[str, ...] = ()
    ts: Ts | None = None
    since: Ts | None = None
    until: Ts | None = None
    resolved: bool = False

    def of(self, inspected: Inspected) -> Inspected | None:
        """Return the record with the chosen events alone; None if it has none of them."""
        if isinstance(inspected.content, ProtocolError | NeedsOperator):
            return inspected if self._may_be(inspected.content) else None
        chosen = [event for event in inspected.content if self._has(event)]
        # A record without an event is strange: it is shown where nothing is looked for.
        is_shown = chosen or not (inspected.content or self.is_search)
        return replace(inspected, content=chosen) if is_shown else None

    @property
    def is_search(self) -> bool:
        """Whether particular events are looked for."""
        return not (self.table is None and not self.keys and self.ts is None and self.since is None and self.until is None)

    def _may_be(self, error: ProtocolError | NeedsOperator) -> bool:
        """Whether a record that cannot be read may be one of them, as far as is known of it."""
        schema, table, ts = (error.facts.get(name) for name in ("schema", "table", "commit_ts"))
        is_named = schema is None or self.table is None or TableName(schema, table or "").fold() == self.table.fold()
        return is_named and (ts is None or self._is_at(Ts(ts)))

    def _has(self, event: Event) -> bool:
        match event:
            case RowEvent():
                return self._is_at(event.commit_ts) and self._is_of(TableName(event.schema, event.table)) and self._has_key(event)
            case DdlEvent():
                return not self.keys and self._is_at(event.commit_ts) and self._is_of(event.name)
            case ResolvedEvent():
                return self.resolved and not self.keys and self.table is None and self._is_at(event.ts)
            case AdminEvent():
                return not self.keys and self.table is None and self._is_at(event.ts)
            case _:
                assert_never(event)

    def _is_at(self, ts: Ts) -> bool:
        return self.ts in {None, ts} and is_asked_for(ts, self.since, self.until)

    def _is_of(self, table: TableName) -> bool:
        return self.table is None or table.fold() == self.table.fold()

    def _has_key(self, event: RowEvent) -> bool:
        # Both: an update may have changed the key.
        return not self.keys or _is_key(event.after, self.keys) or _is_key(event.before, self.keys)


def _is_key(image: Image | None, wanted: Iterable[str]) -> bool:
    columns = {name.casefold(): plain_text(value) for name, value in handle_key(image).items()}
    if not columns:
        return False
    return all(_is_value(columns, text) for text in wanted)


def _is_value(columns: dict[str, str], text: str) -> bool:
    name, equals, value = text.partition("=")
    is_named = bool(equals) and columns.get(name.casefold()) == value
    return is_named or (len(columns) == 1 and text in columns.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class InspectOptions:
    """The options about what is shown, as they were given."""

    topic: str | None
    partition: int | None
    start: str | None
    table: str | None
    keys: tuple[str, ...]
    ts: int | None
    position: str | None
    gtid: str | None
    since: str | None
    until: str | None
    resolved: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspection:
    """What is read, and what of it is shown. ``records`` passes the chosen ones. ``limit``: shown records of each stream, None: all."""

    choice: PeekChoice
    shown: ShownEvents
    records: Callable[[Records], Records] = iter
    limit: int | None = None
    follows: bool = False


def inspection_of(settings: Config, options: InspectOptions) -> Inspection:
    """Return what is read and shown. ConfigError: an option is wrong, or of the other kind of source."""
    topics = settings.source.topics
    if options.topic is not None and not is_named(options.topic, topics):
        raise ConfigError(
            f"--topic {options.topic} is not in source.topics",
            remedy=Remedy("cli.list-topics-to-inspect", f"The topics are: {', '.join(topics)}"),
        )
    since_ms = None if options.since is None else ms_of_time(options.since, "--since")
    chosen = source_kit(settings).records(
        AskedRecords(
            start=options.start,
            ts=None if options.ts is None else Ts(options.ts),
            position=options.position,
            gtid=options.gtid,
            since_ms=since_ms,
            until_ms=None if options.until is None else ms_of_time(options.until, "--until"),
        )
    )
    return Inspection(
        choice=PeekChoice(topic=options.topic, partition=options.partition, start=chosen.start, since_ms=since_ms),
        shown=ShownEvents(
            table=None if options.table is None else parse_table(options.table),
            keys=options.keys,
            ts=None if options.ts is None else Ts(options.ts),
            since=chosen.since,
            until=chosen.until,
            resolved=options.resolved,
        ),
        records=chosen.of,
    )
