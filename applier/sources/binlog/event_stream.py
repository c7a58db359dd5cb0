"""The events of a binlog from a place on, as they come: a dump and its framing. Never goes back and never connects again by itself."""

import time
from typing import Self

from applier.sources.binlog.connection import Dump
from applier.sources.binlog.event import BinlogEvent
from applier.sources.binlog.framing import Framing
from applier.sources.binlog.position import BinlogPosition, file_name
from applier.sources.binlog.refusal import ended
from applier.sources.binlog.settings import BinlogSettings


class EventStream:
    """Reads from the number ``place`` on; connects when it is made. Not thread-safe.

    ``bodies``: whether the content of rows is wanted. Without, ``data`` is None for events that say nothing about groups, and their
    checksums are not compared. ``server``: its identity; SourceError "other_server" if another one answers.
    """

    def __init__(self, settings: BinlogSettings, base_name: str, place: int, *, bodies: bool, server: str = "") -> None:
        position = BinlogPosition.of(place)
        self._patience_s = settings.unreachable_after_s
        self._framing = Framing(base_name, place, bodies=bodies)
        self._dump = Dump(settings, server, file_name(base_name, position.file), position.position)
        self._heard_s = time.monotonic()
        self._given_back: list[BinlogEvent] = []

    @property
    def place(self) -> int:
        """The number behind the last event that ``read`` has returned and that was not given back."""
        return self._given_back[0].begin if self._given_back else self._framing.place

    @property
    def is_mariadb(self) -> bool:
        """Whether MariaDB has written the file that the last event came from."""
        return self._framing.is_mariadb

    def read(self, timeout_s: float) -> list[BinlogEvent]:
        """Return the next events; none if none came in time.

        SourceError: "unreachable" (the connection was lost, or nothing came, not even a heartbeat, for unreachable_after_s), "purged",
        "other_log", "position", "checksum". The events before the place of an error have come.
        """
        if self._given_back:
            events, self._given_back = self._given_back, []
            return events
        give_up_s = time.monotonic() + timeout_s
        while not (events := self._framing.events()):
            left_s = give_up_s - time.monotonic()
            if left_s <= 0:
                self._check_silence()
                return []
            buffer = self._framing.buffer
            if size := self._dump.receive(buffer.room(), left_s, self._framing.at):
                buffer.took(size)
                self._heard_s = time.monotonic()
        return events

    def give_back(self, events: list[BinlogEvent]) -> None:
        """Push events back: the next ``read`` returns them. They are the last ones of the last call."""
        self._given_back = events

    def close(self) -> None:
        """End the dump."""
        self._dump.close()

    def _check_silence(self) -> None:
        silent_s = time.monotonic() - self._heard_s
        if silent_s >= self._patience_s:
            raise ended("the server of the binlog is silent", self._framing.at, silent_s=round(silent_s))

    def __enter__(self) -> Self:
        """Use as a context manager."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close."""
        self.close()
