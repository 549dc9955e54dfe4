"""The frontend's admin port: one control call to every replica of the stages that are named, over HTTP.

Off unless a port is given. Each replica answers for itself; what one refuses does not keep the others from it.
"""

import asyncio
from argparse import Namespace
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, TypeAlias

from omni_runtime.administration.asking import RefusedError, Worker, ask
from omni_runtime.administration.calls import CALLS, DEFAULT_STEPS, DEFAULT_TIMEOUT_S, Call, fields_of
from omni_runtime.administration.listener import Answer, HttpError, envelope
from omni_runtime.administration.queries import Query, Route, invalid, routed
from omni_runtime.orchestrator import Orchestrator, StageStatus
from omni_runtime.orchestrator.orchestrator import ReplicaStatus
from omni_runtime.transport.protocol import Transport

EVERY_STAGE = "*"
Asking: TypeAlias = Coroutine[Any, Any, "ReplicaAnswer"]

ROUTES: Mapping[str, Route[str]] = {
    "/sleep": Route("POST", "sleep", ("stage", "level", "timeout")),
    "/wake": Route("POST", "wake", ("stage",)),
    "/profile/start": Route("POST", "start-profile", ("stage", "steps")),
    "/profile/stop": Route("POST", "stop-profile", ("stage",)),
    "/cache/reset": Route("POST", "reset-cache", ("stage",)),
    "/drain": Route("POST", "drain", ("stage", "timeout")),
    "/stats": Route("GET", "stats", ("stage",)),
}
"""The worker's own, with the stages; each answers by a call of `omni control`."""


@dataclass(frozen=True)
class ReplicaAnswer:
    stage: str
    replica: str
    """Its address, if it has not told its name."""
    status: HTTPStatus
    body: Answer

    def as_json(self) -> Answer:
        part = self.body if "error" in self.body else {"answer": self.body}
        return {"stage": self.stage, "replica": self.replica, **part}


class FrontendAdmin:
    def __init__(self, orchestrator: Orchestrator, transport: Transport) -> None:
        self._orchestrator = orchestrator
        self._transport = transport

    async def answer(self, method: str, target: str) -> tuple[HTTPStatus, Answer]:
        """The whole answer to one request: 200 if every replica did it, 207 if some, else the first one's refusal."""
        try:
            name, query = routed(method, target, ROUTES)
            stages = chosen(query, self._orchestrator.stages(), is_harmless=name == "stats")
            options = _options(query)
        except HttpError as error:
            return error.answer
        answers = await asyncio.gather(*self._asking(CALLS[name], stages, options))
        return _status(answers), {"replicas": [one.as_json() for one in answers]}

    def _asking(
        self, call: Call, stages: Sequence[StageStatus], options: Namespace
    ) -> Iterator[Coroutine[None, None, ReplicaAnswer]]:
        for stage in stages:
            for replica in sorted(stage.replicas, key=_name):
                yield self._ask(call, stage.name, replica, options)
            if not stage.replicas:
                yield _nobody(stage.name)

    async def _ask(self, call: Call, stage: str, replica: ReplicaStatus, options: Namespace) -> ReplicaAnswer:
        name = _name(replica)
        try:
            reply = await ask(call, Worker(replica.address, stage), options, self._transport)
        except RefusedError as error:
            return ReplicaAnswer(stage, name, error.status, envelope(error.status, error.code, str(error)))
        return ReplicaAnswer(stage, name, HTTPStatus.OK, fields_of(reply))


def chosen(query: Query, stages: Sequence[StageStatus], is_harmless: bool) -> list[StageStatus]:
    """The stages that are named, in the model's order; HttpError for a name that none has."""
    named = query.all("stage") or ((EVERY_STAGE,) if is_harmless else ())
    known = [stage.name for stage in stages]
    if not named:
        raise invalid(f"name the stages: ?stage={known[0]}, which may be repeated, or ?stage={EVERY_STAGE} for all")
    for name in named:
        if name not in (*known, EVERY_STAGE):
            text = f'there is no stage "{name}"; there is {", ".join(known)}'
            raise HttpError(HTTPStatus.NOT_FOUND, "not_found", text)
    return [stage for stage in stages if stage.name in named or EVERY_STAGE in named]


def _name(replica: ReplicaStatus) -> str:
    return replica.name or replica.address


def _options(query: Query) -> Namespace:
    """As `omni control` has them."""
    return Namespace(
        level=query.number("level", 1, int),
        timeout=query.number("timeout", DEFAULT_TIMEOUT_S),
        steps=query.number("steps", DEFAULT_STEPS, int),
    )


async def _nobody(stage: str) -> ReplicaAnswer:
    status = HTTPStatus.SERVICE_UNAVAILABLE
    body = envelope(status, "stage_unavailable", f'stage "{stage}" has no replica that this frontend knows of')
    return ReplicaAnswer(stage, "", status, body)


def _status(answers: Sequence[ReplicaAnswer]) -> HTTPStatus:
    refused = [one.status for one in answers if one.status is not HTTPStatus.OK]
    if not refused:
        return HTTPStatus.OK
    return HTTPStatus.MULTI_STATUS if len(refused) < len(answers) else refused[0]
