"""The TiCDC Open Protocol: bytes in, events out, nothing else (reference: the protocol's section 2 in DESIGN.md 5).

Two faces that agree on every record: ``decode_record`` for whole events, ``Placer`` and ``image_decoder`` for the applier's rows.
"""

from applier.protocol.claim_check import decode_claim_check
from applier.protocol.event import decode_record
from applier.protocol.event_json import event_to_json, value_to_json
from applier.protocol.placer import Placed, Placer
from applier.protocol.row_key import KEYLESS, decode_key, encode_key
from applier.protocol.salvage import Unplaced
from applier.protocol.shape_codec import ImageDecoder, image_decoder

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
