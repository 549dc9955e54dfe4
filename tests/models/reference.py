"""The judge: an unmodified diffusers pipeline in a process of its own that imports nothing of ours.

usage: python reference.py MODEL_DIR OUT.npz DEVICE DTYPE < requests.json
Each request holds the pipeline's own arguments and `seed`.
"""

import json
import sys

import numpy
import torch
from diffusers import QwenImagePipeline


def main(model_dir: str, out: str, device: str, dtype: str) -> None:
    torch.set_num_threads(1)
    pipeline = QwenImagePipeline.from_pretrained(model_dir, torch_dtype=getattr(torch, dtype)).to(device)
    pipeline.set_progress_bar_config(disable=True)
    images = {}
    for position, request in enumerate(json.load(sys.stdin)):
        generator = torch.Generator("cpu").manual_seed(request.pop("seed"))
        images[str(position)] = numpy.asarray(pipeline(**request, generator=generator).images[0])
    numpy.savez(out, **images)


if __name__ == "__main__":
    main(*sys.argv[1:])
