"""-0.0, which Go writes as -0: JSON readers take that for the integer 0."""

import pytest

from applier.sources.column_flags import shape_of
from applier.sources.open_protocol import image_decoder
from applier.sources.open_protocol.image_codec import images_decoder
from applier.sources.open_protocol.record import read_image


@pytest.mark.parametrize("flags", [1, 65])
@pytest.mark.parametrize("number", ["-0", "-0.0", "-0e0"])
def test_a_zero_keeps_its_sign_alone_and_among_others(number, flags):
    columns = (("v", 5, flags), ("n", 3, 1))
    image = f'{{"v":{{"t":5,"f":{flags},"v":{number}}},"n":{{"t":3,"f":1,"v":0}}}}'.encode()
    other = image.replace(number.encode(), b"-0.5")
    shape = shape_of("shop", "orders", columns)
    for _ in range(300):  # until the decoder is compiled
        assert repr(list(image_decoder(shape)(image))) == "[-0.0, 0]"
        assert [repr(list(column)) for column in images_decoder(shape)([other, image, image])] == ["[-0.5, -0.0, -0.0]", "[0, 0, 0]"]
    assert repr(read_image(image)["v"].value) == "-0.0"


def test_a_text_that_looks_like_a_signed_zero_stays():
    image = b'{"v":{"t":5,"f":1,"v":0},"w":{"t":15,"v":"{\\"t\\":5,\\"f\\":1,\\"v\\":-0}"}}'
    assert read_image(image)["w"].value == '{"t":5,"f":1,"v":-0}'
