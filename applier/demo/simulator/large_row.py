"""Rows that are too large for a message: handle-key-only events, or objects in a store and placeholders (open_protocol.md 2.9)."""

import json
import random
from base64 import b64encode
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from uuid import UUID

from applier.demo.simulator.wire_format import RecordBytes


class LargeRowOption(StrEnum):
    """``large-message-handle-option`` of a changefeed."""

    CLAIM_CHECK = "claim-check"
    HANDLE_KEY_ONLY = "handle-key-only"


@dataclass(frozen=True, slots=True, kw_only=True)
class LargeRowSettings:
    """How a changefeed sends rows beyond ``limit`` bytes.

    ``directory`` takes the objects of claim checks; ``location`` is what placeholders call it: the producer's own address of the store.
    ``raw_value``: an object is the value of the record, where the record has no key (``claim-check-raw-value``).
    """

    option: LargeRowOption
    limit: int = 900
    directory: Path | None = None
    location: str = "s3://changefeed/large"
    raw_value: bool = False


class LargeRows:
    """The large rows of one owner."""

    def __init__(self, settings: LargeRowSettings, rng: random.Random) -> None:
        self.option, self.limit = settings.option, settings.limit
        self._settings = settings
        self._rng = rng

    def store(self, record: RecordBytes) -> str:
        """Write the object of a record and return its address. It is there before its placeholder is sent."""
        if self._settings.directory is None:
            message = "claim checks need a directory"
            raise ValueError(message)
        name = f"{UUID(int=self._rng.getrandbits(128), version=4)}.json"
        self._settings.directory.mkdir(parents=True, exist_ok=True)
        (self._settings.directory / name).write_bytes(self._content(record))
        return f"{self._settings.location}/{name}"

    def _content(self, record: RecordBytes) -> bytes:
        if self._settings.raw_value and record.key is None:
            return record.value
        key = None if record.key is None else b64encode(record.key).decode()
        return json.dumps({"key": key, "value": b64encode(record.value).decode()}).encode()
