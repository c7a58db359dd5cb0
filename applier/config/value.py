"""Checks of single values of the configuration. Each refusal says what is wrong and carries the remedy.

A refusal is a ``PydanticCustomError`` whose context holds ``remedy``; ``explain`` turns it into a ConfigError. Values are named in
messages only where they cannot be secrets.
"""

import re
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from enum import StrEnum
from typing import Annotated, Any, Final, NamedTuple
from zoneinfo import ZoneInfo, available_timezones

from pydantic import BeforeValidator
from pydantic_core import PydanticCustomError
from sqlalchemy.engine import URL

from applier.sinks.address import BadAddress, read_address
from applier.sinks.reserved import SYSTEM_SCHEMAS

TIMESTAMP_END: Final = 2038
UNITS: Final = {"": 1, "b": 1, "kb": 1000, "mb": 1000**2, "gb": 1000**3, "kib": 1024, "mib": 1024**2, "gib": 1024**3, "tib": 1024**4}
SIZE: Final = re.compile(r"(\d+(?:\.\d+)?)\s*([A-Za-z]*)")
ZONE_OFFSET: Final = re.compile(r"[+-](0\d|1[0-4]):[0-5]\d")
"""What MySQL accepts as ``time_zone`` besides names."""
SCHEMA_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,47}", re.ASCII)
SERVER: Final = re.compile(r"(?:[A-Z_]+://)?(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::\d{1,5})?")
TOPIC: Final = re.compile(r"[A-Za-z0-9._-]{1,249}")
LISTEN: Final = re.compile(r"(?:(?:\[(?P<v6>[0-9A-Fa-f:.]+)\]|(?P<host>[A-Za-z0-9._-]+)):)?(?P<port>\d{1,5})")
LOOPBACK: Final = "127.0.0.1"
MAX_PORT: Final = 65535
MIN_MEMORY: Final = 64 * 1024


def refuse(message: str, remedy: str) -> PydanticCustomError:
    """Make the error of a refused value."""
    return PydanticCustomError("refused", "{message}", {"message": message, "remedy": remedy})


def nearest(word: str, choices: Any) -> str:
    """Return ``Did you mean 'x'?``, or the list of choices where none is near."""
    known = sorted(choices)
    near = get_close_matches(word, known, n=1)
    return f"Did you mean {near[0]!r}?" if near else f"It is one of: {', '.join(known)}"


def whole_number(value: Any) -> Any:
    """Refuse what would become an integer by loss or by accident: a TSO read as a float has lost digits."""
    if isinstance(value, bool | float):
        raise refuse("must be a whole number", "Write it without quotes, point or exponent")
    return value


Whole = Annotated[int, BeforeValidator(whole_number)]


def parse_size(value: Any) -> Any:
    """Read ``2GiB`` as bytes; an integer is bytes already."""
    if isinstance(value, str):
        match = SIZE.fullmatch(value.strip())
        factor = UNITS.get(match[2].lower()) if match else None
        if match is None or factor is None:
            raise refuse(f"is not a size: {value!r}", 'Write a number and a unit, for instance "512MiB" or "2GiB"')
        value = int(float(match[1]) * factor)
    whole_number(value)
    if isinstance(value, int) and value < MIN_MEMORY:
        raise refuse(f"is too small: {value} bytes", 'Give at least 64KiB; "2GiB" is the default')
    return value


def check_time_zone(value: str) -> str:
    """Accept ``UTC``, an offset such as ``+08:00``, or a name of the zone database."""
    if value.upper() == "UTC":
        return "UTC"
    if ZONE_OFFSET.fullmatch(value):
        return value
    try:
        ZoneInfo(value)
    except (KeyError, OSError, ValueError):
        near = get_close_matches(value, available_timezones(), n=1)
        hint = f"Did you mean {near[0]!r}?" if near else 'Give "UTC", an offset such as "+08:00", or a name such as "Asia/Shanghai".'
        raise refuse(f"is not a time zone: {value!r}", f"{hint} It is the zone of the TiCDC server") from None
    return value


def check_schema(name: str) -> str:
    """Accept a name that every sink takes without a question, and that is not the database's own."""
    if not SCHEMA_NAME.fullmatch(name):
        raise refuse(f"is not the name of a schema: {name!r}", "Give 1 to 48 letters, digits and '_', with a letter first")
    if name.casefold() in SYSTEM_SCHEMAS or name.casefold().startswith("sqlite"):
        raise refuse(f"is a name of the database's own: {name!r}", "Choose a schema that nobody else uses, for instance applier")
    return name


def ambiguous_years(zone: str) -> tuple[int, int] | None:
    """Return the first and last year, as far as TIMESTAMP reaches, in which an hour comes twice in the zone; None if there is none."""
    if zone == "UTC" or ZONE_OFFSET.fullmatch(zone):
        return None
    info, day = ZoneInfo(zone), datetime(1970, 1, 1, tzinfo=UTC)
    before, years = day.astimezone(info).utcoffset(), []
    while day.year < TIMESTAMP_END:
        day += timedelta(days=1)
        after = day.astimezone(info).utcoffset()
        if after is not None and before is not None and after < before:
            years.append(day.year)
        before = after
    return (years[0], years[-1]) if years else None


def check_servers(value: str) -> str:
    """Accept ``host:port,host:port``."""
    servers = [server.strip() for server in value.split(",")]
    if not all(SERVER.fullmatch(server) for server in servers):
        raise refuse(f"is not a list of brokers: {value!r}", 'Write "host:port", several ones with commas between them')
    return ",".join(servers)


def check_topics(topics: tuple[str, ...]) -> tuple[str, ...]:
    """Accept names that Kafka accepts, each once."""
    if not topics:
        raise refuse("names no topic", 'Give at least one: topics = ["changefeed"]')
    for topic in topics:
        if not TOPIC.fullmatch(topic):
            raise refuse(
                f"is not the name of a topic: {topic!r}", "Kafka allows letters, digits, '.', '_' and '-'; patterns are not supported"
            )
    if len(set(topics)) < len(topics):
        raise refuse("names a topic twice", "Remove the repetition")
    return topics


def parse_url(text: str) -> URL:
    """Read the URL of a sink. Messages never quote it: it may hold a password."""
    try:
        return read_address(text)
    except BadAddress as bad:
        raise refuse(bad.problem, bad.remedy) from None


class Listen(NamedTuple):
    """Where the HTTP server listens."""

    host: str
    port: int

    @property
    def reached_at(self) -> str:
        """The host by which it is reached from this machine."""
        return {"0.0.0.0": LOOPBACK, "::": "::1"}.get(self.host, self.host)  # noqa: S104 - compared, not listened to


def parse_listen(value: Any) -> Listen | None:
    """Read ``host:port``, ``[v6]:port`` or a port alone (loopback); ``off`` is None."""
    text = str(value).strip()
    if text == "off":
        return None
    match = LISTEN.fullmatch(text)
    if match is None or not 0 <= int(match["port"]) <= MAX_PORT:
        raise refuse(f"is not an address to listen at: {text!r}", 'Write "127.0.0.1:9464", a port alone for loopback, or "off"')
    return Listen(match["v6"] or match["host"] or LOOPBACK, int(match["port"]))


def available(value: StrEnum, built: StrEnum) -> None:
    """Refuse a documented value whose behaviour is not built yet: it must not be mistaken for the other one."""
    if value is not built:
        raise refuse(f'"{value}" is not available yet', f'Set it to "{built}" or leave it out')
