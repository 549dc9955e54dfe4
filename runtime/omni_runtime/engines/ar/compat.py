"""Every seam between the ar engine and vLLM, from 0.26 to 0.32. Importing it takes seconds.

What crosses it are our own values: arguments by name, prompts, steps, our errors.
"""

import asyncio
import json
import logging
import multiprocessing
import os
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager
from pathlib import Path
from tempfile import gettempdir
from typing import Any, cast

import vllm
from packaging.version import Version
from vllm import SamplingParams, exceptions
from vllm.engine.arg_utils import AsyncEngineArgs
from vllm.inputs.engine import tokens_input
from vllm.lora.request import LoRARequest
from vllm.multimodal import MULTIMODAL_REGISTRY
from vllm.outputs import CompletionOutput, RequestOutput
from vllm.sampling_params import RequestOutputKind
from vllm.v1.engine.async_llm import AsyncLLM
from vllm.v1.engine.exceptions import EngineDeadError, EngineGenerateError

from omni_contract.api.nearest import did_you_mean
from omni_contract.wire.errors import ErrorCode, OmniError
from omni_contract.wire.payload import Value
from omni_runtime.engines.ar.adapters import Adapter
from omni_runtime.engines.ar.compat_rows import RowFeed
from omni_runtime.engines.ar.compat_worker import look_at_models, register_models
from omni_runtime.engines.ar.prompts import Prompt
from omni_runtime.engines.ar.rows_ahead import RowsAhead
from omni_runtime.engines.ar.sampling import RULES
from omni_runtime.engines.ar.settings import MODELS_KEY
from omni_runtime.engines.ar.state_ring import Way
from omni_runtime.engines.ar.step import Candidate, Chosen, FinishReason, Step
from omni_runtime.engines.ar.takers import STATES_KEY
from omni_runtime.engines.protocol import EngineDiedError, UnusableEngineError
from omni_runtime.families.protocol import RowSource
from omni_runtime.private_folder import OpenToOthersError, PrivateFolder

logging.getLogger("vllm").setLevel(logging.ERROR)

MAX_TEXT = 500
ENDS: Mapping[str, FinishReason] = {"stop": "stop", "length": "length", "repetition": "stop"}
"""vLLM's reasons for a good end, in ours."""
REFUSALS = (getattr(exceptions, "VLLMClientError", exceptions.VLLMNotFoundError), ValueError, TypeError)
"""What vLLM raises about a request; 0.26 has no class of its own for most of them."""
HEEDS_BOUNDS = Version(vllm.__version__) >= Version("0.32")
"""Whether vLLM's own scheduler bounds each part of a streamed prompt by itself."""
NOT_OF_ROWS = frozenset({"stop", "logprobs", "presence_penalty", "frequency_penalty"})
"""Of what it has made of a streamed input, vLLM counts the last part alone: these penalties would hang on the parts.
The repetition penalty counts the parts before as their prompt."""
FOR_ONE: Mapping[str, Any] = {"skip_clone": True}
"""Parameters are made for each request, so vLLM need not copy them, deeply, for itself."""
SCHEDULERS = "omni_runtime.engines.ar.compat_scheduler"


