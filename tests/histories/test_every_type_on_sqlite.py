"""Every type x edge value on SQLite: what its columns hold is exactly upstream's value (in process, in both producers' forms)."""

import sqlite3
import struct
from typing import Any

import pytest

from applier.demo.simulator.column_type import TypeClass
from applier.demo.simulator.encoder import EncodedColumn, Encoder, frame
from applier.demo.simulator.json_text import Flavour
from applier.demo.simulator.producer import LogRecord
from applier.demo.simulator.wire_format import WireEvent
from applier.model.position import Stream, Ts
from tests.integration.every_type import CASES, TypeCase
from tests.rig.fake_source import FakeSource
from tests.rig.local_replica import sqlite_replica

KEY = 11
STREAM = Stream("feed", 0)
EXACT = 2**63 - 1
CREATE_DATABASE, CREATE_TABLE = 1, 3


def log_of(flavour: Flavour) -> list[LogRecord]:
    encoder = Encoder(flavour)
    records = [frame([encoder.ddl(Ts(5), ("types", ""), "CREATE DATABASE `types`", CREATE_DATABASE)])]
    for number, one in enumerate(CASES):
        ts, name = 10 + 2 * number, f"t{number}"
        upstream = "VECTOR" if one.type.code == 225 else one.type.sql
        query = f"CREATE TABLE `{name}` (`id` INT PRIMARY KEY,`v` {upstream} NULL)"
        records.append(frame([encoder.ddl(Ts(ts), ("types", name), query, CREATE_TABLE)]))
        writer = encoder.image_writer((EncodedColumn("id", 3, KEY), EncodedColumn("v", one.type.code, one.type.flags | 64)))
        key = encoder.row_key(Ts(ts + 1), "types", name)
        records.append(frame([WireEvent(key, encoder.row_value(after=writer.write(row))) for row in enumerate(one.values)]))
    records.append(frame([encoder.resolved(Ts(10_000))]))
    return [LogRecord(STREAM, *record, 1_000) for record in records]


def stored(one: TypeCase, value: Any) -> Any:
    """What SQLite holds: labels, decimals and times as text, and an integer beyond 63 bits as its digits."""
    match one.type.kind:
        case TypeClass.ENUM if value is not None:
            return one.type.labels[value - 1] if value else ""
        case TypeClass.SET if value is not None:
            return ",".join(label for bit, label in enumerate(one.type.labels) if value >> bit & 1)
        case TypeClass.FLOAT if value:
            # The double of the shortest text of the 32-bit number, which is what the wire carries.
            return next(float(text) for digits in range(1, 10) if as_single(float(text := f"{value:.{digits}g}")) == as_single(value))
        case _:
            return str(value) if isinstance(value, int) and value > EXACT else value


def as_single(value: float) -> float:
    try:
        return struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        return float("inf")


@pytest.mark.parametrize("flavour", Flavour)
def test_s17_s18_s19_every_type_is_stored_exactly(flavour, tmp_path, subtests):
    sqlite_replica(tmp_path, FakeSource(log_of(flavour))).catch_up()
    with sqlite3.connect(tmp_path / "replica.db") as connection:
        for number, one in enumerate(CASES):
            with subtests.test(str(one)):
                found = [value for _, value in connection.execute(f'SELECT id, v FROM "types.t{number}" ORDER BY id')]
                expected = [stored(one, value) for value in one.values]
                assert found == expected
                assert list(map(type, found)) == list(map(type, expected))
