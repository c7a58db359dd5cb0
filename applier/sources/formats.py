"""The formats that the records of a topic may have, by their names in ``source.protocol``. Only this registry names a format.

A format is a package of its own: bytes in, events out. It gives a class that implements ``Decoder``, and nothing else knows of it.
"""

from typing import Final, Protocol

from applier.selection import TableSelection
from applier.sources.canal_json.decoder import CanalJsonDecoder
from applier.sources.open_protocol.decoder import OpenProtocolDecoder
from applier.sources.port import Decoder
from applier.sources.simple.decoder import SimpleDecoder
from applier.sources.ticdc.large_row import WholeRowSources


class DecoderMaker(Protocol):
    """Makes the decoder of a format. What it returns is frozen and picklable."""

    def __call__(self, whole_rows: WholeRowSources, selection: TableSelection) -> Decoder:
        """``whole_rows``: where rows are found that were too large for Kafka. ``selection``: what the placers give of upstream."""
        ...


DEFAULT: Final = "open-protocol"
FORMATS: Final[dict[str, DecoderMaker]] = {DEFAULT: OpenProtocolDecoder, "canal-json": CanalJsonDecoder, "simple": SimpleDecoder}
