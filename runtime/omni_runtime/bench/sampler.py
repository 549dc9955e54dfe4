"""Pure: how many tokens, which media, and when, drawn from a seed. The same seed draws the same on every machine."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Literal, TypeAlias

Kind: TypeAlias = Literal["image", "video", "audio"]


class SamplingError(ValueError):
    """What is asked for cannot be drawn; the text says why."""


@dataclass(frozen=True)
class Bucket:
    """A shape of media: one frame is an image, several are a video; without a height it is a sound, whose width is
    its seconds and whose frames are its channels."""

    height: int
    width: int
    frames: int

    @property
    def kind(self) -> Kind:
        if self.height == 0:
            return "audio"
        return "image" if self.frames == 1 else "video"


@dataclass(frozen=True)
class MediaMix:
    """`limits` are the most of each kind in a request; `buckets` have weights of any sum."""

    base_items: int
    range_ratio: float
    limits: Mapping[Kind, int]
    buckets: Mapping[Bucket, float]

    def __post_init__(self) -> None:
        """Raises SamplingError; too many items are not cut down in silence."""
        if self.base_items > self.most_items:
            text = f"{self.base_items} items in each request are more than the {self.most_items} that their kinds allow"
            raise SamplingError(f"{text}; raise --random-mm-limit-mm-per-prompt or add a bucket")

    @property
    def most_items(self) -> int:
        kinds = {bucket.kind for bucket, weight in self.buckets.items() if weight > 0}
        return sum(self.limits.get(kind, 0) for kind in kinds)

    def draw(self, dice: Random) -> list[Bucket]:
        """The media of one request."""
        count = min(around(dice, self.base_items, self.range_ratio), self.most_items)
        left, drawn = dict(self.limits), list[Bucket]()
        for _ in range(count):
            # A kind that has reached its limit leaves, and what stays has its share.
            open_to = {one: weight for one, weight in self.buckets.items() if weight > 0 and left.get(one.kind, 0) > 0}
            bucket = dice.choices(list(open_to), list(open_to.values()))[0]
            left[bucket.kind] -= 1
            drawn.append(bucket)
        return drawn


def around(dice: Random, base: int, ratio: float) -> int:
    """A whole number from floor(base (1 - ratio)) to ceil(base (1 + ratio)), each as likely as the others."""
    return dice.randint(math.floor(base * (1 - ratio)), math.ceil(base * (1 + ratio)))


def sentence(dice: Random, words: Sequence[str], count: int) -> str:
    return " ".join(dice.choices(words, k=count))


def arrivals(dice: Random, rate: float, burstiness: float) -> Iterator[float]:
    """Seconds from the start at which requests come: a Poisson process for burstiness 1, in bursts below, evener above.

    An infinite rate lets all of them come at once.
    """
    at_s = 0.0
    while True:
        yield at_s
        if math.isfinite(rate):
            at_s += dice.gammavariate(burstiness, 1 / (rate * burstiness))
