"""Headers of ours on answers that stages have made."""

from collections.abc import Iterable, Mapping

SEED_HEADER = "x-omni-seed"
REPLICAS_HEADER = "x-omni-replicas"


def headers_of(seed: int, replicas: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """The first seed, and the replicas that took part: `denoiser=denoiser-0,denoiser-1; vae-decoder=…`."""
    named: dict[str, list[str]] = {}
    for of_one in replicas:
        for stage, replica in of_one.items():
            named.setdefault(stage, []).append(replica)
    served = "; ".join(f"{stage}={','.join(dict.fromkeys(names))}" for stage, names in named.items())
    return {SEED_HEADER: str(seed)} | ({REPLICAS_HEADER: served} if served else {})
