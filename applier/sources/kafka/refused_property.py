"""The operator's properties that librdkafka refuses: named, without their values.

Its own messages may hold a secret, whole or cut ("Unrecognized sasl.oauthbearer.config beginning at: …"). So they are not passed on: an
error names the properties that occur in them.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from confluent_kafka import KafkaException

from applier.model.errors import ConfigError
from applier.sources.kafka.settings import KafkaSettings

NAME: Final = re.compile(r"[a-z0-9]+(?:[._][a-z0-9]+)+")
SECURITY: Final = ("sasl.", "ssl.")
"""Properties whose absence librdkafka reports by name."""
REMEDY: Final = "See CONFIGURATION.md of librdkafka"


@contextmanager
def refusals_as_config_errors(settings: KafkaSettings) -> Iterator[None]:
    """Make clients in here: a property that is refused becomes a ConfigError that names it."""
    try:
        yield
    except (KafkaException, TypeError, ValueError) as error:  # the latter ones: properties of Python's client, such as error_cb
        reason = error.args[0].str() if isinstance(error, KafkaException) else str(error)
        raise _refusal(dict(settings.properties), reason) from None


def _refusal(properties: Mapping[str, str], reason: str) -> ConfigError:
    mentioned = dict.fromkeys(NAME.findall(reason))
    named = [name for name in properties if name in mentioned]
    if reason.startswith("No such configuration property") and named:
        message = f"librdkafka has no property {named[0]!r}"
        return ConfigError(message, remedy=f"{REMEDY} for the names", key=_key(named[0]))
    missing = [name for name in mentioned if _is_missing(name, properties)]
    if missing:
        message = f"librdkafka also needs {_keys(missing)}"
        return ConfigError(message, remedy="Set it under [source.kafka]", key=_key(missing[0]))
    # Some reasons hold the value and not the name ("Unsupported SASL mechanism: x"), some neither.
    refused = named or [name for name, value in properties.items() if value and value in reason] or list(properties)
    if not refused:
        return ConfigError(f"librdkafka refuses the configuration: {reason}", remedy="Check source.bootstrap_servers", key="source")
    what = "value" if len(refused) == 1 else "values"
    return ConfigError(f"librdkafka refuses the {what} of {_keys(refused)}", remedy=f"{REMEDY} for its values", key=_key(refused[0]))


def _is_missing(name: str, properties: Mapping[str, str]) -> bool:
    """Whether it is the name of a property that is not set, and not a piece of a value."""
    return name.startswith(SECURITY) and name not in properties and not any(name in value for value in properties.values())


def _key(name: str) -> str:
    return f"source.kafka.{name}"


def _keys(names: list[str]) -> str:
    return ", ".join(map(_key, sorted(names)))
