"""``tables``, ``[[source.route]]`` and ``[[source.event_filter]]``: what the replica has of upstream, and under which names."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, Field, model_validator

from applier.config.section import Section
from applier.config.value import nearest, refuse
from applier.model.remedy import Remedy
from applier.selection import EventFilter, OnlineDdl, OnlineDdlMode, PatternError, Route, TableFilter, TableSelection

T = TypeVar("T")


def _known_keys(model: type[BaseModel], given: Any) -> Any:
    """Refuse unknown and missing keys of one table of a list: its place in the list says nothing to the reader."""
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
            "tables leaves out every table: no rule takes one in",
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
