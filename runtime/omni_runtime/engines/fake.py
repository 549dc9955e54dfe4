"""`fake`: an engine without a model, pure Python and deterministic, for protocol, load and fault tests.

Each request takes `steps` steps of `delay_seconds` each, which take turns with other requests' if `serial`. Outputs
carry a `trail`: the stages that the request visited; a final output is an image, text or sound where the model says so.
Behaviors: `echo` and `delay` answer; `burst` makes an item in each step; `follow` does, too, and takes in an item
before each step for as long as any come, as talkers do; `relay` hands on items as they come, `items_per_step` of a
chunk in one step, as codecs do; `stall` never ends its first step; `crash` dies as its `crash_at`-th step begins
(counted over all requests from 1; 0 = while loading); `leak` keeps a file descriptor and memory for each step.
It sleeps, though it has no weights to give back; in place of a cache it counts the requests that it has answered.
"""

import asyncio
import os
import time
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import aclosing, contextmanager
from pathlib import Path

from omni_contract.api.v1alpha1.engines import FakeEngine as FakeSettings
from omni_contract.wire.errors import ErrorCode, OmniError
from omni_contract.wire.names import FINAL
from omni_contract.wire.payload import Payload, Value
from omni_contract.wire.stage_file import StageFile
from omni_runtime.engines.fake_answers import fake_image, fake_sound, fake_text, whole_text, words_of
from omni_runtime.engines.items import gathered, items_as_they_come, pieces_as_they_come
from omni_runtime.engines.protocol import (
    EngineDiedError,
    Profile,
    ReportLoading,
    SleepLevel,
    StageEvent,
    StageItem,
    StageOutput,
    StageProgress,
    StageRequest,
    StageUsage,
)
from omni_runtime.engines.recording import Recording

LEAK_BYTES = 2**20


def create(stage_file: StageFile) -> "FakeEngine":
    assert isinstance(stage_file.engine, FakeSettings)
    modality = None if stage_file.output is None else stage_file.output.modality
    return FakeEngine(stage_file.stage, stage_file.engine, modality)


