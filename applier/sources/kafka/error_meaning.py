"""What Kafka's error codes mean: the few that a retry cannot help have their own message; all others count as "does not answer".

The errors that librdkafka reports while it tries to connect.

It retries without end, so a call only ends with a time-out that names no reason. The reason comes through ``error_cb``. Where waiting
cannot help (a wrong password, an authority that is not trusted), it ends the wait.

The operator's properties that librdkafka refuses: named, without their values.

Its own messages may hold a secret, whole or cut ("Unrecognized sasl.oauthbearer.config beginning at: …"). So they are not passed on: an
error names the properties that occur in them.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

from confluent_kafka import KafkaError, KafkaException

from applier.model.errors import NO_REMEDY, ConfigError, Remedy, SourceError
from applier.model.failure import FailureKind
from applier.sources.kafka import error_code
from applier.sources.kafka.settings import KafkaSettings, unreachable


class KafkaErrorMeaning(NamedTuple):
    """What a code means, and what to do about it."""

    kind: FailureKind
    message: str
    remedy: Remedy


_DAMAGED: Final = KafkaErrorMeaning(
    FailureKind.DAMAGED,
    "Kafka returned damaged records",
    Remedy(
        "kafka.examine-partition-files",
        "See the log of the partition's leader, and check its files with kafka-dump-log. Another replica of the partition may be intact. "
        "If none is, create the replica again from a dump (`applier docs start_over`)",
    ),
)
MEANINGS: Final = {
    KafkaError.TOPIC_AUTHORIZATION_FAILED: KafkaErrorMeaning(
        FailureKind.UNAUTHORIZED,
        "the user has no permission to read the topic",
        Remedy("kafka.grant-read", "Grant READ on the topic to this user"),
    ),
    KafkaError.INVALID_MSG: _DAMAGED,  # the broker has found it so
    error_code.BAD_MESSAGE: _DAMAGED,
    error_code.BAD_COMPRESSION: _DAMAGED,
}


def failed(settings: KafkaSettings, what: str, cause: KafkaError | KafkaException, **place: Any) -> SourceError:
    """Return the error for a request for ``what`` that failed; ``place`` are its facts where a retry cannot help."""
    error = cause.args[0] if isinstance(cause, KafkaException) else cause
    meaning = MEANINGS.get(error.code())
    if meaning is None:
        return unreachable(settings, what, cause)
    return SourceError(meaning.message, remedy=meaning.remedy, kind=meaning.kind, **place, cause=settings.masked(error.str()))


PATIENCE_S: Final = 5.0
"""How long a refusal is waited out: a broker that has just started may refuse users that it has not read yet."""
ENOUGH: Final = 2
"""Refusals that are believed. One comes also from a broker that is killed in the middle of a handshake."""

REMEDIES: Final = {
    error_code.AUTHENTICATION: Remedy("kafka.check-sasl", "Check sasl.mechanism, sasl.username and sasl.password of source.kafka"),
    error_code.SSL: Remedy(
        "kafka.check-ssl",
        "Check security.protocol and the ssl. properties of source.kafka: the authority (ssl.ca.location), and the host's name in the "
        "broker's certificate",
    ),
}
_WITHOUT_REASON: Final = frozenset({error_code.ALL_BROKERS_DOWN})
_STATE: Final = re.compile(r" \(after \d+ms in state \w+(?:, \d+ identical error\(s\) suppressed)?\)")


class ConnectionErrors:
    """The errors of one client since it was last served. ``add`` is its ``error_cb``, called inside of calls to the client."""

    def __init__(self, settings: KafkaSettings) -> None:
        self._settings = settings
        self._refusals = 0
        self._refusal = ("", NO_REMEDY)
        self.latest = ""
        """The newest one that names a reason; '' if there is none."""

    def add(self, error: KafkaError) -> None:
        """Remember an error."""
        if error.code() in _WITHOUT_REASON:
            return
        self.latest = self._settings.masked(_STATE.sub("", error.str()))
        if error.code() in REMEDIES:
            self._refusals += 1
            self._refusal = (self.latest, REMEDIES[error.code()])

    def clear(self) -> None:
        """Forget all of them: the client was served."""
        self._refusals, self.latest = 0, ""

    def check(self) -> None:
        """Raise SourceError if this client is refused, and will be refused again."""
        if self._refusals < ENOUGH:
            return
        cause, remedy = self._refusal
        servers = self._settings.bootstrap_servers
        raise SourceError("Kafka refuses the connection", remedy=remedy, kind=FailureKind.REFUSED, bootstrap_servers=servers, cause=cause)


NAME: Final = re.compile(r"[a-z0-9]+(?:[._][a-z0-9]+)+")
SECURITY: Final = ("sasl.", "ssl.")
"""Properties whose absence librdkafka reports by name."""
REMEDY: Final = Remedy("kafka.see-librdkafka", "See CONFIGURATION.md of librdkafka")


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
        return ConfigError(message, remedy=Remedy("kafka.see-librdkafka-names", f"{REMEDY} for the names"), key=_key(named[0]))
    missing = [name for name in mentioned if _is_missing(name, properties)]
    if missing:
        message = f"librdkafka also needs {_keys(missing)}"
        return ConfigError(message, remedy=Remedy("kafka.set-under-source-kafka", "Set it under [source.kafka]"), key=_key(missing[0]))
    # Some reasons hold the value and not the name ("Unsupported SASL mechanism: x"), some neither.
    refused = named or [name for name, value in properties.items() if value and value in reason] or list(properties)
    if not refused:
        return ConfigError(
            f"librdkafka refuses the configuration: {reason}",
            remedy=Remedy("kafka.check-bootstrap-servers", "Check source.bootstrap_servers"),
            key="source",
        )
    what = "value" if len(refused) == 1 else "values"
    return ConfigError(
        f"librdkafka refuses the {what} of {_keys(refused)}",
        remedy=Remedy("kafka.see-librdkafka-values", f"{REMEDY} for its values"),
        key=_key(refused[0]),
    )


def _is_missing(name: str, properties: Mapping[str, str]) -> bool:
    """Whether it is the name of a property that is not set, and not a piece of a value."""
    return name.startswith(SECURITY) and name not in properties and not any(name in value for value in properties.values())


def _key(name: str) -> str:
    return f"source.kafka.{name}"


def _keys(names: list[str]) -> str:
    return ", ".join(map(_key, sorted(names)))
