"""Image files from arrays."""

import io

import pytest
from PIL import Image

from omni_contract.wire.payload import Array
from omni_runtime.media.image import ImageEncoder, ImageFile, NotAnImageError, encode_image

WIDTH, HEIGHT = 40, 24
PIXELS = bytes(
    (x * 6 % 256, y * 10 % 256, x * y % 256)[channel]
    for y in range(HEIGHT)
    for x in range(WIDTH)
    for channel in range(3)
)
PICTURE = Array("uint8", (HEIGHT, WIDTH, 3), memoryview(PIXELS))


def test_png_loses_nothing() -> None:
    image = Image.open(io.BytesIO(encode_image(PICTURE, ImageFile("png"))))
    assert (image.format, image.size, image.tobytes()) == ("PNG", (WIDTH, HEIGHT), PIXELS)


@pytest.mark.parametrize("name", ["jpeg", "webp"])
def test_a_lower_quality_makes_a_smaller_file(name: str) -> None:
    best, worst = (encode_image(PICTURE, ImageFile(name, quality)) for quality in (100, 5))  # type: ignore[arg-type]
    assert len(worst) < len(best)
    assert Image.open(io.BytesIO(worst)).format == name.upper()


@pytest.mark.parametrize("shape", [(HEIGHT, WIDTH * 3), (HEIGHT, WIDTH * 3, 1), (1, HEIGHT, WIDTH, 3)])
def test_what_is_no_image_is_refused_with_its_shape(shape: tuple[int, ...]) -> None:
    with pytest.raises(NotAnImageError, match=r"uint8\[height, width, 3\], got uint8\["):
        encode_image(Array("uint8", shape, memoryview(PIXELS)), ImageFile())


async def test_encoding_happens_outside_of_the_event_loop_s_thread() -> None:
    assert await ImageEncoder().encode(PICTURE, ImageFile("png")) == encode_image(PICTURE, ImageFile("png"))
