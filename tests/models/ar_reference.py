"""The judge of the ar engine: plain transformers in a process of its own that imports nothing of ours.

usage: python ar_reference.py MODEL_DIR < requests.json > answers.json
Each request has `prompt_token_ids` and further arguments of `generate`.
"""

import json
import sys

import torch
from transformers import AutoModelForCausalLM


def main(folder: str) -> None:
    torch.set_num_threads(1)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    answers = []
    for request in json.load(sys.stdin):
        ids = torch.tensor([request.pop("prompt_token_ids")])
        made = model.generate(ids, attention_mask=torch.ones_like(ids), do_sample=False, **request)
        answers.append(made[0, ids.shape[1] :].tolist())
    json.dump(answers, sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
