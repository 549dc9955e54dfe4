"""The judge of Qwen3-TTS: the unmodified qwen-tts package in an environment of its own, importing nothing of ours.

usage: python qwen_tts_reference.py MODEL_DIR OUT.npz < requests.json
Each request holds a `text`, the number of `frames`, a `seed`, whether the model samples, and fields of its task. The
package drops a speech's last frame where the limit ends it, so it is asked for one more.
"""

import json
import sys
from typing import Any

import numpy
import torch
from qwen_tts import Qwen3TTSModel


def main(model_dir: str, out: str) -> None:
    torch.set_num_threads(1)
    model = Qwen3TTSModel.from_pretrained(model_dir)
    made: dict[str, Any] = {}
    for position, request in enumerate(json.load(sys.stdin)):
        made |= {f"{position}.{name}": value for name, value in spoken(model, request).items()}
    numpy.savez(out, **made)


def spoken(model: Any, request: dict[str, Any]) -> dict[str, Any]:
    generate, seen = model.model.generate, {}

    def kept(**settings: Any) -> Any:
        seen["codes"], states = generate(**settings)
        return seen["codes"], states

    model.model.generate = kept
    torch.manual_seed(request["seed"])
    speak = {
        "custom_voice": model.generate_custom_voice,
        "voice_design": model.generate_voice_design,
        "base": model.generate_voice_clone,
    }[model.model.tts_model_type]
    samples = request["samples"]
    fields = {name: request[name] for name in FIELDS if name in request}
    if "ref_audio" in fields:
        fields["ref_audio"] = (numpy.array(fields["ref_audio"], dtype=numpy.float32), request["sample_rate"])
    settings = {"do_sample": samples, "subtalker_dosample": samples, "max_new_tokens": request["frames"] + 1}
    [sound], rate = speak(request["text"], **fields, **settings)
    model.model.generate = generate
    assert rate == 24_000
    return {"codes": seen["codes"][0].T.numpy(), "sound": sound}


FIELDS = ("speaker", "language", "instruct", "ref_audio", "ref_text", "x_vector_only_mode", "non_streaming_mode")

if __name__ == "__main__":
    main(*sys.argv[1:])
