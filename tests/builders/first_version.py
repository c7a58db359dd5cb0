"""The replica that the first version of the applier has left half-way (tests/data/first_version)."""

import json
from base64 import b64decode
from pathlib import Path

from applier.demo.simulator.producer import LogRecord
from applier.model.position import Stream, Ts

DATA = Path(__file__).parent.parent / "data" / "first_version"
HALF_TS = Ts(462422022883377154)
"""The checkpoint of the replica that was left."""
END_TS = Ts(462422027848384559)
"""The last common resolved ts of the changefeed."""


def text(name: str) -> str:
    return (DATA / name).read_text(encoding="utf-8")


def changefeed(topic: str = "changefeed") -> list[LogRecord]:
    """All records, in the order in which they were produced."""
    records = [json.loads(line) for line in text("changefeed.jsonl").splitlines()]
    return [
        LogRecord(Stream(topic, record["partition"]), b64decode(record["key"]), b64decode(record["value"]), record["time_ms"])
        for record in records
    ]
