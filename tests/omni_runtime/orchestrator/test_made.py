"""What is counted of an answer."""

import pytest

from omni_contract.wire.payload import DTYPES, Array
from omni_runtime.orchestrator.made import NOTHING_MADE, Made, made_of


def array(dtype: str, *shape: int) -> Array:
    size_bytes = DTYPES[dtype]
    for side in shape:
        size_bytes *= side
    return Array(dtype, shape, memoryview(bytes(size_bytes)))


@pytest.mark.parametrize(
    ("payload", "made"),
    [
        ({"image": array("uint8", 4, 8, 3)}, Made(1, "8x4")),
        ({"image": array("uint8", 5, 4, 8, 3)}, Made(5, "8x4")),
        ({"audio": array("float32", 900)}, Made(audio_frames=900)),
        ({"audio": array("float32", 2, 900)}, Made(audio_frames=900)),
        ({"audio": array("float32", 900), "sample_rate": 300}, Made(audio_frames=900, audio_s=3.0)),
        ({"audio": array("float32", 900), "sample_rate": 0}, Made(audio_frames=900)),
        ({"image": array("uint8", 7)}, NOTHING_MADE),
        ({"image": "a fox", "text": "a fox"}, NOTHING_MADE),
    ],
)
def test_pictures_and_samples_are_counted_by_the_shape_of_their_arrays(payload: dict[str, Array], made: Made) -> None:
    assert made_of([payload]) == made


def test_parts_of_an_answer_add_up() -> None:
    assert made_of([{"audio": array("int16", 10)}, {"audio": array("int16", 5)}, {}]) == Made(audio_frames=15)
