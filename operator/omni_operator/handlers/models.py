"""Wakes the model that an event is about."""

from typing import Any

import kopf

from omni_contract.wire import names as wire
from omni_operator.controller import Controller
from omni_operator.objects import ModelKey


@kopf.on.event(wire.GROUP, wire.VERSION, wire.PLURAL)
async def model_changed(namespace: str | None, name: str | None, memo: kopf.Memo, **_: Any) -> None:
    controller: Controller = memo.controller
    controller.queue.wake(ModelKey(namespace or "", name or ""))
