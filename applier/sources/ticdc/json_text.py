"""JSON, exactly: integers of any size that a column can have, no NaN, the last of repeated members, bytes that are not UTF-8.

Two parsers with one result. msgspec reads what is valid UTF-8. The new producer copies invalid text as it is; such a document is
decoded with surrogateescape (each foreign byte becomes U+DC00 + byte) and read by the standard library. So that a lone surrogate can
only mean a foreign byte, an *escaped* lone surrogate is refused by both: no producer writes one. Both refuse integers of more than
4300 digits.
"""

import json
import re
from collections.abc import Mapping
from typing import Any, NoReturn

import msgspec

from applier.model.errors import ProtocolError

_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode
_ESCAPE = re.compile(r"\\(?:u(d[89ab]..)(?:\\u(d[c-f]..))?|u(d[c-f]..)|.)", re.IGNORECASE | re.DOTALL)


def parse(data: bytes) -> Any:
    """Return the document as dicts, lists, str, int, float, bool, None. ProtocolError (json)."""
    try:
        return _decode(data)
    except UnicodeDecodeError:
        return _parse_foreign(data)
    except (msgspec.DecodeError, RecursionError) as cause:
        raise refuse("the text is not JSON") from cause


def parse_object(data: bytes) -> dict[str, Any]:
    """Return the document, which must be an object. ProtocolError (json)."""
    document = parse(data)
    if not isinstance(document, dict):
        raise refuse("the text is not a JSON object")
    return document


def write(document: Mapping[str, Any]) -> bytes:
    """Return the JSON of an object; a lone surrogate becomes the byte that it was."""
    try:
        return _encode(document)
    except UnicodeEncodeError:
        return json.dumps(document, ensure_ascii=False).encode("utf-8", "surrogateescape")


def refuse(message: str) -> ProtocolError:
    """Make the error of a text that is not JSON."""
    return ProtocolError.at(None, "json", message)


def is_valid_text(text: str) -> bool:
    """Whether the text is free of bytes that were not UTF-8 (lone surrogates)."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _parse_foreign(data: bytes) -> Any:
    text = data.decode("utf-8", "surrogateescape")
    if any(match[3] or (match[1] and not match[2]) for match in _ESCAPE.finditer(text)):
        raise refuse("an escape is half a surrogate pair")
    try:
        return json.loads(text, parse_constant=_refuse_constant, parse_float=_parse_float)
    except (ValueError, RecursionError) as cause:
        raise refuse("the text is not JSON") from cause


def _refuse_constant(word: str) -> NoReturn:
    message = f"{word} is not JSON"
    raise ValueError(message)


def _parse_float(text: str) -> float:
    number = float(text)
    if number in (float("inf"), float("-inf")):
        message = "number out of range"
        raise ValueError(message)
    return number
