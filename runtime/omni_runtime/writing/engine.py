"""The ar engine's backend `transformers` for text: exact and without vLLM, a token of one request at a time."""

from collections.abc import AsyncIterator
from dataclasses import replace

from omni_contract.wire.errors import ErrorCode, OmniError
from omni_contract.wire.names import FINAL
from omni_runtime.engines.ar.answer import Answer
from omni_runtime.engines.ar.inbox import Inbox
from omni_runtime.engines.ar.items import TextItems
from omni_runtime.engines.ar.payloads import payload_of
from omni_runtime.engines.ar.sampling import Sampling, sampling_of
from omni_runtime.engines.items import gathered
from omni_runtime.engines.parameters import parameters_for
from omni_runtime.engines.protocol import StageEvent, StageRequest
from omni_runtime.families.protocol import ArPart
from omni_runtime.stepping.engine import StageLimits, SteppingEngine
from omni_runtime.stepping.tensors import to_array
from omni_runtime.writing.loading import WriterPlan, load
from omni_runtime.writing.writer import Writer, Written


class WriterEngine(SteppingEngine[Writer]):
    """Requests take turns on the thread, a token each; a cancel takes effect between two tokens.

    `part` selects what other stages get; without one they get the items as they are.
    """

    def __init__(self, limits: StageLimits, plan: WriterPlan, part: ArPart | None) -> None:
        super().__init__(limits, lambda: load(plan), plan.load.device)
        self._part = part

    async def run(self, request: StageRequest) -> AsyncIterator[StageEvent]:
        payload = payload_of(await gathered(request))
        writer = self._admitted()
        sampling = self._asked(request)
        layers = writer.told_layers if set(request.outputs) != {FINAL} else ()
        inbox = Inbox(layers) if layers else None
        top = sampling.get("logprobs")
        text = TextItems(writer.spelling, top if isinstance(top, int) else None)
        answer = Answer(request.outputs, text, self._part, inbox)
        async with self._turns(writer.turns(payload, sampling), request.request_id) as ticket:
            async for written in ticket.items():
                if inbox is not None:
                    _keep(inbox, written)
                for item in await answer.items(written.step):
                    yield item
            yield replace(answer.usage, compute_seconds=ticket.busy_s)

    def _asked(self, request: StageRequest) -> Sampling:
        parameters = parameters_for(self._limits.stage, request.parameters)
        if parameters.get("lora") is not None:
            raise OmniError(ErrorCode.MODEL_NOT_FOUND, "backend transformers has no adapters", "lora")
        return sampling_of(parameters)


def _keep(inbox: Inbox, written: Written) -> None:
    arrays = [to_array(written.states[layer]) for layer in inbox.layers]
    count, width = arrays[0].shape
    if written.positions is not None:
        inbox.positions = to_array(written.positions)
    inbox.add(written.first, count, [array.data for array in arrays], (arrays[0].dtype, width))
