"""What ``applier status`` finds out: from the sink, from Kafka if it answers, and from the run itself if it is on this machine."""

import json
import logging
import socket
import time
from collections.abc import Mapping
from dataclasses import replace
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from types import TracebackType
from typing import Any, Final, Self

from applier.cli.standing import Findings, Standing, standing_of
from applier.config import Config
from applier.errors import SourceError
from applier.kafka.client import KafkaSource
from applier.sinks.factory import open_sink
from applier.sinks.overview import Overview
from applier.telemetry.log import KAFKA_LOGGER_NAME

KAFKA_LOGGER: Final = logging.getLogger(KAFKA_LOGGER_NAME)
KAFKA_PATIENCE_S: Final = 3.0
"""Who asks for the status wants an answer, and the sink has the better part of it."""
RUN_PATIENCE_S: Final = 1.0
SINK_PATIENCE_S: Final = 5
MAX_STATUS_BYTES: Final = 64 << 20


class Inquiry:
    """Asks as often as it is told to; opens nothing before. A sink that does not answer is asked once."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._sink = open_sink(replace(config.sink_settings(), retries=0, lock_wait_timeout_s=SINK_PATIENCE_S, silence_s=0))
        self._source = KafkaSource(replace(config.kafka_settings(), unreachable_after_s=KAFKA_PATIENCE_S))

    def ask(self) -> Standing:
        """Find out where the replica stands. SinkError if the sink does not tell."""
        overview = self._sink.overview()
        live = self._ask_run(overview)
        try:
            found = Findings(overview=overview, listing=self._source.listing(), kafka_problem="", live=live)
        except SourceError as error:
            found = Findings(overview=overview, listing=None, kafka_problem=error.message, live=live)
        config = self._config
        return standing_of(config.name, config.sink.address, found, time.time(), config.source.required_partitions())

    def _ask_run(self, overview: Overview) -> Mapping[str, Any] | None:
        """Ask the run that owns the replica, if it is on this machine; None if it does not answer, or another one does."""
        listen, view = self._config.http.listen, overview.owner
        if listen is None or view is None or view.owner.host != socket.gethostname():
            return None
        # Not urllib, which would go through the proxies of the environment.
        connection = HTTPConnection(listen.reached_at, listen.port, timeout=RUN_PATIENCE_S)
        try:
            connection.request("GET", "/status")
            response = connection.getresponse()
            found = json.loads(response.read(MAX_STATUS_BYTES)) if response.status == HTTPStatus.OK else None
        except (OSError, HTTPException, ValueError):
            return None
        finally:
            connection.close()
        is_it = isinstance(found, dict) and found.get("replica") == self._config.name and found.get("process") == view.owner.process
        return found if is_it else None

    def __enter__(self) -> Self:
        """Keep librdkafka from logging what the answer says: that no broker can be reached."""
        self._logged_level = KAFKA_LOGGER.level
        KAFKA_LOGGER.setLevel(logging.CRITICAL)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Close the connections."""
        self._source.close()
        self._sink.close()
        KAFKA_LOGGER.setLevel(self._logged_level)
