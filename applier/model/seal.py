"""Values as bytes that show a change: a pickle and its CRC-32, for everything that is in a file or crosses a socket between two tasks.

A changed byte of a row is a valid row as a rule, and would be committed. Spark compares no checksums of its own
if ``spark.shuffle.compress`` is false, and files of Python workers have no checksum at all.
"""

import pickle
from typing import Any, Final
from zlib import crc32

from applier.model.errors import DamagedData, Remedy

CHECKSUM_BYTES: Final = 4

REMEDY: Final = Remedy(
    "record.report-repeated-damage",
    "The applier reads the records again automatically. If it repeats, examine the disk of spark.local.dir and the memory of this machine",
)


def seal(value: Any) -> bytes:
    """Return a value as bytes, with their checksum."""
    data = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    return data + crc32(data).to_bytes(CHECKSUM_BYTES, "big")


def unseal(data: bytes) -> Any:
    """Return the value. DamagedData: the bytes are not what ``seal`` returned."""
    # A view: a slice would copy half a megabyte of rows each time.
    content, checksum = memoryview(data)[:-CHECKSUM_BYTES], data[-CHECKSUM_BYTES:]
    if crc32(content).to_bytes(CHECKSUM_BYTES, "big") != checksum:
        raise DamagedData("data between two Spark tasks is damaged: its checksum is wrong", remedy=REMEDY, bytes=len(data))
    return pickle.loads(content)  # noqa: S301 - our own bytes
