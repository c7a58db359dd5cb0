"""The errors that librdkafka reports while it tries to connect.

It retries for ever, so a call only ends with a time-out that names no reason. The reason comes through ``error_cb``. Where waiting cannot
help (a wrong password, an authority that is not trusted), it ends the wait.
"""

import re
from typing import Final

from confluent_kafka import KafkaError

from applier.model.errors import SourceError
from applier.sources.kafka import error_code
from applier.sources.kafka.settings import KafkaSettings

PATIENCE_S: Final = 5.0
"""How long a refusal is waited out: a broker that has just started may refuse users that it has not read yet."""
ENOUGH: Final = 2
"""Refusals that are believed. One comes also from a broker that is killed in the middle of a handshake."""

REMEDIES: Final = {
    error_code.AUTHENTICATION: "Check sasl.mechanism, sasl.username and sasl.password of source.kafka",
    error_code.SSL: (
        "Check security.protocol and the ssl. properties of source.kafka: the authority (ssl.ca.location), and the host's name in the "
        "broker's certificate"
    ),
}
_WITHOUT_REASON: Final = frozenset({error_code.ALL_BROKERS_DOWN})
_STATE: Final = re.compile(r" \(after \d+ms in state \w+(?:, \d+ identical error\(s\) suppressed)?\)")


class ConnectionErrors:
    """Those of one client since it was last served. ``add`` is its ``error_cb``, called inside of calls to the client."""

    def __init__(self, settings: KafkaSettings) -> None:
        self._settings = settings
        self._refusals = 0
        self._refusal = ("", "")
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
        raise SourceError("Kafka refuses the connection", remedy=remedy, kind="refused", bootstrap_servers=servers, cause=cause)
