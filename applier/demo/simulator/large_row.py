"""Rows that are too large for a message: handle-key-only events, or objects in a store and placeholders (open_protocol.md 2.9)."""

import json
import random
from base64 import b64encode
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from uuid import UUID

from applier.demo.simulator.encoder import WireEvent, frame


class LargeRowOption(StrEnum):
    """``large-message-handle-option`` of a changefeed."""

    CLAIM_CHECK = "claim-check"
    HANDLE_KEY_ONLY = "handle-key-only"


@dataclass(frozen=True, slots=True, kw_only=True)
class LargeRowSettings:
    """How a changefeed sends rows beyond ``limit`` bytes.

    ``directory`` takes the objects of claim checks; ``location`` is what placeholders call it: the producer's own address of the store.
    """

    option: LargeRowOption
    limit: int = 900
    directory: Path | None = None
    location: str = "s3://changefeed/large"


class LargeRows:
    """The large rows of one owner."""

    def __init__(self, settings: LargeRowSettings, rng: random.Random) -> None:
        self.option, self.limit = settings.option, settings.limit
        self._settings = settings
        self._rng = rng

    def store(self, event: WireEvent) -> str:
        """Write the object of ``event`` and return its address. It is there before its placeholder is sent."""
        if self._settings.directory is None:
            message = "claim checks need a directory"
            raise ValueError(message)
        name = f"{UUID(int=self._rng.getrandbits(128), version=4)}.json"
        key, value = frame([event])
        content = {"key": b64encode(key).decode(), "value": b64encode(value).decode()}
        self._settings.directory.mkdir(parents=True, exist_ok=True)
        (self._settings.directory / name).write_text(json.dumps(content))
        return f"{self._settings.location}/{name}"
