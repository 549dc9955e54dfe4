"""Messages with pictures, sound and video: by name, as the judges take them, and as the frontend hands them on."""

import json
from pathlib import Path

import numpy

from omni_contract.wire.payload import Array
from tests.support.judges import ask

RATE = 16_000


def media() -> dict[str, numpy.ndarray]:
    random = numpy.random.default_rng(0)
    return {
        "picture": random.integers(0, 255, (56, 56, 3), dtype=numpy.uint8),
        "wide": random.integers(0, 255, (56, 112, 3), dtype=numpy.uint8),
        "sound": random.standard_normal(RATE, dtype=numpy.float32),
        "word": random.standard_normal(RATE // 2, dtype=numpy.float32),
        "video": random.integers(0, 255, (4, 56, 56, 3), dtype=numpy.uint8),
    }


MEDIA = media()


def said(*parts):
    return [
        {"role": "user", "content": [{"type": "text", "text": one} if isinstance(one, str) else one for one in parts]}
    ]


def part(kind, name, **more):
    return {"type": kind, "name": name, **more}


def as_array(name):
    data = MEDIA[name]
    return Array(str(data.dtype), data.shape, memoryview(numpy.ascontiguousarray(data)).cast("B"))


def sound_of(video):
    return {"audio": as_array(video["audio"]), "sample_rate": RATE} if "audio" in video else {}


def as_payload(messages):
    """As the frontend hands it on: arrays in place of names."""

    def resolved(one):
        if one["type"] == "text":
            return one
        array = as_array(one["name"])
        match one["type"]:
            case "image":
                return {"type": "image", "image": array}
            case "audio":
                return {"type": "audio", "audio": array, "sample_rate": RATE}
            case _:
                return {"type": "video", "frames": array, "fps": 2.0} | sound_of(one)

    return {"messages": [{**message, "content": [resolved(one) for one in message["content"]]} for message in messages]}


def judged(script: str, model: Path, requests, folder: Path):
    """The arrays that a judge, a script of this folder, makes of the requests; `folder` is for its files."""
    numpy.savez(folder / "media.npz", **MEDIA)
    arguments = [model, folder / "media.npz", folder / "out.npz"]
    ask(Path(__file__).with_name(script), arguments, json.dumps(requests))
    return numpy.load(folder / "out.npz")
