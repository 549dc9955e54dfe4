"""The peer of `benchmarks.image`: plain diffusers in a process of its own that imports nothing of ours.

usage: python image_peer.py MODEL_DIR ; one JSON request per line on stdin, one JSON answer per line on stdout.
"""

import hashlib
import json
import sys
import time

import torch
from diffusers import QwenImagePipeline


def main(model_dir: str) -> None:
    torch.set_num_threads(1)
    pipeline = QwenImagePipeline.from_pretrained(model_dir)
    pipeline.set_progress_bar_config(disable=True)
    for line in sys.stdin:
        request = json.loads(line)
        generator = torch.Generator("cpu").manual_seed(request.pop("seed"))
        began = time.perf_counter()
        image = pipeline(**request, generator=generator).images[0]
        seconds = time.perf_counter() - began
        digest = hashlib.sha256(image.convert("RGB").tobytes()).hexdigest()
        print(json.dumps({"seconds": seconds, "digest": digest}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