class Vllm:
    """A running engine. Made and shut down on one thread, which lives as long; used on the event loop."""

    def __init__(self, arguments: Mapping[str, object]) -> None:
        """Starts vLLM's processes and loads the model; blocks until that is done."""
        look_at_models(_architectures(Path(str(arguments["model"]))))
        register_models(cast(Mapping[str, Any], arguments.get("additional_config", {})).get(MODELS_KEY, {}))
        self._sockets = _private_folder()
        os.environ["VLLM_RPC_BASE_PATH"] = str(self._sockets.path)
        others = multiprocessing.active_children()
        self._llm = AsyncLLM.from_engine_args(_engine_args(arguments))
        self._processes = [child for child in multiprocessing.active_children() if child not in others]
        self._defaults: Mapping[str, Any] = self._llm.model_config.get_diff_sampling_param()

    @property
    def sockets(self) -> Path:
        """A folder for sockets that nobody else may enter; it goes when this is shut down."""
        return self._sockets.path

    @property
    def vocabulary_size(self) -> int:
        return int(self._llm.model_config.get_vocab_size())

    @property
    def max_length(self) -> int:
        """Most tokens of a prompt and its answer together."""
        return int(self._llm.model_config.max_model_len)

    @property
    def videos_need_metadata(self) -> bool:
        config = self._llm.model_config
        if not config.is_multimodal_model:
            return False
        processor = MULTIMODAL_REGISTRY.create_processor(config)
        return bool(processor.info.get_data_parser().video_needs_metadata)

    async def send_states(self, layers: Sequence[int], way: Way) -> None:
        """From now on, the states of requests that have a key leave by this way, step by step."""
        await self._llm.collective_rpc("omni_send_states", args=(list(layers), way))

    async def generate(
        self,
        request_id: str,
        prompt: Prompt,
        sampling: Mapping[str, Value],
        adapter: Adapter | None = None,
        states_key: int | None = None,
    ) -> AsyncGenerator[Step, None]:
        """Closing it aborts the request within one step. The engine goes on, however slowly the steps are taken."""
        params = self._sampling_params(sampling, states_key)
        with _translated(prompt.param):
            outputs = self._llm.generate(_prompt(prompt), params, request_id, lora_request=_lora_request(adapter))
            async with aclosing(_steps(outputs)) as steps:
                async for step in steps:
                    yield step

    async def take_rows(self, frames_way: Way | None) -> None:
        """From now on, requests may bring rows as their input; frames that the model makes leave by the way."""
        await self._llm.collective_rpc("omni_take_rows", args=(frames_way,))

    async def generate_from_rows(
        self, request_id: str, rows: RowSource, sampling: Mapping[str, Value], states_key: int | None = None
    ) -> AsyncGenerator[Step, None]:
        """As `generate`, with rows for input: as many tokens are made as rows have come, and each is a step of its own.
        It ends with `rows`' own end.

        The rows are read while tokens are made, and closed when this is.
        """
        async with RowsAhead(rows) as ahead:
            feed = RowFeed(ahead, self._row_params(sampling), states_key)
            async with aclosing(self._fed(request_id, feed)) as steps:
                async for step in steps:
                    yield step

    async def _fed(self, request_id: str, feed: RowFeed) -> AsyncGenerator[Step, None]:
        with _translated("input"):
            outputs = self._llm.generate(feed.inputs(), feed.params(1), request_id)
            async with aclosing(_steps(outputs)) as steps:
                async for step in steps:
                    # A reader that is late gets several at once; how they are cut into chunks must not hang on that.
                    for token_id in step.token_ids:
                        feed.made(token_id)
                        yield Step((token_id,), finish_reason=feed.finish_reason)
                        if feed.finish_reason is not None:
                            return

    async def weight_bytes(self) -> int:
        """Of all ranks."""
        return sum(await self._llm.collective_rpc("omni_weight_bytes"))

    async def start_profile(self, trace: Path, max_steps: int) -> None:
        """vLLM's own profiler has one folder for its whole life; ours writes one trace, of the first rank's steps."""
        await self._llm.collective_rpc("omni_start_profile", args=(str(trace), max_steps))

    async def stop_profile(self) -> int:
        """The steps in the trace; raises OSError if it could not be written."""
        steps, failure = (await self._llm.collective_rpc("omni_stop_profile"))[0]
        if failure:
            raise OSError(0, failure)
        return int(steps)

    async def reset_prefix_cache(self) -> bool:
        return bool(await self._llm.reset_prefix_cache())

    async def sleep(self, level: int) -> None:
        await self._llm.sleep(level)

    async def wake(self, level: int) -> None:
        """After level 2, the weights come from their folder again before anything else is made."""
        if level == 1:
            await self._llm.wake_up()
            return
        await self._llm.wake_up(tags=["weights"])
        await self._llm.collective_rpc("reload_weights")
        await self._llm.wake_up(tags=["kv_cache"])

    @property
    def unfinished(self) -> int:
        """Requests that vLLM works on."""
        return int(self._llm.output_processor.get_num_unfinished_requests())

    @property
    def has_died(self) -> bool:
        return bool(self._llm.errored)

    async def stop_listening(self) -> None:
        """Before `shut_down`: the task that reads vLLM's answers would take their end for a defect."""
        if (listening := self._llm.output_handler) is not None:
            listening.cancel()
            await asyncio.wait([listening])

    def shut_down(self) -> None:
        """Ends vLLM's processes; blocks until they have gone. They have nothing to lose, and get no time: a loaded
        interpreter takes seconds to take itself apart."""
        self._llm.shutdown(timeout=0)
        for process in self._processes:
            process.join()
        self._sockets.close()

    def _row_params(self, sampling: Mapping[str, Value]) -> SamplingParams:
        """For a streamed input, in which vLLM takes no stop texts; nor is there a tokenizer to make any."""
        taken = {name: value for name, value in sampling.items() if name not in NOT_OF_ROWS}
        return SamplingParams(output_kind=RequestOutputKind.DELTA, detokenize=False, **FOR_ONE, **cast(Any, taken))

    def _sampling_params(self, sampling: Mapping[str, Value], states_key: int | None) -> SamplingParams:
        """The request's own over what the checkpoint's generation_config.json says."""
        merged: dict[str, Any] = {"max_tokens": None, **self._defaults, **sampling}
        if states_key is not None:
            # Positions whose keys and values are in the cache already are not computed, so they have no states.
            merged |= {"extra_args": {STATES_KEY: states_key}, "skip_reading_prefix_cache": True}
        return SamplingParams(output_kind=RequestOutputKind.DELTA, **FOR_ONE, **merged)


