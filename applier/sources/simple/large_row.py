"""Large rows of the simple protocol: a message with the handle key only; the whole row in an object, or in upstream.

Source: canal_json_and_simple.md 2.6, 4.6. An object holds the whole record value, as it is or in JSON as base64; nothing says which.
A delete by its handle key is complete.
"""

from binascii import a2b_base64
from typing import Final

from applier.model.errors import ProtocolError
from applier.sources.simple.message import ROWS, SimpleMessage, read_message
from applier.sources.ticdc.json_text import parse_object
from applier.sources.ticdc.large_row import differs

_MEMBERS: Final = {"key", "value"}


def read_object(content: bytes) -> SimpleMessage:
    """Return the row that an object holds. ProtocolError (claim_check, and the kinds of ``read_message``), without a position."""
    message = read_message(None, _record_value(content))
    if message.kind not in ROWS or message.is_reduced or message.claim_check:
        raise differs("it does not hold exactly one whole row")
    return message


def _record_value(content: bytes) -> bytes:
    try:
        members = parse_object(content)
    except ProtocolError:
        return content  # Avro, or compressed
    text = members.get("value")
    if members.keys() != _MEMBERS or not isinstance(text, str):
        return content
    try:
        return a2b_base64(text, strict_mode=True)
    except ValueError as cause:
        raise ProtocolError.at(None, "base64", "its value is not base64") from cause
