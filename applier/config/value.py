"""Checks of single values. Each refusal carries its remedy.

A refusal is a ``PydanticCustomError`` whose context holds ``remedy``; ``load`` turns it into a ConfigError. A message quotes
a value only where it cannot be a secret.
"""

import re
from collections.abc import Callable
from difflib import get_close_matches
from typing import Annotated, Any, Final

from pydantic import BeforeValidator
from pydantic_core import PydanticCustomError
from sqlalchemy.engine import URL

from applier.database.session import BadAddress
from applier.model.errors import Remedy
from applier.model.topic_name import is_pattern
from applier.mysql.address import read_server_url
from applier.sinks.registry import read_address

UNITS: Final = {"": 1, "b": 1, "kb": 1000, "mb": 1000**2, "gb": 1000**3, "kib": 1024, "mib": 1024**2, "gib": 1024**3, "tib": 1024**4}
SIZE: Final = re.compile(r"(\d+(?:\.\d+)?)\s*([A-Za-z]*)")
SCHEMA_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,47}", re.ASCII)
SERVER: Final = re.compile(r"(?:[A-Z_]+://)?(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::\d{1,5})?")
TOPIC: Final = re.compile(r"[A-Za-z0-9._-]{1,249}")
MIN_MEMORY: Final = 64 * 1024


def refuse(message: str, remedy: Remedy) -> PydanticCustomError:
    """Make the error of a refused value."""
    return PydanticCustomError("refused", "{message}", {"message": message, "remedy": remedy})


def nearest(word: str, choices: Any) -> Remedy:
    """Return ``Did you mean 'x'?``, or the list of choices where none is near."""
    known = sorted(choices)
    near = get_close_matches(word, known, n=1)
    if near:
        return Remedy("config.correct-value", f"Did you mean {near[0]!r}?")
    return Remedy("config.choose-value", f"It is one of: {', '.join(known)}")


def split_text(value: Any) -> Any:
    """Split text at commas, as the environment gives a list."""
    return tuple(part.strip() for part in value.split(",")) if isinstance(value, str) else value


def whole_number(value: Any) -> Any:
    """Refuse floats and booleans: a TSO that was read as a float has lost digits."""
    # bool is a subclass of int. A TSO is above 2**53, where floats skip integers.
    if isinstance(value, bool | float):
        raise refuse("must be a whole number", Remedy("config.write-plain-number", "Write it without quotes, decimal point or exponent"))
    return value


Whole = Annotated[int, BeforeValidator(whole_number)]


def parse_size(value: Any) -> Any:
    """Read ``2GiB`` as bytes; an integer is bytes already."""
    if isinstance(value, str):
        match = SIZE.fullmatch(value.strip())
        factor = UNITS.get(match[2].lower()) if match else None
        if match is None or factor is None:
            raise refuse(
                f"is not a size: {value!r}", Remedy("config.write-size", 'Write a number and a unit, for instance "512MiB" or "2GiB"')
            )
        value = int(float(match[1]) * factor)
    whole_number(value)
    if isinstance(value, int) and value < MIN_MEMORY:
        raise refuse(f"is too small: {value} bytes", Remedy("config.give-larger-size", 'Give at least 64KiB; "2GiB" is the default'))
    return value


def check_schema(name: str) -> str:
    """Accept a name that every sink takes unquoted."""
    if not SCHEMA_NAME.fullmatch(name):
        raise refuse(
            f"is not a schema name: {name!r}", Remedy("config.give-valid-name", "Give 1 to 48 letters, digits and '_', with a letter first")
        )
    return name


def check_servers(value: str) -> str:
    """Accept ``host:port,host:port``."""
    servers = [server.strip() for server in value.split(",")]
    if not all(SERVER.fullmatch(server) for server in servers):
        raise refuse(f"is not a list of brokers: {value!r}", Remedy("config.write-host-port", 'Write "host:port", separated by commas'))
    return ",".join(servers)


def check_topics(topics: tuple[str, ...]) -> tuple[str, ...]:
    """Accept names that Kafka accepts, each once."""
    if not topics:
        raise refuse("is empty", Remedy("config.name-topic", 'Name at least one topic: [source] topics = ["changefeed"]'))
    for topic in topics:
        if is_pattern(topic):
            _check_pattern(topic)
        elif not TOPIC.fullmatch(topic):
            remedy = Remedy(
                "config.write-topic-name", "Kafka allows letters, digits, '.', '_' and '-'. A pattern begins with '^': \"^cdc_.*\""
            )
            raise refuse(f"is not a topic name: {topic!r}", remedy)
    if len(set(topics)) < len(topics):
        raise refuse("names a topic twice", Remedy("config.remove-repeated-topic", "Remove one of them"))
    return topics


def _check_pattern(pattern: str) -> None:
    try:
        re.compile(pattern)
    except re.error as error:
        raise refuse(
            f"is not a pattern of topics: {pattern!r} ({error})", Remedy("config.correct-topic-pattern", "Correct the regular expression")
        ) from None


def parse_url(text: str) -> URL:
    """Read the URL of a sink. Messages never quote it, because it may hold a password."""
    return _parsed(text, read_address)


def parse_server_url(text: str) -> URL:
    """Read the URL of an upstream, which is a server of the MySQL family, as ``parse_url`` does."""
    return _parsed(text, read_server_url)


def _parsed(text: str, read: Callable[[str], URL]) -> URL:
    try:
        return read(text)
    except BadAddress as bad:
        raise refuse(bad.problem, bad.remedy) from None
