"""Goes on from prompts: one session for each choice, all admitted together, read whole or as they write."""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass

from omni_contract.wire.errors import ErrorCode, OmniError
from omni_contract.wire.payload import Payload, Value
from omni_contract.wire.stage_table import StageTable
from omni_runtime.frontend.answers import Delta, Ended, TextDelta, deltas_of, merged
from omni_runtime.frontend.completions.choice import WritingChoice
from omni_runtime.frontend.completions.schema import Completion, CompletionChoice, CompletionRequest
from omni_runtime.frontend.inquiry import Inquiry, RunningText, aborting
from omni_runtime.frontend.models.service import check_served
from omni_runtime.frontend.request_scope import RequestContext
from omni_runtime.frontend.text.by_stage import for_each_stage, for_stage
from omni_runtime.frontend.text.sampling import seeds_of
from omni_runtime.frontend.text.stage import text_stage
from omni_runtime.frontend.text.usage import CompletionUsage, all_of, total, usage_of
from omni_runtime.orchestrator import Orchestrator

STAGE_FIELDS = {"prompt_token_ids": "prompt"}
"""Words of the stages for what a field of the request has another name for."""


@dataclass(frozen=True, kw_only=True)
class Writing(RunningText):
    """Has `choices_of_each` sessions for each prompt, in order."""

    choices_of_each: int

    def completion(self, choices: list[CompletionChoice], usage: CompletionUsage | None = None) -> Completion:
        return Completion(
            id=self.id,
            object="text_completion",
            created=self.created,
            model=self.model,
            choices=choices,
            usage=usage,
            system_fingerprint=self.fingerprint,
        )

    def usage(self, ends: Mapping[int, Ended]) -> CompletionUsage:
        """Each prompt is read once, whatever the number of its choices."""
        usages = [usage_of(self.text_stage, ends[index].usage) for index in range(len(self.sessions))]
        size = self.choices_of_each
        return all_of(total(usages[start : start + size]) for start in range(0, len(usages), size))


class CompletionService:
    def __init__(self, orchestrator: Orchestrator) -> None:
        self._orchestrator = orchestrator

    @asynccontextmanager
    async def admitted(self, body: CompletionRequest, context: RequestContext) -> AsyncIterator[Writing]:
        """Sessions not read to their end when the block ends are aborted on every stage."""
        writing = self._admit(body, context)
        with aborting(writing.sessions):
            yield writing

    async def answer(
        self, body: CompletionRequest, context: RequestContext
    ) -> tuple[Completion, int, Mapping[str, str]]:
        """The whole answer, its first seed, and the replica of each stage that made the first choice."""
        async with self.admitted(body, context) as writing:
            choices = [WritingChoice(index) for index in range(len(writing.sessions))]
            ends: dict[int, Ended] = {}
            async with aclosing(self._deltas(writing)) as deltas:
                async for index, delta in deltas:
                    if isinstance(delta, TextDelta):
                        choices[index].take(delta)
                    elif isinstance(delta, Ended):
                        ends[index] = delta
        answer = writing.completion([choice.whole() for choice in choices], writing.usage(ends))
        return answer, writing.seed, ends[0].replicas

    async def chunks(self, writing: Writing, body: CompletionRequest) -> AsyncGenerator[Completion, None]:
        """The answer as it is written, the choices among each other."""
        choices = [WritingChoice(index) for index in range(len(writing.sessions))]
        ends: dict[int, Ended] = {}
        async with aclosing(self._deltas(writing)) as deltas:
            async for index, delta in deltas:
                if isinstance(delta, TextDelta) and (change := choices[index].take(delta)) is not None:
                    yield writing.completion([change])
                elif isinstance(delta, Ended):
                    ends[index] = delta
                    yield writing.completion([choices[index].end()])
        if body.wants_usage:
            yield writing.completion([], writing.usage(ends))

    async def _deltas(self, writing: Writing) -> AsyncGenerator[tuple[int, Delta], None]:
        try:
            async with aclosing(merged([deltas_of(session) for session in writing.sessions])) as deltas:
                async for numbered in deltas:
                    yield numbered
        except OmniError as error:
            raise in_request_words(error) from error

    def _admit(self, body: CompletionRequest, context: RequestContext) -> Writing:
        table = self._orchestrator.table
        model, stage = check_served(table, body.model), text_stage(table)
        check_limits(body, table)
        seeds = seeds_of(body.seed, body.n or 1)
        parameters = stage_parameters(body, table, stage)
        inquiry = Inquiry(context, ("text",), body.priority)
        asked = [(payload_of(prompt), {**parameters, "seed": seed}) for prompt in body.prompt for seed in seeds]
        requests = [inquiry.session(number, *one) for number, one in enumerate(asked)]
        return Writing(
            id=f"cmpl-{inquiry.nonce}",
            created=inquiry.created,
            model=model,
            fingerprint=table.revision,
            text_stage=stage,
            seed=seeds[0],
            sessions=self._orchestrator.submit_all(requests),
            choices_of_each=len(seeds),
        )


def in_request_words(error: OmniError) -> OmniError:
    """A stage's refusal, naming the field that the client knows."""
    return OmniError(error.code, error.message, STAGE_FIELDS.get(error.param or "", error.param))


def payload_of(prompt: str | list[int]) -> Payload:
    return {"prompt": prompt} if isinstance(prompt, str) else {"prompt_token_ids": prompt}


def stage_parameters(body: CompletionRequest, table: StageTable, stage: str) -> dict[str, Value]:
    of_text = dict(body.sampling())
    if body.logprobs is not None:
        of_text["logprobs"] = body.logprobs
    return for_stage(stage, of_text) | for_each_stage(table, body.sampling_params_list)


def check_limits(body: CompletionRequest, table: StageTable) -> None:
    """Raises OmniError for prompts that are longer than this model takes; a token is at least a character."""
    most = table.limits.max_prompt_characters
    if (longest := max(map(len, body.prompt))) > most:
        unit = "characters" if isinstance(body.prompt[0], str) else "tokens"
        text = f"prompt: {longest} {unit} are more than this model's limit of {most}"
        raise OmniError(ErrorCode.INVALID_REQUEST, text, "prompt")
