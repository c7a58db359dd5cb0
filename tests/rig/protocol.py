"""The format that a test's changefeed writes: APPLIER_TEST_PROTOCOL names one for all; without it random histories are divided among them.

Each seed has one format, so the formats cost no more time than one. What is not drawn from a seed is Open Protocol, unless one is named.
"""

import os
import random

import cramjam
import lz4.frame

from applier.demo.simulator.producer import LogRecord, ProducerOptions
from applier.demo.simulator.table_family import USUAL_FAMILIES, TableFamily
from applier.demo.simulator.wire_format import WireFormat
from applier.sources.formats import FORMATS

CHOSEN = "APPLIER_TEST_PROTOCOL"
"""open-protocol, canal-json, simple or simple-avro."""
PARTITIONED_SHARE = 0.35
SHARES = {WireFormat.OPEN_PROTOCOL: 4, WireFormat.CANAL_JSON: 2, WireFormat.SIMPLE: 1, WireFormat.SIMPLE_AVRO: 1}


def chosen_form(usual: WireFormat = WireFormat.OPEN_PROTOCOL) -> WireFormat:
    """Return the format of what is not drawn from a seed; ``usual``: where none is named."""
    return WireFormat(os.environ.get(CHOSEN, usual))


def form_of(seed: int) -> WireFormat:
    """Return the format of the history of a seed."""
    if CHOSEN in os.environ:
        return chosen_form()
    forms = [form for form in SHARES if form.protocol in FORMATS]
    # Not by a remainder: dispatchers, partitions and forms of the wire are chosen so.
    return random.Random(f"format {seed}").choices(forms, [SHARES[form] for form in forms])[0]


def in_format(options: ProducerOptions, form: WireFormat | None = None) -> ProducerOptions:
    """Return the options of a changefeed that writes ``form``, or the format of its seed."""
    form = form or form_of(options.seed)
    return options if form is WireFormat.OPEN_PROTOCOL else options.written_as(form)


def families_of(seed: int) -> frozenset[TableFamily]:
    """Return the tables of the history of a seed: some histories have partitioned ones besides."""
    is_partitioned = random.Random(f"partitioned tables {seed}").random() < PARTITIONED_SHARE
    return USUAL_FAMILIES | {TableFamily.PARTITIONED} if is_partitioned else USUAL_FAMILIES


def is_watermark(record: LogRecord) -> bool:
    """Whether a record ends with a promise, in any format, compressed as the simulator does."""
    if record.key is not None:
        return record.key.endswith(b'"t":3}')
    value = record.value
    if value.startswith(b"\x04\x22\x4d\x18"):
        value = lz4.frame.decompress(value)
    elif not value.startswith((b"{", b"\x16")):
        value = bytes(cramjam.snappy.decompress_raw(value))
    return b'"type":"TIDB_WATERMARK"' in value or b'"type":"WATERMARK"' in value or b"\x16\0\0\2" in value[:8]
