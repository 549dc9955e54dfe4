"""The worker's Prometheus metrics."""

from collections.abc import Callable, Collection, Mapping
from functools import partial

from prometheus_client import CollectorRegistry, Gauge

from omni_contract.wire import names
from omni_runtime.connectors.protocol import ArenaCensus
from omni_runtime.statistics.tallies import Spread, Tally
from omni_runtime.worker.measures import Flow, Work
from omni_runtime.worker.work_metrics import WorkMetrics

FAST_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
SLOW_BUCKETS = (*FAST_BUCKETS, 30.0, 60.0, 120.0, 300.0, 600.0)
OTHER = "other"

ARENA_GAUGES: tuple[tuple[str, str, Mapping[str, Callable[[ArenaCensus], float]]], ...] = (
    (
        names.WORKER_ARENA_BYTES,
        "Bytes of an arena of shared memory.",
        {"size": lambda census: census.size_bytes, "used": lambda census: census.used_bytes},
    ),
    (
        names.WORKER_ARENA_BLOCKS,
        "Blocks in use in an arena; the lingering ones wait for their last reader.",
        {"used": lambda census: census.blocks, "lingering": lambda census: census.lingering},
    ),
)


class WorkerMetrics:
    """One set per worker, in a registry of its own. `edges` are those of the stage: labels that there may be."""

    def __init__(self, edges: Collection[str] = ()) -> None:
        self.registry = CollectorRegistry()
        self.work = Work()
        self._flows = {edge: Flow() for edge in (*edges, names.FINAL, OTHER)}
        self._other = self._flows[OTHER]
        self._requests = Tally(names.WORKER_REQUESTS, "Requests ended, by outcome.", ["outcome"], self.registry)
        self.request_seconds = self._histogram(
            names.WORKER_REQUEST_SECONDS, "From start to terminal message.", SLOW_BUCKETS
        )
        self.step_seconds = self._histogram(names.WORKER_STEP_SECONDS, "Between two steps of a request.", SLOW_BUCKETS)
        self.cancel_seconds = self._histogram(
            names.WORKER_CANCEL_SECONDS, "From a cancel's arrival until all is freed.", FAST_BUCKETS
        )
        WorkMetrics(self.work, self._flows, self.registry)

    def count_outcome(self, outcome: str) -> None:
        self._requests.counts[outcome,] += 1

    def flow(self, edge: str) -> Flow:
        """Edges come from the network: no peer makes us keep a series for each name that it thinks of."""
        return self._flows.get(edge, self._other)

    def outcomes(self) -> dict[str, int]:
        """Requests ended so far, by outcome."""
        return {outcome: int(count) for (outcome,), count in self._requests.counts.items()}

    def gauge(self, name: str, text: str, value: Callable[[], float]) -> None:
        """A gauge that is read when it is scraped."""
        Gauge(name, text, registry=self.registry).set_function(value)

    def info(self, **labels: str) -> None:
        """Who this process is, for queries that join its series with these labels."""
        Gauge(names.WORKER_INFO, "Who the worker is.", labels, registry=self.registry).labels(**labels).set(1)

    def expose_arenas(self, arenas: Callable[[], Mapping[str, ArenaCensus]]) -> None:
        """Gauges of the arenas that there are now, read when they are scraped."""
        for name, text, fields in ARENA_GAUGES:
            gauge = Gauge(name, text, ["connector", "what"], registry=self.registry)
            for connector in arenas():
                for what, read in fields.items():
                    gauge.labels(connector, what).set_function(partial(_figure, arenas, connector, read))

    def _histogram(self, name: str, text: str, bounds: tuple[float, ...]) -> Spread:
        return Spread(name, text, bounds, self.registry)


def _figure(
    arenas: Callable[[], Mapping[str, ArenaCensus]], connector: str, read: Callable[[ArenaCensus], float]
) -> float:
    return read(arenas()[connector])
