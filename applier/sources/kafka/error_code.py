"""librdkafka's own error codes by plain names: its bindings give them names with an underscore, as if they were private."""

# ruff: noqa: SLF001 - the underscore marks errors of the client itself; the names are documented

from typing import Final

from confluent_kafka import KafkaError

ALL_BROKERS_DOWN: Final = KafkaError._ALL_BROKERS_DOWN
AUTHENTICATION: Final = KafkaError._AUTHENTICATION
BAD_COMPRESSION: Final = KafkaError._BAD_COMPRESSION
BAD_MESSAGE: Final = KafkaError._BAD_MSG
NO_OFFSET: Final = KafkaError._AUTO_OFFSET_RESET
"""The records at the offset are gone."""
PARTITION_END: Final = KafkaError._PARTITION_EOF
SSL: Final = KafkaError._SSL
TIMED_OUT: Final = KafkaError._TIMED_OUT
TRANSPORT: Final = KafkaError._TRANSPORT
UNSUPPORTED_FEATURE: Final = KafkaError._UNSUPPORTED_FEATURE