def _private_folder() -> PrivateFolder:
    """Processes that end at once leave their sockets behind; what is left of one that was killed, the next removes."""
    try:
        return PrivateFolder(Path(gettempdir(), f"omni-vllm-{os.getuid()}"))
    except OpenToOthersError as error:
        raise UnusableEngineError(str(error)) from error


def _architectures(folder: Path) -> list[str]:
    """Of a checkpoint; none if vLLM has to find out itself what it is."""
    config = folder / "config.json"
    return json.loads(config.read_text()).get("architectures") or [] if config.exists() else []


def _lora_request(adapter: Adapter | None) -> LoRARequest | None:
    if adapter is None:
        return None
    return LoRARequest(lora_name=adapter.name, lora_int_id=adapter.number, lora_path=str(adapter.folder))


def _engine_args(arguments: Mapping[str, object]) -> AsyncEngineArgs:
    known = AsyncEngineArgs.__dataclass_fields__
    for name in arguments:
        if name not in known:
            raise UnusableEngineError(f'vLLM has no engine argument "{name}"{did_you_mean(name, list(known))}')
    return AsyncEngineArgs(**cast(Any, {**arguments, **_scheduler(arguments)}))


def _scheduler(arguments: Mapping[str, object]) -> Mapping[str, object]:
    if HEEDS_BOUNDS or not arguments.get("enable_prompt_embeds"):
        return {}
    name = "OneAfterAnother" if arguments.get("async_scheduling") is False else "OneAhead"
    return {"scheduler_cls": f"{SCHEDULERS}.{name}"}


def _prompt(prompt: Prompt) -> Any:
    if prompt.text is None:
        # As vLLM's own renderer would make it, on a thread of its own.
        return tokens_input(list(prompt.token_ids))
    return {
        "prompt": prompt.text,
        "multi_modal_data": prompt.media,
        "mm_processor_kwargs": dict(prompt.processor),
    }


async def _steps(outputs: AsyncGenerator[RequestOutput, None]) -> AsyncGenerator[Step, None]:
    is_first = True
    async with aclosing(outputs):
        async for output in outputs:
            yield _step(output, is_first)
            is_first = False


def _step(output: RequestOutput, is_first: bool) -> Step:
    (completion,) = output.outputs
    reason = completion.finish_reason
    if reason is not None and reason not in ENDS:
        raise OmniError(ErrorCode.STAGE_FAILED, f"the engine ended the request: {reason}")
    return Step(
        token_ids=tuple(completion.token_ids),
        text=completion.text,
        prompt_token_ids=tuple(output.prompt_token_ids or ()) if is_first else None,
        finish_reason=None if reason is None else ENDS[reason],
        stop_reason=completion.stop_reason,
        logprobs=_logprobs(completion),
    )


def _logprobs(completion: CompletionOutput) -> tuple[Chosen, ...]:
    """vLLM gives the chosen token first, then the likeliest ones, which it may be one of, by their rank."""
    if not completion.logprobs:
        return ()
    chosen = []
    for token_id, place in zip(completion.token_ids, completion.logprobs[-len(completion.token_ids) :], strict=True):
        ranked = sorted(place.items(), key=lambda item: item[1].rank or 0)
        candidates = {identifier: Candidate(identifier, float(found.logprob)) for identifier, found in ranked}
        chosen.append(Chosen(candidates[token_id], tuple(candidates.values())))
    return tuple(chosen)


@contextmanager
def _translated(param: str) -> Iterator[None]:
    """vLLM's errors as ours. What the request asks for cannot be done, or its step failed: the engine goes on."""
    try:
        yield
    except EngineDeadError as error:
        raise EngineDiedError(str(error)) from error
    except (EngineGenerateError, *REFUSALS) as error:
        raise _refusal(error, param) from error


def _refusal(error: Exception, param: str) -> OmniError:
    cause = error.__cause__ if isinstance(error, EngineGenerateError) else error
    if isinstance(cause, REFUSALS):
        named = getattr(cause, "parameter", None)
        return OmniError(ErrorCode.INVALID_REQUEST, str(cause)[:MAX_TEXT], named if named in RULES else param)
    return OmniError(ErrorCode.STAGE_FAILED, f"{type(cause).__name__}: {str(cause)[:MAX_TEXT]}")
