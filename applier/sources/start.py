"""Where a source begins to read: the position of a replica, or where a new one begins."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from applier.model.position import Stream, StreamPosition, Ts
from applier.model.xa_store import XaStore


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaPosition:
    """A replica's position, as the sink has it. ``state``: what ``Source.state_at`` returned for ``checkpoint_ts`` or before."""

    checkpoint_ts: Ts
    positions: Mapping[Stream, StreamPosition]
    state: str | None = None
    xa: XaStore | None = None
    """Where the source may keep prepared transactions; None: nowhere, and it reads them again from upstream."""


class StartPoint(NamedTuple):
    """Where a new replica begins: what the sink was loaded from, or where the operator says."""

    start_ts: Ts
    state: str | None = None
