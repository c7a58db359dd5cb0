"""The TiCDC Open Protocol: bytes in, events out, nothing else (DESIGN.md 5).

May import ``model`` and ``sources.port``. Read ``decoder`` first: it is what others are given. Two ways agree on every record:
``decode_record`` for whole events, ``OpenProtocolPlacer`` and ``image_decoder`` for the applier's rows.
"""

from applier.sources.open_protocol.decoder import OPEN_PROTOCOL, OpenProtocolDecoder
from applier.sources.open_protocol.image_codec import image_decoder, images_decoder
from applier.sources.open_protocol.placer import OpenProtocolPlacer, read_claim_check
from applier.sources.open_protocol.record import decode_record
from applier.sources.row_key import KEYLESS, decode_key, encode_key
from applier.sources.ticdc.large_row import ClaimCheckStore

__all__ = [
    "KEYLESS",
    "OPEN_PROTOCOL",
    "ClaimCheckStore",
    "OpenProtocolDecoder",
    "OpenProtocolPlacer",
    "decode_key",
    "decode_record",
    "encode_key",
    "image_decoder",
    "images_decoder",
    "read_claim_check",
]
