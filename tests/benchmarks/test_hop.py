"""The hop benchmark's arithmetic; what it measures is measured, not tested."""

import os

from benchmarks.cpu import cpu_s
from benchmarks.hop import Measured, Results, closed_loop
from benchmarks.hop_sides import Side
from benchmarks.load import Answer


async def test_a_closed_loop_sends_each_request_once_with_so_many_in_flight():
    sent: list[int] = []

    async def request(number: int) -> Answer:
        sent.append(number)
        return Answer(took_s=0.003)

    measured = await closed_loop(Side(request, pids=[os.getpid()]), concurrency=4, count=10)
    assert sorted(sent) == list(range(10))
    assert round(measured.hop_ms, 6) == 1.0


async def test_what_the_stages_take_is_no_part_of_a_hop():
    async def request(number: int) -> Answer:
        return Answer(took_s=0.033)

    measured = await closed_loop(Side(request, pids=[os.getpid()], delay_s=0.01), concurrency=1, count=3)
    assert round(measured.hop_ms, 6) == 1.0


def test_saturation_is_the_best_throughput_at_any_concurrency():
    results = Results()
    for concurrency, rate in ((1, 200.0), (64, 900.0), (512, 700.0)):
        results.closed["ours"][concurrency] += [Measured(1, rate * slowdown, 1) for slowdown in (1.0, 0.9, 1.1)]
    assert results.saturation("ours") == 900


def test_cpu_time_of_a_process_does_not_run_backwards():
    before = cpu_s([os.getpid()])
    assert before >= 0
    assert cpu_s([os.getpid()]) >= before
