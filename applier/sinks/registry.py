"""The databases that can be a sink: the only module that names them. Their modules are imported when a URL asks for them."""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from difflib import get_close_matches
from importlib import import_module
from typing import Final, NamedTuple, cast

from sqlalchemy import URL, Connection

from applier.database.session import BadAddress, parse_address
from applier.model.errors import NO_REMEDY, ConfigError, Remedy
from applier.sinks.bookkeeping.bookkeeping import Bookkeeping
from applier.sinks.kit import SinkKit
from applier.sinks.port import Sink
from applier.sinks.settings import SinkSettings


class SinkEntry(NamedTuple):
    """One database: its package, and the drivers of its URLs with the form of such a URL ('': another name of the same)."""

    package: str
    urls: dict[str, str]


_SINKS: Final = [
    SinkEntry(
        "applier.sinks.mysql",
        {"mysql+pymysql": "mysql+pymysql://user@host:3306/", "mariadb+pymysql": "mariadb+pymysql://user@host:3306/"},
    ),
    SinkEntry("applier.sinks.sqlite", {"sqlite": "sqlite:///file.db", "sqlite+pysqlite": ""}),
]


def register(entry: SinkEntry) -> None:
    """Add a database. Its package has a module ``kit`` with the object ``KIT``, and a module ``writer`` for tasks."""
    if entry not in _SINKS:
        _SINKS.append(entry)


def kit_of(url: str) -> SinkKit:
    """Return the kit of the database that a URL names; ConfigError: unknown database."""
    try:
        return _kit(url)
    except BadAddress as bad:
        raise _refused(bad) from None


def read_address(text: str) -> URL:
    """Return the URL of a supported sink, with safe options only; BadAddress for everything else."""
    return _kit(text).read_url(text)


def sink_url(text: str) -> URL:
    """Return the checked URL; ConfigError names what is wrong with it."""
    try:
        return read_address(text)
    except BadAddress as bad:
        raise _refused(bad) from None


def open_sink(settings: SinkSettings) -> Sink:
    """Return the sink that ``settings.url`` names. It connects when it is first used. ConfigError: no such sink."""
    sink_url(settings.url)
    return kit_of(settings.url).open_sink(settings)


def open_glance(settings: SinkSettings, *, changes: bool = False) -> AbstractContextManager[Connection]:
    """Give a connection for one short transaction on the bookkeeping. It shares nothing with a ``Sink``, which is not thread-safe."""
    return kit_of(settings.url).open_glance(settings, changes=changes)


def bookkeeping_of(settings: SinkSettings) -> Bookkeeping:
    """Return the location of the replica's bookkeeping."""
    return kit_of(settings.url).bookkeeping(settings)


def task_modules() -> Iterator[str]:
    """Yield the modules that tasks of each database use, and no more."""
    for entry in _SINKS:
        yield f"{entry.package}.writer"


def url_form() -> Remedy:
    """Return the remedy that shows the URL of each database."""
    *others, last = [form for entry in _SINKS for form in entry.urls.values() if form]
    return Remedy("sink.write-url", f"Write {', '.join(others)} or {last}")


def _kit(text: str) -> SinkKit:
    driver = text.partition("://")[0]
    for entry in _SINKS:
        if driver in entry.urls:
            return cast("SinkKit", import_module(f"{entry.package}.kit").KIT)
    url, _ = parse_address(text, url_form())
    raise _unsupported(url.drivername)


def _unsupported(driver: str) -> BadAddress:
    choices = [name for entry in _SINKS for name, form in entry.urls.items() if form]
    near = [name for name in choices if name.startswith(driver)] or get_close_matches(driver, choices, n=1)
    hint = Remedy("sink.correct-driver", f"Did you mean {near[0]!r}?") if near else NO_REMEDY
    return BadAddress(f"names a kind of database that is not supported: {driver!r}", hint.then(url_form()))


def _refused(bad: BadAddress) -> ConfigError:
    return ConfigError(f"the sink's url {bad.problem}", remedy=bad.remedy)
