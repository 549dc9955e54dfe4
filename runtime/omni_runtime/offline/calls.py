"""Calls of a model that runs: prompts become requests, their sessions become outputs."""

import asyncio
import secrets
import sys
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any

from omni_contract.wire.errors import ErrorCode, OmniError
from omni_runtime.frontend.text.sampling import DRAWN_SEEDS
from omni_runtime.offline.answers import Asked, Gathering, parts_of
from omni_runtime.offline.outputs import OmniRequestOutput
from omni_runtime.offline.progress import Progress
from omni_runtime.offline.prompts import MODALITIES, Prompt, keys_of, payload_of, reading_of, sampling_of
from omni_runtime.offline.sampling import SamplingParamsList, parameters_of
from omni_runtime.offline.width import most_in_flight
from omni_runtime.orchestrator import Orchestrator, Session, SessionRequest
from omni_runtime.orchestrator.graph import output_modalities, plan


@dataclass(frozen=True)
class Sampling:
    """What a call asks of all of its prompts: by keyword, and for each stage alone."""

    by_name: Mapping[str, Any] = field(default_factory=dict)
    of_stages: SamplingParamsList | None = None


class Calls:
    def __init__(self, orchestrator: Orchestrator, max_in_flight: int | None = None) -> None:
        self._orchestrator = orchestrator
        self._max_in_flight = max_in_flight
        self._sessions: dict[str, Session] = {}

    @property
    def modalities(self) -> tuple[str, ...]:
        """What the model answers with, in the order of the outputs of a prompt."""
        return output_modalities(self._orchestrator.table)

    async def parts(
        self, prompt: Prompt, sampling: Sampling, request_id: str | None = None
    ) -> AsyncGenerator[OmniRequestOutput, None]:
        """One answer as it is made. Raises OmniError if the request fails; closing it early aborts the request."""
        asked, request = self._request(0, prompt, sampling, request_id)
        session = self._sessions[asked.request_id] = self._orchestrator.submit(request)
        try:
            async with aclosing(parts_of(asked, session)) as parts:
                async for part in parts:
                    yield part
        finally:
            del self._sessions[asked.request_id]

    async def answers(
        self, prompts: Sequence[Prompt], sampling: Sampling, use_tqdm: bool
    ) -> AsyncGenerator[list[OmniRequestOutput], None]:
        """The outputs of each prompt in order; of one that fails they carry the error, and the others go on.

        Raises OmniError for sampling that no prompt could have. Closing it early aborts what runs.
        """
        # What is wrong for every prompt is told before the first one runs.
        self._parameters(sampling, self.modalities)
        slots = asyncio.Semaphore(self._max_in_flight or most_in_flight(self._orchestrator))
        progress = _progress(len(prompts)) if use_tqdm and prompts else None

        async def answer(at: int, prompt: Prompt) -> list[OmniRequestOutput]:
            async with slots:
                outputs = await self._whole(at, prompt, sampling)
            if progress is not None:
                progress.answered(any(output.error is not None for output in outputs))
            return outputs

        tasks = [asyncio.create_task(answer(at, prompt)) for at, prompt in enumerate(prompts)]
        try:
            for task in tasks:
                yield await task
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def abort(self, request_id: str) -> None:
        """No-op if the request is over."""
        if (session := self._sessions.get(request_id)) is not None:
            session.abort()

    async def _whole(self, at: int, prompt: Prompt, sampling: Sampling) -> list[OmniRequestOutput]:
        try:
            asked, request = self._request(at, prompt, sampling)
            session = self._orchestrator.submit(request)
        except OmniError as error:
            return Asked("", at, prompt, self.modalities).failures(error)
        return await Gathering(asked).outputs(session)

    def _request(
        self, at: int, prompt: Prompt, sampling: Sampling, request_id: str | None = None
    ) -> tuple[Asked, SessionRequest]:
        """Raises OmniError for a prompt that the model cannot read, or sampling that it does not know."""
        keys, table = keys_of(prompt), self._orchestrator.table
        wanted = self._wanted(keys.get(MODALITIES))
        sampling = replace(sampling, by_name={**sampling.by_name, **sampling_of(keys)})
        request = SessionRequest(
            request_id=request_id or f"offline-{secrets.token_hex(8)}",
            payload=payload_of(keys, reading_of(wanted, self.modalities), table),
            parameters={"seed": secrets.randbelow(DRAWN_SEEDS), **self._parameters(sampling, wanted)},
            modalities=wanted,
            takes_what_is_left=True,
        )
        if request.request_id in self._sessions:
            raise OmniError(ErrorCode.INVALID_REQUEST, f'request id "{request.request_id}" is in use', "request_id")
        return Asked(request.request_id, at, prompt, wanted), request

    def _parameters(self, sampling: Sampling, wanted: Sequence[str]) -> Mapping[str, Any]:
        reading = reading_of(wanted, self.modalities)
        return parameters_of(sampling.by_name, sampling.of_stages, reading, self._orchestrator.table)

    def _wanted(self, modalities: Sequence[str] | None) -> tuple[str, ...]:
        """In the model's order. Raises OmniError for what it does not make."""
        asked = self.modalities if modalities is None else tuple(modalities)
        plan(self._orchestrator.table, asked)
        return tuple(modality for modality in self.modalities if modality in (asked or self.modalities))


def _progress(total: int) -> Progress:
    return Progress(total, sys.stderr, time.monotonic, sys.stderr.isatty())
