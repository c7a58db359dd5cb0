import pytest

from applier.model.errors import InvariantViolation
from applier.sources.open_protocol import KEYLESS, decode_key, encode_key


@pytest.mark.parametrize(
    "values",
    [
        [0],
        [-1, 2**64 - 1, -(2**63)],
        ["", "é😀\0", None],
        [b"", b"\xff"],
        [1.5],
        ["caf\udce9", "plain", b"x"],
        [f"{chr(0xDC80)}{chr(0xDCFF)}"],
    ],
)
def test_key_gives_its_values_back(values):
    assert decode_key(encode_key(values)) == values


def test_no_values_are_no_key():
    assert encode_key([]) == KEYLESS
    assert decode_key(KEYLESS) == []


def test_types_distinguish_keys():
    keys = [encode_key([value]) for value in (1, "1", b"1", None, "\udcff", b"\xff")]
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize("data", [b"\x01", b"\x91", b"\xff", b"\x91\xa1\xff", b"\x91\xd4\x05\x00"])
def test_bytes_that_are_no_key_are_our_defect(data):
    with pytest.raises(InvariantViolation):
        decode_key(data)