class FakeEngine:
    def __init__(self, stage: str, settings: FakeSettings, modality: str | None = None) -> None:
        self._stage = stage
        self._settings = settings
        self._modality = modality
        self._steps_begun = 0
        self._running = 0
        self._in_step = 0
        self._last_turn = time.monotonic()
        self._leaked: list[int] = []
        self._device = asyncio.Lock()
        self._sleep_level = 0
        self._answered = 0
        self._recording: Recording | None = None

    async def load(self, report: ReportLoading) -> None:
        report("loading nothing 1/1")
        if self._settings.behavior == "crash" and self._settings.crash_at == 0:
            raise RuntimeError("the fake engine is told to crash while it loads")

    def run(self, request: StageRequest) -> AsyncGenerator[StageEvent, None]:
        assert not self._sleep_level, "the worker hands no request to an engine that sleeps"
        match self._settings.behavior:
            case "burst":
                return self._burst(request)
            case "follow":
                return self._follow(request)
            case "relay":
                return self._relay(request)
            case _:
                return self._answer(request)

    @contextmanager
    def _at_work(self) -> Iterator[None]:
        """One request runs while the block does, and is answered at its end."""
        self._running += 1
        try:
            yield
            self._answered += 1
        finally:
            self._running -= 1

    def heartbeat_age_s(self) -> float:
        return time.monotonic() - self._last_turn if self._in_step else 0.0

    async def sleep(self, level: SleepLevel) -> int:
        assert not self._running, "the worker lets an engine sleep only when nothing runs"
        self._sleep_level = level
        return 0

    async def wake(self, report: ReportLoading) -> None:
        report("loading nothing 1/1")
        self._sleep_level = 0

    @property
    def is_profiling(self) -> bool:
        return self._recording is not None and not self._recording.is_written

    async def start_profile(self, trace: Path, max_steps: int) -> None:
        self._recording = Recording(trace, max_steps)

    async def stop_profile(self) -> Profile | None:
        recording, self._recording = self._recording, None
        return None if recording is None else recording.finished()

    async def reset_cache(self) -> int:
        answered, self._answered = self._answered, 0
        return answered

    async def close(self) -> None:
        await self.stop_profile()
        for descriptor in self._leaked:
            os.close(descriptor)
        self._leaked.clear()

    async def _answer(self, request: StageRequest) -> AsyncGenerator[StageEvent, None]:
        with self._at_work():
            steps = self._steps(request)
            for step in range(steps):
                await self._recorded_step(request, step)
                if steps > 1:
                    yield StageProgress(step + 1, steps)
            inputs = await gathered(request)
            for edge in request.outputs:
                yield StageOutput(edge, self._output(request, inputs, edge))
            yield StageUsage(steps=steps)

    async def _burst(self, request: StageRequest) -> AsyncGenerator[StageEvent, None]:
        with self._at_work():
            inputs, steps = await gathered(request), self._steps(request)
            whole, answers = self._echo(inputs), list[Payload]()
            if self._modality == "text":
                answers = fake_text(joined(inputs), request.parameters, steps)
                whole, steps = {"trail": whole["trail"]}, len(answers)
            elif self._modality == "audio":
                answers = [fake_sound(step) for step in range(steps)]
            for step in range(steps):
                await self._recorded_step(request, step)
                for edge in request.outputs:
                    made = answers[step] if edge == FINAL and answers else whole
                    yield StageItem(edge, {**made, "item": step})
            prompt_tokens = len(words_of(inputs[FINAL])) if FINAL in inputs else 0
            yield StageUsage(prompt_tokens, self._tokens(steps), steps)

    async def _follow(self, request: StageRequest) -> AsyncGenerator[StageEvent, None]:
        steps, trail = self._steps(request), list[Value]()
        with self._at_work():
            async with aclosing(items_as_they_come(request)) as items:
                for step in range(steps):
                    if (taken := await anext(items, None)) is not None:
                        trail = trail_of(dict([taken]))
                    await self._recorded_step(request, step)
                    for edge in request.outputs:
                        yield StageItem(edge, {"item": step, "trail": [*trail, self._stage]})
            yield StageUsage(output_tokens=self._tokens(steps), steps=steps)

    async def _relay(self, request: StageRequest) -> AsyncGenerator[StageEvent, None]:
        steps, handed = 0, 0
        with self._at_work():
            async with aclosing(pieces_as_they_come(request, self._settings.items_per_step)) as pieces:
                async for source, items in pieces:
                    await self._recorded_step(request, steps)
                    for edge in request.outputs:
                        if edge == FINAL and self._modality == "audio":
                            yield StageItem(edge, fake_sound(handed, len(items)))
                            continue
                        for item in items:
                            yield StageItem(edge, self._echo({source: item}))
                    steps, handed = steps + 1, handed + len(items)
            yield StageUsage(output_tokens=self._tokens(handed), steps=steps)

    def _tokens(self, steps: int) -> int:
        """A stage that answers with sound or an image makes it of others' tokens."""
        return steps if self._modality in (None, "text") else 0

    async def _recorded_step(self, request: StageRequest, step: int) -> None:
        self._in_step += 1
        try:
            if self._recording is None:
                await self._step()
            else:
                with self._recording.step(f"{request.request_id} step {step + 1}"):
                    await self._step()
        finally:
            self._in_step -= 1

    async def _step(self) -> None:
        self._last_turn = time.monotonic()
        self._steps_begun += 1
        match self._settings.behavior:
            case "crash" if self._steps_begun >= (self._settings.crash_at or 1):
                raise EngineDiedError(f"the fake engine is told to crash at step {self._steps_begun}")
            case "stall":
                await asyncio.Event().wait()
            case "leak":
                self._leak()
        if self._settings.serial:
            async with self._device:
                await self._delay()
        else:
            await self._delay()

    async def _delay(self) -> None:
        if self._settings.delay_seconds:
            await asyncio.sleep(self._settings.delay_seconds)
            self._last_turn = time.monotonic()

    def _steps(self, request: StageRequest) -> int:
        """With behavior `delay`, `burst` or `follow` a request may say how much work it is, and at most how much."""
        asked, most = request.parameters.get("steps"), request.parameters.get("max_tokens")
        may_ask = self._settings.behavior in ("delay", "burst", "follow")
        steps = asked if may_ask and isinstance(asked, int) else self._settings.steps
        return min(steps, most) if may_ask and isinstance(most, int) else steps

    def _leak(self) -> None:
        descriptor = os.memfd_create("omni-leak")
        os.write(descriptor, bytes(LEAK_BYTES))
        self._leaked.append(descriptor)

    def _output(self, request: StageRequest, inputs: Mapping[str, Payload], edge: str) -> Payload:
        echo = self._echo(inputs)
        match self._modality if edge == FINAL else None:
            case "image":
                return {"image": fake_image(request.parameters), "trail": echo["trail"]}
            case "audio":
                return {**fake_sound(0, self._steps(request)), "trail": echo["trail"]}
            case "text":
                return whole_text(fake_text(joined(inputs), request.parameters, self._steps(request)))
        return echo

    def _echo(self, inputs: Mapping[str, Payload]) -> Payload:
        trail: list[Value] = [*trail_of(inputs), self._stage]
        return {**joined(inputs), "trail": trail}


def joined(inputs: Mapping[str, Payload]) -> Payload:
    """All inputs as one payload, those of the last edge by name over the others'."""
    return {key: value for name in sorted(inputs) for key, value in inputs[name].items()}


def trail_of(inputs: Mapping[str, Payload]) -> list[Value]:
    """The stages that the inputs went through, in order of the edges' names."""
    trail: list[Value] = []
    for edge in sorted(inputs):
        stages = inputs[edge].get("trail", [])
        if not isinstance(stages, list):
            raise OmniError(ErrorCode.INVALID_REQUEST, f'"trail" must be a list, got {type(stages).__name__}')
        trail += stages
    return trail
