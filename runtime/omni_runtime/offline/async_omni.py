"""`AsyncOmni`: a model from asyncio. Whole answers in order, or one answer part by part."""

import asyncio
import os
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from types import TracebackType
from typing import Any, Self, Unpack

from omni_runtime.offline.calls import Calls, Sampling
from omni_runtime.offline.control import Control
from omni_runtime.offline.local_model import resolved, running_model
from omni_runtime.offline.outputs import OmniRequestOutput
from omni_runtime.offline.prompts import Prompt
from omni_runtime.offline.sampling import SamplingParamsList
from omni_runtime.offline.settings import Options, Volumes, settings_of


class NotRunningError(RuntimeError):
    """The model has not been started, or has been closed."""


class AsyncOmni:
    """Use as `async with AsyncOmni("model.yaml", volumes={"models": "DIR"}) as omni`, or call `start` and `close`.

    Its stages are processes of their own, which end with it. Calls may run at the same time. The constructor raises
    ServeError for a model that cannot run here, `start` for a stage that does not become ready.
    """

    def __init__(
        self, model: str | os.PathLike[str], volumes: Volumes | None = None, **options: Unpack[Options]
    ) -> None:
        self._settings = settings_of(model, volumes, options)
        self._model = resolved(self._settings.serve)
        self._life: asyncio.Task[None] | None = None
        self._stopping = asyncio.Event()
        self._is_starting = False
        self._running: tuple[Calls, Control] | None = None

    async def start(self) -> None:
        """Returns once every stage is ready; calling it again does nothing."""
        if self._life is not None:
            return
        self._stopping.clear()
        self._is_starting = True
        ready = asyncio.get_running_loop().create_future()
        life = self._life = asyncio.create_task(self._live(ready), name="offline-model")
        try:
            await asyncio.wait((life, ready), return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            life.cancel()
            await self._ended(life)
            raise
        finally:
            self._is_starting = False
        if life.done():
            await self._ended(life)
            if life.cancelled():
                raise NotRunningError("the model was closed while it started")
            life.result()

    async def close(self) -> None:
        """Aborts what still runs and ends the stages' processes; calling it again does nothing."""
        self._stopping.set()
        if self._life is not None:
            if self._is_starting:
                self._life.cancel()
            await self._ended(self._life)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def generate(
        self,
        prompt: Prompt,
        sampling_params_list: SamplingParamsList | None = None,
        request_id: str | None = None,
        **sampling: Any,
    ) -> AsyncGenerator[OmniRequestOutput, None]:
        """The answer to one prompt, each part as it is made: what there is of a modality since its last part.

        Raises OmniError if the request fails; closing it early aborts the request.
        """
        return self._calls.parts(prompt, Sampling(sampling, sampling_params_list), request_id)

    async def generate_all(
        self,
        prompts: Sequence[Prompt],
        sampling_params_list: SamplingParamsList | None = None,
        use_tqdm: bool = True,
        **sampling: Any,
    ) -> list[OmniRequestOutput]:
        """The whole answers in order; of a prompt that fails, the outputs carry the error, and the others go on."""
        async with aclosing(self.answers(prompts, sampling_params_list, use_tqdm, **sampling)) as answers:
            return [output async for answer in answers for output in answer]

    def answers(
        self,
        prompts: Sequence[Prompt],
        sampling_params_list: SamplingParamsList | None = None,
        use_tqdm: bool = True,
        **sampling: Any,
    ) -> AsyncGenerator[list[OmniRequestOutput], None]:
        """As `generate_all`, but the outputs of each prompt as soon as they and those before are there."""
        return self._calls.answers(prompts, Sampling(sampling, sampling_params_list), use_tqdm)

    async def abort(self, request_id: str) -> None:
        """Ends a request of `generate` on every stage, which raises there; no-op if it is over."""
        self._calls.abort(request_id)

    @property
    def modalities(self) -> tuple[str, ...]:
        """What the model answers with, in the order of the outputs of a prompt."""
        return self._calls.modalities

    @property
    def stages(self) -> tuple[str, ...]:
        """Their names, in the order of `sampling_params_list`."""
        return tuple(stage.name for stage in self._model.stages)

    @property
    def control(self) -> Control:
        """Profiles, and sleep that gives the devices' memory back."""
        return self._here[1]

    @property
    def _calls(self) -> Calls:
        return self._here[0]

    @property
    def _here(self) -> tuple[Calls, Control]:
        if self._running is None:
            raise NotRunningError("the model does not run: call it inside `async with`, or between start and close")
        return self._running

    async def _live(self, ready: asyncio.Future[None]) -> None:
        async with running_model(self._model, self._settings.serve) as orchestrator:
            self._running = Calls(orchestrator, self._settings.max_in_flight), Control(orchestrator)
            ready.set_result(None)
            try:
                await self._stopping.wait()
            finally:
                self._running = None

    async def _ended(self, life: asyncio.Task[None]) -> None:
        await asyncio.wait((life,))
        self._life = None
