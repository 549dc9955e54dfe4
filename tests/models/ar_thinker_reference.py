"""The judge of thinkers: plain transformers in a process of its own that imports nothing of ours.

usage: python ar_thinker_reference.py MODEL_DIR MEDIA.npz < requests.json > answers.npz
A request is a list of messages whose media parts name arrays of MEDIA. For each, the tokens and the hidden states that
`generate` makes of it, greedily and with a fixed length: "TOKENS" and "LAYER.NUMBER" arrays by request, and where its
prompt's tokens were placed, "POSITIONS".
"""

import json
import sys

import numpy
import torch
from PIL import Image
from transformers import AutoConfig, AutoProcessor, Qwen2_5OmniThinkerForConditionalGeneration

LENGTH = 12
RATE = 16_000


def main(folder: str, media: str, out: str) -> None:
    torch.set_num_threads(1)
    config = AutoConfig.from_pretrained(folder)
    kind = Qwen2_5OmniThinkerForConditionalGeneration
    model = kind.from_pretrained(folder, config=config.thinker_config, dtype=torch.float32).eval()
    processor = AutoProcessor.from_pretrained(folder)
    arrays, made, located = numpy.load(media), {}, []
    model.model.register_forward_pre_hook(
        lambda _, args, kwargs: located.append(kwargs["position_ids"][-3:, 0].T), with_kwargs=True
    )
    for number, messages in enumerate(json.load(sys.stdin)):
        inputs = inputs_of(processor, messages, arrays)
        located.clear()
        answer = model.generate(
            **inputs,
            use_audio_in_video=bool(sounds_of_videos(messages)),
            max_new_tokens=LENGTH,
            min_new_tokens=LENGTH,
            do_sample=False,
            output_hidden_states=True,
            return_dict_in_generate=True,
        )
        length = inputs["input_ids"].shape[1]
        made[f"prompt.{number}"] = inputs["input_ids"][0].numpy()
        made[f"positions.{number}"] = located[0].numpy()
        made[f"tokens.{number}"] = answer.sequences[0, length:].numpy()
        for layer in range(len(answer.hidden_states[0])):
            rows = [step[layer][0] for step in answer.hidden_states]
            made[f"states.{layer}.{number}"] = torch.cat(rows).numpy()
    numpy.savez(out, **made)


def inputs_of(processor, messages, arrays):
    parts = [part for message in messages for part in message["content"]]
    told = [
        {
            "role": message["role"],
            "content": [{key: part[key] for key in ("type", "text") if key in part} for part in message["content"]],
        }
        for message in messages
    ]
    text = processor.apply_chat_template(told, add_generation_prompt=True, tokenize=False)
    media = {
        "images": [Image.fromarray(arrays[part["name"]]) for part in parts if part["type"] == "image"],
        "audio": [arrays[part["name"]] for part in parts if part["type"] == "audio"]
        + [arrays[name] for name in sounds_of_videos(messages)],
        "videos": [arrays[part["name"]] for part in parts if part["type"] == "video"],
    }
    given = {name: items for name, items in media.items() if items}
    return processor(text=[text], return_tensors="pt", use_audio_in_video=bool(sounds_of_videos(messages)), **given)


def sounds_of_videos(messages):
    return [part["audio"] for message in messages for part in message["content"] if "audio" in part]


if __name__ == "__main__":
    main(*sys.argv[1:])
