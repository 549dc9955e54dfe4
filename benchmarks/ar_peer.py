"""The peer of `benchmarks.ar`: plain vLLM, its AsyncLLM in a process of its own that imports nothing of ours.

usage: python ar_peer.py ENGINE_ARGUMENTS ; one JSON load per line on stdin, {"prompts": [[TOKEN, ...]], "tokens": N};
a JSON line on stdout once it is ready, and for each load.
"""

import asyncio
import json
import sys
import time
from collections.abc import Mapping
from itertools import count
from typing import Any

from vllm import SamplingParams
from vllm.engine.arg_utils import AsyncEngineArgs
from vllm.sampling_params import RequestOutputKind
from vllm.v1.engine.async_llm import AsyncLLM

numbers = count()


async def tokens_made(engine: AsyncLLM, prompt: list[int], tokens: int) -> int:
    params = SamplingParams(temperature=0.0, max_tokens=tokens, ignore_eos=True, output_kind=RequestOutputKind.DELTA)
    made = 0
    async for output in engine.generate({"prompt_token_ids": prompt}, params, f"peer-{next(numbers)}"):
        made += len(output.outputs[0].token_ids)
    return made


async def answer(engine: AsyncLLM, load: Mapping[str, Any]) -> dict[str, float]:
    began = time.perf_counter()
    made = await asyncio.gather(*(tokens_made(engine, prompt, load["tokens"]) for prompt in load["prompts"]))
    return {"seconds": time.perf_counter() - began, "tokens": sum(made)}


async def main(arguments: str) -> None:
    engine = AsyncLLM.from_engine_args(AsyncEngineArgs(**json.loads(arguments)))
    print(json.dumps({"ready": True}), flush=True)
    while line := await asyncio.to_thread(sys.stdin.readline):
        print(json.dumps(await answer(engine, json.loads(line))), flush=True)
    engine.shutdown()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
