"""A peer of `benchmarks.shm`: a multiprocessing queue, which pickles arrays through a pipe of its own."""

from multiprocessing import get_context
from multiprocessing.queues import Queue

from benchmarks.shm_pair import Bytes, Pipe, consume_with, consumer, produce


def consume(hears: Pipe, answers: Pipe, queue: "Queue[Bytes]") -> None:
    consume_with(lambda _: queue.get(), hears, answers)


def main() -> None:
    queue: Queue[Bytes] = get_context("spawn").Queue()
    with consumer(consume, queue) as (tells, answers):
        produce(queue.put, tells, answers)


if __name__ == "__main__":
    main()
