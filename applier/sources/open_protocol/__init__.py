"""The TiCDC Open Protocol: bytes in, events out, nothing else (reference: the protocol's section 2 in DESIGN.md 5).

Two faces that agree on every record: ``decode_record`` for whole events, ``Placer`` and ``image_decoder`` for the applier's rows.
"""

from applier.sources.open_protocol.claim_check import decode_claim_check
from applier.sources.open_protocol.event import decode_record
from applier.sources.open_protocol.event_json import event_to_json, value_to_json
from applier.sources.open_protocol.placer import Placed, Placer
from applier.sources.open_protocol.row_key import KEYLESS, decode_key, encode_key
from applier.sources.open_protocol.salvage import Unplaced
from applier.sources.open_protocol.shape_codec import ImageDecoder, image_decoder

__all__ = [
    "KEYLESS",
    "ImageDecoder",
    "Placed",
    "Placer",
    "Unplaced",
    "decode_claim_check",
    "decode_key",
    "decode_record",
    "encode_key",
    "event_to_json",
    "image_decoder",
    "value_to_json",
]
