"""How many requests may wait: beyond that, new ones are refused at once instead of waiting in vain.

One tenant may fill the whole queue while nobody else needs it. When it is full, a tenant with fewer waiting requests
pushes out the newest of whoever has the most: a flood under one key never turns another key's requests away.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from omni_contract.wire.errors import ErrorCode, OmniError


class OverloadedError(OmniError):
    """The queue is full; `retry_after_s` is a guess at when it will not be."""

    def __init__(self, waiting: int, most: int, retry_after_s: int) -> None:
        text = f"{waiting} requests wait already and the queue takes {most}; try again in {retry_after_s} s"
        super().__init__(ErrorCode.OVERLOADED, text)
        self.retry_after_s = retry_after_s


@dataclass(frozen=True)
class Queue:
    """What waits now. `of_tenant` counts each tenant's requests that no stage has been given yet."""

    waiting: int
    free_slots: int
    most: int
    drain_s: float
    of_tenant: Mapping[str, int] = field(default_factory=dict)

    @property
    def refusal(self) -> OverloadedError:
        return OverloadedError(self.waiting, self.most, max(1, min(60, round(self.drain_s))))


def admit(queue: Queue, tenant: str, arriving: int) -> list[str]:
    """Lets the `arriving` requests in, all or none: those that find no free slot must find room in the queue.

    Returns the tenants whose newest request makes room, one entry for each. Raises OverloadedError if no tenant has
    more waiting than this one would have. Nobody overtakes who waits.
    """
    free_now = 0 if queue.waiting else queue.free_slots
    excess = queue.waiting + max(0, arriving - free_now) - queue.most
    left = Counter(queue.of_tenant)
    own = left.pop(tenant, 0) + arriving
    pushed_out: list[str] = []
    for _ in range(excess):
        longest = max(left, key=lambda name: left[name], default=None)
        if longest is None or left[longest] <= own:
            raise queue.refusal
        left[longest] -= 1
        pushed_out.append(longest)
    return pushed_out
