"""The query of ``applier status``: asks the sink, the source (if it answers), and the run itself (if it is on this machine)."""

import json
import logging
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from types import TracebackType
from typing import Any, Final, Self

from applier.model.errors import RetryableSinkError, SourceError
from applier.model.topic_name import PartitionLimits
from applier.sinks.overview import Overview
from applier.sinks.registry import open_sink
from applier.sinks.settings import SinkSettings
from applier.sources.kit import SourceKit
from applier.status.replica_status import Findings, ReplicaStatus, build_status, status_of_run
from applier.telemetry.log import KAFKA_LOGGER_NAME

KAFKA_LOGGER: Final = logging.getLogger(KAFKA_LOGGER_NAME)
SOURCE_PATIENCE_S: Final = 3.0
"""Short: an operator waits for the answer, and the sink alone gives most of it."""
RUN_PATIENCE_S: Final = 1.0
SINK_PATIENCE_S: Final = 5
MAX_STATUS_BYTES: Final = 64 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusTarget:
    """The replica to ask about. ``sink_address``: shown to people, without the password; ``http``: host and port of its run."""

    sink: SinkSettings
    sink_address: str
    source: SourceKit
    required_partitions: Mapping[str, int] | PartitionLimits | None
    http: tuple[str, int] | None


class StatusQuery:
    """Asks at each ``ask``; opens no connection before. It does not retry a sink that does not answer."""

    def __init__(self, target: StatusTarget) -> None:
        self._target = target
        self._sink = open_sink(replace(target.sink, retries=0, lock_wait_timeout_s=SINK_PATIENCE_S, silence_s=0))
        self._source = target.source.with_patience(SOURCE_PATIENCE_S).view()

    def ask(self) -> ReplicaStatus:
        """Return the status of the replica. SinkError if neither the sink nor a run on this machine answers."""
        target = self._target
        try:
            overview = self._sink.bookkeeping.overview()
        except RetryableSinkError as error:
            # A living run knows more than that the sink is away: since when, what it tries, and when it gives up.
            live = self._ask_run(None)
            if live is None:
                raise
            return status_of_run(
                target.sink.name, target.sink_address, live, error.message, time.time(), self._source.stored(None).timeline
            )
        # Only after the sink has named the owner: whatever else listens at the address must not be taken for it.
        live = self._ask_run(overview)
        state, problem = overview.progress.source_state if overview.progress else None, ""
        try:
            answer = self._source.ask(state)
        # The source only adds to the answer: during its outage the status is needed most.
        except SourceError as error:
            answer, problem = self._source.stored(state), error.message
        found = Findings(overview=overview, source=answer, source_problem=problem, live=live)
        return build_status(target.sink.name, target.sink_address, found, time.time(), target.required_partitions)

    def _ask_run(self, overview: Overview | None) -> Mapping[str, Any] | None:
        """Ask the run that owns the replica, if it is on this machine; None if it does not answer, or another run does.

        Without an ``overview`` the owner is not known: a run of this name is trusted.
        """
        http, view = self._target.http, overview.owner if overview is not None else None
        if http is None or (overview is not None and (view is None or view.owner.host != socket.gethostname())):
            return None
        # Not urllib: it would use the proxies of the environment.
        connection = HTTPConnection(*http, timeout=RUN_PATIENCE_S)
        try:
            connection.request("GET", "/status")
            response = connection.getresponse()
            found = json.loads(response.read(MAX_STATUS_BYTES)) if response.status == HTTPStatus.OK else None
        except (OSError, HTTPException, ValueError):
            return None
        finally:
            connection.close()
        # Believed by name and process, not by epoch: another replica's run may have the same one, and a reload raises it.
        if not isinstance(found, dict) or found.get("replica") != self._target.sink.name:
            return None
        return found if view is None or found.get("process") == view.owner.process else None

    def __enter__(self) -> Self:
        """Silence librdkafka: the answer itself says that no broker can be reached."""
        self._logged_level = KAFKA_LOGGER.level
        KAFKA_LOGGER.setLevel(logging.CRITICAL)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Close the connections."""
        self._source.close()
        self._sink.close()
        KAFKA_LOGGER.setLevel(self._logged_level)
