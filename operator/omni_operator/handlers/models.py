"""Hands events about models to the controller."""

from typing import Any

import kopf

from omni_contract.wire import names as wire
from omni_operator.controller import Controller


@kopf.on.event(wire.GROUP, wire.VERSION, wire.PLURAL)
async def model_changed(event: kopf.RawEvent, memo: kopf.Memo, **_: Any) -> None:
    controller: Controller = memo.controller
    controller.take(event["type"], dict(event["object"]))
