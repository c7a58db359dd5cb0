"""What librdkafka complains of while it tries to connect.

It never gives up by itself, so a call only ends with a time-out that says nothing. The reason is heard here, and where no patience helps
(a wrong password, an authority that is not trusted) it ends the waiting.
"""

import re
from typing import Final

from confluent_kafka import KafkaError

from applier.model.errors import SourceError
from applier.sources.kafka.settings import KafkaSettings

PATIENCE_S: Final = 5.0
"""A broker that has just started may refuse users that it has not read yet."""
ENOUGH: Final = 2
"""A broker that is killed in the middle of a handshake is complained of in the same way, once."""

REMEDIES: Final = {
    KafkaError._AUTHENTICATION: "Check sasl.mechanism, sasl.username and sasl.password of source.kafka",  # noqa: SLF001 - librdkafka's codes
    KafkaError._SSL: (  # noqa: SLF001
        "Check security.protocol and the ssl. properties of source.kafka: the authority (ssl.ca.location), and the host's name in the "
        "broker's certificate"
    ),
}
_SAYS_NOTHING: Final = frozenset({KafkaError._ALL_BROKERS_DOWN})  # noqa: SLF001
_STATE: Final = re.compile(r" \(after \d+ms in state \w+(?:, \d+ identical error\(s\) suppressed)?\)")


class Complaints:
    """Those of one client since it was last served. ``hear`` is its ``error_cb``, called inside of calls to the client."""

    def __init__(self, settings: KafkaSettings) -> None:
        self._settings = settings
        self._refusals = 0
        self._refusal = ("", "")
        self.latest = ""
        """The newest one that says something; '' if there is none."""

    def hear(self, error: KafkaError) -> None:
        """Remember a complaint."""
        if error.code() in _SAYS_NOTHING:
            return
        self.latest = self._settings.masked(_STATE.sub("", error.str()))
        if error.code() in REMEDIES:
            self._refusals += 1
            self._refusal = (self.latest, REMEDIES[error.code()])

    def forget(self) -> None:
        """The client was served: what was before does not matter."""
        self._refusals, self.latest = 0, ""

    def check(self) -> None:
        """Raise SourceError if this client is refused, and will be again."""
        if self._refusals < ENOUGH:
            return
        cause, remedy = self._refusal
        servers = self._settings.bootstrap_servers
        raise SourceError("kafka refuses the connection", remedy=remedy, kind="refused", bootstrap_servers=servers, cause=cause)
