"""Opens the source that the settings name, and gives its decoder to callers that have records but need no connection.

The one place that knows which sources there are: a second one adds its settings here.
"""

from applier.sources.kafka.client import KafkaSource
from applier.sources.kafka.settings import KafkaSettings
from applier.sources.open_protocol.decoder import OpenProtocolDecoder
from applier.sources.port import Decoder, Source


def open_source(settings: KafkaSettings) -> Source:
    """Make the source. ConfigError if a property is refused; it connects when it is first asked."""
    return KafkaSource(settings)


def decoder_of(settings: KafkaSettings) -> Decoder:
    """Return how the records of a source are read, also long after it had them (the quarantine keeps some)."""
    return OpenProtocolDecoder(settings.selection)
