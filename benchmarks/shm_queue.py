"""A peer of `benchmarks.shm`: a multiprocessing queue, which pickles arrays through a pipe."""

import multiprocessing
from multiprocessing.connection import Connection
from multiprocessing.queues import Queue
from typing import Any

from benchmarks.shm_pair import Bytes, got, produce, say


def consume(queue: "Queue[Bytes]", producer: "Connection[Any, Any]") -> None:
    while producer.recv() is None:
        producer.send(got(lambda _: queue.get(), None))


def main() -> None:
    context = multiprocessing.get_context("spawn")
    queue: Queue[Bytes] = context.Queue()
    ours, theirs = context.Pipe()
    consumer = context.Process(target=consume, args=(queue, theirs), daemon=True)
    consumer.start()

    def ask(told: Any) -> dict[str, Any]:
        ours.send(told)
        answer: dict[str, Any] = ours.recv()
        return answer

    say("ready")
    produce(queue.put, ask)
    consumer.terminate()


if __name__ == "__main__":
    main()
