import math
from itertools import islice
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omni_runtime.bench.sampler import Bucket, MediaMix, SamplingError, around, arrivals, sentence

IMAGE, VIDEO, SOUND = Bucket(256, 256, 1), Bucket(64, 64, 8), Bucket(0, 2, 1)


def mix(base: int = 3, ratio: float = 0.5, **limits: int) -> MediaMix:
    return MediaMix(base, ratio, {"image": 2, "video": 1, "audio": 1, **limits}, {IMAGE: 0.5, VIDEO: 0.25, SOUND: 0.25})


def test_a_seed_draws_the_same_lengths_on_every_machine() -> None:
    dice = Random(7)
    assert [around(dice, 10, 0.5) for _ in range(12)] == [10, 7, 11, 15, 5, 6, 13, 6, 10, 14, 5, 13]


@given(base=st.integers(0, 5000), ratio=st.floats(0, 1), seed=st.integers(0, 99))
def test_a_length_lies_in_its_range(base: int, ratio: float, seed: int) -> None:
    assert math.floor(base * (1 - ratio)) <= around(Random(seed), base, ratio) <= math.ceil(base * (1 + ratio))


def test_a_seed_draws_the_same_media_on_every_machine() -> None:
    dice = Random(7)
    assert [mix().draw(dice) for _ in range(4)] == [
        [SOUND, IMAGE, IMAGE],
        [IMAGE, VIDEO, SOUND, IMAGE],
        [IMAGE],
        [IMAGE],
    ]


def test_a_bucket_is_of_the_kind_that_its_shape_says() -> None:
    assert [bucket.kind for bucket in (IMAGE, VIDEO, SOUND)] == ["image", "video", "audio"]


@given(seed=st.integers(0, 999), base=st.integers(0, 4), ratio=st.floats(0, 1))
def test_no_kind_comes_more_often_than_its_limit_and_the_number_is_in_its_range(
    seed: int, base: int, ratio: float
) -> None:
    drawn = [bucket.kind for bucket in mix(base, ratio).draw(Random(seed))]
    assert all(drawn.count(kind) <= most for kind, most in (("image", 2), ("video", 1), ("audio", 1)))
    assert min(4, math.floor(base * (1 - ratio))) <= len(drawn) <= min(4, math.ceil(base * (1 + ratio)))


def test_buckets_are_drawn_by_their_weights_whatever_their_sum() -> None:
    many = MediaMix(1000, 0.0, {"image": 1000, "video": 1000}, {IMAGE: 3.0, VIDEO: 1.0})
    kinds = [bucket.kind for bucket in many.draw(Random(0))]
    assert kinds.count("image") == pytest.approx(750, abs=50)


def test_a_bucket_without_weight_is_never_drawn() -> None:
    only = MediaMix(5, 0.0, {"image": 9, "video": 9}, {IMAGE: 1.0, VIDEO: 0.0})
    assert only.draw(Random(0)) == [IMAGE] * 5


def test_more_items_than_the_limits_allow_are_refused_and_not_cut_down() -> None:
    with pytest.raises(SamplingError, match="5 items in each request are more than the 4 that their kinds allow"):
        mix(base=5)
    with pytest.raises(SamplingError, match="1 items in each request are more than the 0"):
        MediaMix(1, 0.0, {"image": 9}, {VIDEO: 1.0})


def test_a_seed_draws_the_same_arrivals_on_every_machine() -> None:
    assert list(islice(arrivals(Random(7), 4.0, 1.0), 4)) == pytest.approx(
        [0.0, 0.097829, 0.138708, 0.401832], abs=1e-6
    )
    assert list(islice(arrivals(Random(7), 4.0, 0.5), 4)) == pytest.approx(
        [0.0, 0.073497, 0.370461, 0.571726], abs=1e-6
    )


@pytest.mark.parametrize("burstiness", [0.5, 1.0, 20.0])
def test_requests_come_at_the_rate_however_bursty(burstiness: float) -> None:
    times = list(islice(arrivals(Random(1), 10.0, burstiness), 4001))
    assert times[-1] == pytest.approx(400, rel=0.1)


def test_an_infinite_rate_sends_all_at_once() -> None:
    assert list(islice(arrivals(Random(0), math.inf, 1.0), 3)) == [0.0, 0.0, 0.0]


def test_a_sentence_has_as_many_words_as_it_shall() -> None:
    assert sentence(Random(7), ("a", "b", "c"), 4) == "a a b a"
