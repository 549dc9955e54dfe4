"""What the figures are held to; an id without a bound is reported, not judged."""

from dataclasses import dataclass

from benchmarks.ledger import Entry


@dataclass(frozen=True)
class AtMost:
    """Bound in the entry's unit."""

    value: float

    def __str__(self) -> str:
        return f"≤ {self.value:g}"

    def holds(self, measured: float) -> bool:
        return measured <= self.value


@dataclass(frozen=True)
class AtLeast:
    """Bound in the entry's unit."""

    value: float

    def __str__(self) -> str:
        return f"≥ {self.value:g}"

    def holds(self, measured: float) -> bool:
        return measured >= self.value


BOUNDS: dict[str, AtMost | AtLeast] = {
    "ar.tok_s_ratio_vs_vllm.cpu": AtLeast(0.9),
    "ar.tok_s_ratio_vs_vllm.h200": AtLeast(0.95),
    "cancel.leftovers": AtMost(0),
    "demo.cold_s": AtMost(1200),
    "demo.warm_s": AtMost(180),
    "first_audio.e2e_ratio.c1": AtMost(1),
    "first_audio.e2e_ratio.c16": AtMost(1),
    "first_audio.e2e_ratio.c4": AtMost(1),
    "first_audio.speedup": AtLeast(8),
    "first_audio.vs_critical_path": AtMost(1.15),
    "hop.median_ms.c1": AtMost(3),
    "hop.median_ms.c64": AtMost(1),
    "hop.median_ms.c64.stage_10ms": AtMost(1),
    "hop.open30_median_ms": AtMost(0.5),
    "hop.saturation_ratio_vs_grpc": AtLeast(8),
    "mooncake_te.ratio_vs_raw": AtLeast(0.95),
    "omni.audio_s_per_s_ratio_vs_vllm_omni.h200.c16": AtLeast(1),
    "omni.e2e_ratio_vs_transformers.c16": AtMost(0.5),
    "omni.first_audio_ratio_vs_vllm_omni.h200.c1": AtMost(1),
    "operator.apply_to_children.p99_s": AtMost(1),
    "operator.idle_writes_10min": AtMost(0),
    "overload.goodput_at_3x": AtLeast(0.95),
    "replicas.efficiency_1to4": AtLeast(0.95),
    "routing.p99_vs_random": AtMost(0.7),
    "shm.16MiB.ratio_vs_vllm_omni": AtLeast(3),
    "shm.256MiB.ratio_vs_vllm_omni": AtLeast(3),
    "shm.64KiB.us": AtMost(100),
    "test.unit_s": AtMost(60),
}


def is_within_bound(entry: Entry) -> bool:
    return entry.id not in BOUNDS or BOUNDS[entry.id].holds(entry.value)
