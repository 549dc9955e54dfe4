"""The replicas of one stage, and the requests that wait for one of them."""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from omni_contract.wire.errors import OmniError
from omni_runtime.orchestrator.fair_queue import FairQueue
from omni_runtime.orchestrator.link import Link
from omni_runtime.orchestrator.routing import NO_WISH, Choose, Wish, can_read, choose, preferred
from omni_runtime.orchestrator.work import ANY, Kind, WorkModel

REFUSED_PAUSE_S = 0.05


class Waiter(Protocol):
    """A session, as a pool sees it."""

    def assigned(self, stage: str, link: Link) -> None: ...

    def unavailable(self, stage: str) -> None:
        """No replica could have served the stage for as long as the queue timeout."""
        ...

    def pushed_out(self, error: OmniError) -> None:
        """Its place in a full queue goes to a tenant who has fewer."""
        ...


class Viability(Protocol):
    def __call__(self, boot_id: str) -> bool: ...


class Need(NamedTuple):
    """What a replica must be to serve a request. `contracts` are those of the payloads that it brings, by edge."""

    is_viable: Viability
    contracts: tuple[tuple[str, str], ...]


@dataclass(eq=False, slots=True)
class Ticket:
    """A session's place in a stage's queue.

    Tenants take turns; `priority` orders one tenant's own requests, the least first.
    """

    waiter: Waiter
    need: Need
    avoid: frozenset[str] = frozenset()
    queue_timeout_s: float = 30.0
    tenant: str = ""
    priority: int = 0
    kind: Kind = ANY
    wish: Wish = NO_WISH
    deserted_since_s: float | None = field(default=None, init=False)
    """Since when no replica could serve it."""
    is_waiting: bool = field(default=True, init=False)


class StagePool:
    """Gives each who waits, in turn, a replica that fits. Nothing polls: changes of a link pump it."""

    def __init__(self, stage: str, choose: Choose = choose) -> None:
        self.stage = stage
        self._choose = choose
        self.work = WorkModel()
        self.links: dict[str, Link] = {}
        self.routable: list[Link] = []
        """The links that take work, as of the last look."""
        self._fitting_by_need: dict[Need, list[Link]] = {}
        self._queue: FairQueue[Ticket] = FairQueue()
        self._choices = 0
        self._timer: asyncio.TimerHandle | None = None

    @property
    def waiting(self) -> int:
        return len(self._queue)

    @property
    def waiting_of_tenant(self) -> Mapping[str, int]:
        return self._queue.waiting()

    @property
    def is_asleep(self) -> bool:
        """No replica takes work, and one of them would if it were woken."""
        return not self.routable and any(link.is_asleep for link in self.links.values())

    @property
    def free_slots(self) -> int:
        return sum(link.max_in_flight - link.in_flight for link in self.routable if link.has_room)

    @property
    def drain_s(self) -> float:
        """About how long it takes until those who wait now have been served."""
        slots = sum(link.max_in_flight for link in self.routable)
        return self.waiting * self.work.typical_s / slots if slots else 1.0

    def enqueue(self, ticket: Ticket, is_urgent: bool = False) -> None:
        """Assigns at once if a replica has room and nobody waits; an urgent ticket (a retry) goes first."""
        if not self._queue and (link := self._place(ticket)) is not None:
            self._assign(ticket, link)
            return
        if is_urgent:
            self._queue.push_urgent(ticket)
        else:
            self._queue.push(ticket, ticket.tenant, ticket.priority)
        self.pump()
        if ticket.is_waiting:
            self._watch_deserted([ticket])

    def withdraw(self, ticket: Ticket) -> None:
        if ticket.is_waiting:
            self._queue.remove(ticket)
            ticket.is_waiting = False

    def push_out(self, tenant: str, error: OmniError) -> None:
        """Ends the tenant's request whose turn would come last."""
        ticket = self._queue.last(tenant)
        self.withdraw(ticket)
        ticket.waiter.pushed_out(error)

    def look(self) -> None:
        """A link may take more or less than before; `members_changed` follows once every pool has looked."""
        self.routable = [link for link in self.links.values() if link.is_routable]
        self._fitting_by_need.clear()

    def members_changed(self) -> None:
        self.pump()
        self._watch_deserted(self._queue)

    def pump(self) -> None:
        """Gives free slots to those who wait; one whose replicas are busy does not hold up the next."""
        if not self._queue:
            return
        turns = self._queue.turns()
        while any(link.has_room for link in self.routable) and (ticket := next(turns, None)) is not None:
            link = self._place(ticket)
            if link is not None:
                self._queue.serve(ticket)
                self._assign(ticket, link)

    def pause(self, link: Link) -> None:
        """The worker was full, though by our count it had room: other frontends use it, too."""
        link.is_paused = True
        asyncio.get_running_loop().call_later(REFUSED_PAUSE_S, self._resume, link)

    def _resume(self, link: Link) -> None:
        link.is_paused = False
        self.pump()

    def _assign(self, ticket: Ticket, link: Link) -> None:
        ticket.is_waiting = False
        ticket.waiter.assigned(self.stage, link)

    def _place(self, ticket: Ticket) -> Link | None:
        fitting = self._fitting(ticket.need)
        if ticket.avoid:
            fitting = preferred(fitting, ticket.avoid)
        free = [link for link in fitting if link.has_room]
        link = next(iter(free), None)
        if len(free) > 1:
            link = self._choose(free, self.work.predict_s(ticket.kind), ticket.wish)
        if link is not None:
            self._choices += 1
            link.last_chosen = self._choices
        return link

    def _fitting(self, need: Need) -> list[Link]:
        """Found once for all requests with the same need, until a link changes."""
        fitting = self._fitting_by_need.get(need)
        if fitting is None:
            fitting = self._fitting_by_need[need] = [
                link
                for link in self.routable
                if link.replica
                and can_read(link.replica, dict(need.contracts))
                and need.is_viable(link.replica.boot_id)
            ]
        return fitting

    def _watch_deserted(self, tickets: Iterable[Ticket]) -> None:
        now_s = asyncio.get_running_loop().time()
        for ticket in tickets:
            if self._fitting(ticket.need):
                ticket.deserted_since_s = None
            elif ticket.deserted_since_s is None:
                ticket.deserted_since_s = now_s
        self._arm()

    def _arm(self) -> None:
        """One timer for the pool, at the earliest end of patience."""
        if self._timer is not None:
            self._timer.cancel()
        ends_s = [end_s for ticket in self._queue if (end_s := _patience_ends_s(ticket)) is not None]
        self._timer = asyncio.get_running_loop().call_at(min(ends_s), self._give_up) if ends_s else None

    def _give_up(self) -> None:
        now_s = asyncio.get_running_loop().time()
        over = [ticket for ticket in self._queue if (_patience_ends_s(ticket) or float("inf")) <= now_s]
        for ticket in over:
            self.withdraw(ticket)
            ticket.waiter.unavailable(self.stage)
        self._arm()


def _patience_ends_s(ticket: Ticket) -> float | None:
    return None if ticket.deserted_since_s is None else ticket.deserted_since_s + ticket.queue_timeout_s
