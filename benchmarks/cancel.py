"""What a thousand cancels leave behind, and how long a stage takes to stop: `python -m benchmarks.cancel`.

Requests run through three fake stages and are aborted in the middle of the one under test. Leftovers are read from the
operating system before and after, once the processes are warm: descriptors, sockets, shared-memory files and children
of every process, resident memory beyond the slack, and slots that do not come back. `cancel.leftovers` counts them.
"""

import argparse
import asyncio
import os
import statistics
import sys
import time

import uvloop

from benchmarks.ledger import write_entry
from benchmarks.stages import FakeStage, RunningStages, running_stages
from omni_contract.api.v1alpha1 import FakeEngine
from omni_runtime.orchestrator import Orchestrator, Progress, SessionRequest
from tests.support.process_census import ProcessCensus, census, growth

COMMAND = "python -m benchmarks.cancel"
STAGES = ("first", "second", "third")
AT_ONCE = 16
SLACK_KIB = 2048
"""Of resident memory per process; a thousand leaks of 2 KiB would show."""
TIMED = 100
SETTLE_S = 30


def stages(slow: str) -> list[FakeStage]:
    engine = FakeEngine(behavior="delay", delay_seconds=0.002, steps=10_000)
    return [FakeStage(name, engine if name == slow else FakeEngine()) for name in STAGES]


async def abort_in_the_middle(orchestrator: Orchestrator, request_id: str) -> None:
    async with orchestrator.submit(SessionRequest(request_id, {"prompt": "a red fox"})) as session:
        async for event in session:
            if isinstance(event, Progress) and event.step > 1:
                return


async def abort_many(orchestrator: Orchestrator, count: int, name: str) -> None:
    numbers = iter(range(count))

    async def client() -> None:
        for number in numbers:
            await abort_in_the_middle(orchestrator, f"{name}-{number}")

    await asyncio.gather(*(client() for _ in range(AT_ONCE)))


async def until_idle(orchestrator: Orchestrator) -> None:
    """Workers have given back every slot; TimeoutError if one never does."""
    async with asyncio.timeout(SETTLE_S):
        while busy(orchestrator):  # noqa: ASYNC110 - nobody tells when a slot is free
            await asyncio.sleep(0.0005)


def busy(orchestrator: Orchestrator) -> int:
    return sum(replica.in_flight for stage in orchestrator.stages() for replica in stage.replicas)


def all_processes(running: RunningStages) -> dict[str, ProcessCensus]:
    return {name: census(pid) for name, pid in {**running.workers, "frontend": os.getpid()}.items()}


async def leftovers(count: int) -> list[str]:
    """One line for each thing that was not there before."""
    async with running_stages(stages("second")) as running:
        await abort_many(running.orchestrator, count, "warm")
        await until_idle(running.orchestrator)
        before = all_processes(running)
        await abort_many(running.orchestrator, count, "counted")
        await until_idle(running.orchestrator)
        found = [str(one) for one in growth(before, all_processes(running), SLACK_KIB)]
        if running.orchestrator.open_sessions:
            found.append(f"frontend: {running.orchestrator.open_sessions} sessions")
        return found


async def stop_times_ms(slow: str) -> list[float]:
    """From the abort until the frontend knows that the stage's slot is free, one request at a time."""
    async with running_stages(stages(slow)) as running:
        taken = []
        for number in range(TIMED):
            await abort_in_the_middle(running.orchestrator, f"timed-{number}")
            began_s = time.perf_counter()
            await until_idle(running.orchestrator)
            taken.append((time.perf_counter() - began_s) * 1000)
        return taken


async def measure(count: int, is_dry: bool) -> int:
    found = await leftovers(count)
    print(f"{count} cancels left {len(found)} things behind", *found, sep="\n  ")
    medians = {stage: statistics.median(await stop_times_ms(stage)) for stage in STAGES}
    for stage, median_ms in medians.items():
        print(f"stage {stage}: stops {median_ms:.2f} ms after the abort (median of {TIMED})")
    if not is_dry:
        write_entry("cancel.leftovers", len(found), f"things after {count} cancels", command=COMMAND)
        write_entry("cancel.stop_median_ms", round(max(medians.values()), 2), "ms", command=COMMAND)
    return len(found)


def main() -> int:
    parser = argparse.ArgumentParser(prog=COMMAND, description=__doc__)
    parser.add_argument("--count", type=int, default=1000, help="cancels that are counted (default: %(default)s)")
    parser.add_argument("--dry-run", action="store_true", help="show the figures without writing them into the ledger")
    arguments = parser.parse_args()
    return 1 if uvloop.run(measure(arguments.count, arguments.dry_run)) else 0


if __name__ == "__main__":
    sys.exit(main())
