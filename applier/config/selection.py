"""``tables``, ``[[source.route]]`` and ``[[source.event_filter]]``: what the replica has of upstream, and under which names."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self, TypeVar

from pydantic import BaseModel, BeforeValidator, Field, model_validator

from applier.config.section import OnRejectedEvent, Seconds, Section
from applier.config.value import nearest, refuse, split_text
from applier.model.errors import Remedy
from applier.model.topic_name import PartitionLimits
from applier.selection import EventFilter, OnlineDdl, OnlineDdlMode, PatternError, Route, TableFilter, TableSelection
from applier.sources.claim_check.settings import ClaimCheckSettings
from applier.upstream.settings import UpstreamSettings

T = TypeVar("T")


def _known_keys(model: type[BaseModel], given: Any) -> Any:
    """Refuse unknown and missing keys of one table of a list: its position in the list does not help the reader."""
    fields = {field.alias or name: field for name, field in model.model_fields.items()}
    for key in given if isinstance(given, dict) else ():
        if key not in fields:
            raise refuse(f"has an unknown key: {key!r}", nearest(str(key), fields))
    for key, field in fields.items():
        if isinstance(given, dict) and field.is_required() and key not in given:
            raise refuse(f"lacks the key {key!r}", Remedy("config.show-filter-keys", f"Its keys are: {', '.join(fields)}"))
    return given


class RouteConfig(Section):
    """Other names for some tables."""

    pattern: str = Field(alias="from")
    """Upstream's tables, as in ``source.tables``. The first route that matches counts."""
    to: str
    """The name in the sink; ``{schema}`` and ``{table}`` are upstream's names."""

    @model_validator(mode="before")
    @classmethod
    def _check_keys(cls, given: Any) -> Any:
        return _known_keys(cls, given)

    def route(self) -> Route:
        """Return the route. PatternError."""
        return Route.parse(self.pattern, self.to)


class EventFilterConfig(Section):
    """Events of some tables that are skipped."""

    tables: tuple[str, ...]
    """Upstream's tables, by the rules of ``source.tables``."""
    ignore: tuple[str, ...] = ()
    """Kinds of events to skip: insert, update, delete, all_dml, all_ddl, or a DDL type."""
    ignore_sql: tuple[str, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _check_keys(cls, given: Any) -> Any:
        return _known_keys(cls, given)

    def event_filter(self) -> EventFilter:
        """Return the filter. PatternError."""
        if not self.tables:
            raise PatternError("names no tables", Remedy("config.include-all-tables", 'Write tables = ["*.*"] for all of them'))
        return EventFilter.parse(TableFilter.parse(self.tables, _lines), self.ignore, self.ignore_sql)


def selection_of(tables: tuple[str, ...], routes: tuple[RouteConfig, ...], event_filters: tuple[EventFilterConfig, ...]) -> TableSelection:
    """Return what the settings select."""
    table_filter = _read("tables", lambda: TableFilter.parse(tables, _lines))
    if tables and not any(rule.includes for rule in table_filter.rules):
        raise refuse(
            "tables excludes every table: no rule includes one",
            Remedy("config.begin-with-all-tables", 'Begin with "*.*", which takes in all of them'),
        )
    return TableSelection(
        table_filter,
        _read("route", lambda: tuple(route.route() for route in routes)),
        _read("event_filter", lambda: tuple(one.event_filter() for one in event_filters)),
    )


def online_ddl_of(mode: OnlineDdlMode, shadows: tuple[str, ...], trash: tuple[str, ...]) -> OnlineDdl:
    """Return the rules for tables of tools that change tables by copying them."""
    _read("shadow_table_rules", lambda: OnlineDdl.parse(mode, shadows, ()))
    return _read("trash_table_rules", lambda: OnlineDdl.parse(mode, shadows, trash))


def _read(key: str, parse: Callable[[], T]) -> T:
    try:
        return parse()
    except PatternError as error:
        raise refuse(f"{key} {error}", error.remedy) from None


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError) as error:
        raise PatternError(
            f"names a file that cannot be read: {path!r} ({error})", Remedy("config.check-path-after-at", "Check the path after @")
        ) from None


# --- selected source -------------------------------------------------------------------------------------------------
# What ``[source]`` has for each kind of source: which tables, under which names, and what stops a run.


class SelectedSource(Section):
    """The keys of every source. ``time_zone`` is a source's own: a binlog's TIMESTAMPs are UTC."""

    tables: Annotated[tuple[str, ...], BeforeValidator(split_text)] = ()
    """TiDB's table filter: the last rule that matches counts. None: all tables."""
    route: tuple[RouteConfig, ...] = ()
    """Other names in the sink."""
    event_filter: tuple[EventFilterConfig, ...] = ()
    """Kinds of events that are skipped."""
    on_unreadable: OnRejectedEvent = OnRejectedEvent.STOP
    """A record that cannot be read stops the run, or is stored in quarantine."""
    stall_after_s: Seconds = 60.0
    has_whole_transactions: ClassVar[bool] = False
    instead: ClassVar[Mapping[str, str]] = {}
    """What to do if the file has a key that only another kind of source has."""

    @model_validator(mode="after")
    def _check_selection(self) -> Self:
        self.selection()
        return self

    def selection(self) -> TableSelection:
        """Return what the replica has of upstream, and under which names."""
        return selection_of(self.tables, self.route, self.event_filter)

    def required_partitions(self) -> PartitionLimits | None:
        """Return how many partitions of each limited topic are required; None without a limit."""
        return None

    def claim_check_settings(self) -> ClaimCheckSettings | None:
        """Return where the objects of large rows are; None: nowhere."""
        return None

    def upstream_settings(self) -> UpstreamSettings | None:
        """Return where upstream's own rows are; None: it is not said."""
        return None

    def users(self) -> dict[str, str]:
        """Return the database users that the section names, by what they are for (``applier grants``)."""
        return {}

    def time_zone_warning(self) -> dict[str, Any] | None:
        """Return the facts of a warning if TIMESTAMP text of the zone can have two meanings, else None."""
        return None
