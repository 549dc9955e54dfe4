"""Leader election against a lease in memory; time is a number that the test moves."""

import asyncio
from dataclasses import dataclass, field

import pytest

from omni_operator.errors import Conflict, LeaseLost, NotFound, Unavailable
from omni_operator.kube.lease import Election, FencedWriter
from omni_operator.objects import Kind, Manifest
from omni_operator.settings import LeaseSettings
from tests.support.fake_kube import FakeKube
from tests.support.operator_models import a_model

SETTINGS = LeaseSettings(duration_seconds=15, renew_deadline_seconds=10, retry_seconds=0.001)


@dataclass
class LeaseServer:
    lease: Manifest | None = None
    is_away: bool = False
    versions: asyncio.Queue[int] = field(default_factory=asyncio.Queue)
    """One for each write."""
    _version: int = 0

    async def read(self, kind: Kind, namespace: str, name: str) -> Manifest:
        self._answer()
        if self.lease is None:
            raise NotFound(404, "no lease")
        return self.lease

    async def create(self, manifest: Manifest) -> Manifest:
        self._answer()
        if self.lease is not None:
            raise Conflict(409, "exists")
        return self._store(manifest)

    async def replace(self, manifest: Manifest) -> Manifest:
        self._answer()
        if self.lease is None or manifest["metadata"]["resourceVersion"] != self.lease["metadata"]["resourceVersion"]:
            raise Conflict(409, "changed")
        return self._store(manifest)

    @property
    def holder(self) -> str:
        assert self.lease is not None
        holder: str = self.lease["spec"]["holderIdentity"]
        return holder

    def _answer(self) -> None:
        if self.is_away:
            raise Unavailable(0, "connection refused")

    def _store(self, manifest: Manifest) -> Manifest:
        self._version += 1
        self.versions.put_nowait(self._version)
        self.lease = {**manifest, "metadata": {**manifest["metadata"], "resourceVersion": str(self._version)}}
        return self.lease


@dataclass
class Clock:
    now: float = 1000.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Candidates:
    server: LeaseServer = field(default_factory=LeaseServer)
    clock: Clock = field(default_factory=Clock)

    def named(self, name: str) -> Election:
        return Election(self.server, "system", name, SETTINGS, self.clock)


@pytest.fixture
def candidates() -> Candidates:
    return Candidates()


async def acquired(election: Election, within_s: float = 0.1) -> bool:
    try:
        async with asyncio.timeout(within_s):
            await election.acquire()
    except TimeoutError:
        return False
    return True


async def test_the_first_candidate_leads_and_the_second_waits(candidates: Candidates) -> None:
    assert await acquired(candidates.named("a"))
    assert not await acquired(candidates.named("b"))
    assert candidates.server.holder == "a"


async def test_a_lease_that_is_given_back_is_free_at_once(candidates: Candidates) -> None:
    first = candidates.named("a")
    await first.acquire()
    await first.release()
    assert await acquired(candidates.named("b"))
    assert candidates.server.holder == "b"


@pytest.mark.case("operator:M07")
async def test_a_lease_runs_out_by_the_waiting_candidate_s_own_clock(candidates: Candidates) -> None:
    await candidates.named("a").acquire()
    assert candidates.server.lease is not None
    candidates.server.lease["spec"]["renewTime"] = "1999-01-01T00:00:00.000000Z"
    second = candidates.named("b")
    assert not await acquired(second)
    candidates.clock.now += 14.9
    assert not await acquired(second)
    candidates.clock.now += 0.2
    assert await acquired(second)


async def test_a_leader_renews(candidates: Candidates) -> None:
    first = candidates.named("a")
    await first.acquire()
    held = asyncio.create_task(first.hold())
    async with asyncio.timeout(2):
        for _ in range(3):
            await candidates.server.versions.get()
    held.cancel()
    await asyncio.gather(held, return_exceptions=True)
    assert candidates.server.holder == "a"


async def test_a_leader_whose_lease_was_taken_stops_at_once(candidates: Candidates) -> None:
    first = candidates.named("a")
    await first.acquire()
    assert candidates.server.lease is not None
    await candidates.server.replace({**candidates.server.lease, "spec": {"holderIdentity": "b"}})
    with pytest.raises(LeaseLost):
        await first.hold()
    await first.release()
    assert candidates.server.holder == "b"


@pytest.mark.case("operator:M05")
async def test_a_leader_that_cannot_renew_stops_before_another_may_lead(candidates: Candidates) -> None:
    first = candidates.named("a")
    await first.acquire()
    candidates.server.is_away = True
    held = asyncio.create_task(first.hold())
    await asyncio.sleep(0.02)
    assert not held.done()
    candidates.clock.now += SETTINGS.renew_deadline_seconds
    with pytest.raises(LeaseLost):
        async with asyncio.timeout(2):
            await held


async def test_an_api_server_that_is_away_is_waited_for(candidates: Candidates) -> None:
    candidates.server.is_away = True
    election = candidates.named("a")
    assert not await acquired(election)
    candidates.server.is_away = False
    assert await acquired(election)


@pytest.mark.case("operator:M05")
async def test_a_process_that_was_frozen_writes_nothing_when_it_thaws(candidates: Candidates) -> None:
    election, kube = candidates.named("a"), FakeKube()
    writer = FencedWriter(kube, election)
    await election.acquire()
    model = kube.put(a_model())
    await writer.apply(model)
    candidates.clock.now += SETTINGS.renew_deadline_seconds
    with pytest.raises(LeaseLost):
        await writer.apply(model)
    with pytest.raises(LeaseLost):
        await writer.delete(model)
    assert [call.name for call in kube.writes()] == ["toy"]
