"""Hypothesis strategies for specs that the schema allows: most make no sense, some do."""

import copy
from collections.abc import Iterator
from typing import Any

from hypothesis import strategies as st

from omni_contract.api.v1alpha1 import DIFFUSION_PHASES
from omni_contract.wire.logs import LEVELS

NAMES = ("text-encoder", "denoiser", "vae-decoder", "a", "b", "frontend")
POOLS = ("h100", "mi300", "ascend910", "arc", "cpu", "nowhere")


def _maybe(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """A map with any of the fields."""
    return st.fixed_dictionaries({}, optional=fields)


def quantities() -> st.SearchStrategy[Any]:
    return st.sampled_from([1, "64Mi", "1.5Gi", "500m", "16Gi", "2k"])


def engines() -> st.SearchStrategy[dict[str, Any]]:
    phases = st.lists(st.sampled_from(DIFFUSION_PHASES), min_size=1, max_size=3)
    diffusion = _maybe(phases=phases, dtype=st.sampled_from(["auto", "bfloat16"]))
    fake = _maybe(
        behavior=st.sampled_from(["echo", "delay", "crash"]),
        delaySeconds=st.sampled_from([0, 0.5]),
        crashAt=st.integers(0, 5),
    )
    return _maybe(diffusion=diffusion, fake=fake)


def stages() -> st.SearchStrategy[dict[str, Any]]:
    sampling = st.dictionaries(
        st.sampled_from(["steps", "width", "height", "colour"]),
        st.one_of(st.integers(-5, 5000), st.text(max_size=3), st.none(), st.lists(st.integers(), max_size=2)),
        max_size=3,
    )
    rest = _maybe(
        output=st.fixed_dictionaries({"modality": st.sampled_from(["text", "image"])}),
        replicas=st.sampled_from([0, 1, 1000]),
        accelerator=_maybe(
            pool=st.sampled_from(POOLS),
            count=st.integers(0, 3),
            memoryFraction=st.sampled_from([0.4, 0.7, 1]),
            devices=st.lists(st.integers(0, 2), min_size=1, max_size=2, unique=True),
        ),
        resources=_maybe(cpu=quantities(), memory=quantities()),
        sampling=sampling,
        maxInFlight=st.sampled_from([1, 4096]),
        maxBatchSize=st.sampled_from([1, 1024]),
        batchTimeoutSeconds=st.sampled_from([0, 0.5]),
        shm=_maybe(size=quantities()),
        logLevel=st.sampled_from(LEVELS),
        profiles=_maybe(size=quantities()),
        adminPort=st.sampled_from([1024, 9090, 50_060]),
    )
    named = st.fixed_dictionaries({"name": st.sampled_from(NAMES)})
    return st.tuples(named, engines(), rest).map(lambda parts: parts[0] | parts[1] | parts[2])


def edges() -> st.SearchStrategy[dict[str, Any]]:
    ends = st.fixed_dictionaries({"from": st.sampled_from(NAMES), "to": st.sampled_from(NAMES)})
    numbers = st.sampled_from([1, 2, 25])
    streaming = _maybe(
        enabled=st.booleans(), chunkFrames=numbers, initialChunkFrames=numbers, leftContextFrames=numbers
    )
    rest = _maybe(
        connector=st.sampled_from(["auto", "inline", "grpc", "shm", "fast"]),
        transform=st.sampled_from(["tokens"]),
        retain=st.sampled_from(["consumed", "terminal"]),
        streaming=streaming,
    )
    return st.tuples(ends, rest).map(lambda parts: parts[0] | parts[1])


def connectors() -> st.SearchStrategy[dict[str, Any]]:
    named = st.fixed_dictionaries({"name": st.sampled_from(["fast", "shm", "grpc"])})
    blocks = _maybe(
        shm=_maybe(size=quantities(), waitSeconds=st.sampled_from([0, 2.5])),
        mooncakeStore=_maybe(managed=st.booleans(), master=st.sampled_from(["store:50051", "10.0.0.1:50051"])),
        mooncakeTransferEngine=_maybe(
            protocol=st.sampled_from(["tcp", "rdma"]),
            poolDevice=st.sampled_from(["cpu", "cuda"]),
            firstPort=st.sampled_from([1024, 20_000]),
        ),
        yuanrong=_maybe(port=st.sampled_from([1, 31_501])),
    )
    return st.tuples(named, blocks).map(lambda parts: parts[0] | parts[1])


def certificates() -> st.SearchStrategy[dict[str, Any]]:
    named = st.fixed_dictionaries({"name": st.sampled_from(NAMES), "secretName": st.sampled_from(["a", "b.c"])})
    stages = st.lists(named, max_size=2, unique_by=lambda stage: stage["name"])
    return st.fixed_dictionaries({"secretName": st.just("tls")}, optional={"stages": stages})


def groups() -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from(NAMES), min_size=2, max_size=3, unique=True)


def monitoring() -> st.SearchStrategy[dict[str, Any]]:
    endpoint = st.fixed_dictionaries(
        {"otlpEndpoint": st.just("http://otel:4317")}, optional={"ratio": st.sampled_from([0, 0.5, 1])}
    )
    return _maybe(logLevel=st.sampled_from(LEVELS), tracing=endpoint)


def specs() -> st.SearchStrategy[dict[str, Any]]:
    """As YAML would give them."""
    sources = st.sampled_from(["pvc://models/qwen-image", "pvc://models", "Qwen/Qwen-Image"])
    model = st.fixed_dictionaries({"source": sources}, optional={"loadFormat": st.sampled_from(["auto", "dummy"])})
    frontend = _maybe(
        replicas=st.integers(1, 3),
        limits=_maybe(maxSteps=st.integers(1, 100)),
        logStats=st.booleans(),
        adminPort=st.sampled_from([1024, 8000, 8001]),
    )
    return st.fixed_dictionaries(
        {"model": model},
        optional={
            "family": st.sampled_from(["qwen-image", "unheard-of"]),
            "stages": st.lists(stages(), max_size=4, unique_by=lambda stage: stage["name"]),
            "edges": st.lists(edges(), max_size=5, unique_by=lambda edge: (edge["from"], edge["to"])),
            "connectors": st.lists(connectors(), max_size=2, unique_by=lambda connector: connector["name"]),
            "frontend": frontend,
            "network": _maybe(tls=certificates()),
            "monitoring": monitoring(),
            "placement": _maybe(colocate=st.lists(groups(), max_size=2)),
        },
    )


STAGE = {
    "name": "denoiser",
    "diffusion": {"phases": ["denoise"], "dtype": "bfloat16"},
    "replicas": 2,
    "accelerator": {"pool": "h100", "count": 2},
    "resources": {"cpu": 4, "memory": "16Gi"},
    "sampling": {"steps": 20},
    "maxInFlight": 8,
    "maxBatchSize": 4,
    "batchTimeoutSeconds": 0.5,
    "shm": {"size": "1Gi"},
    "drain": {"timeoutSeconds": 5},
    "startupTimeoutSeconds": 60,
    "logLevel": "debug",
    "profiles": {"size": "2Gi"},
    "adminPort": 50060,
    "template": {"spec": {"priorityClassName": "high"}},
}
SOUND: tuple[dict[str, Any], ...] = (
    {
        "model": {"source": "pvc://models/qwen-image", "servedNames": ["a", "b"], "loadFormat": "dummy"},
        "family": "qwen-image",
        "stages": [STAGE, {"name": "vae-decoder", "output": {"modality": "image", "final": True}}],
        "edges": [{"from": "denoiser", "to": "vae-decoder", "connector": "fast", "retain": "terminal"}],
        "connectors": [
            {"name": "fast", "shm": {"size": "1Gi", "directory": "/mnt/memory", "checksum": True}},
            {"name": "store", "mooncakeStore": {"managed": True, "segmentSize": "1Gi", "bufferSize": "64Mi"}},
            {
                "name": "rdma",
                "mooncakeTransferEngine": {"protocol": "rdma", "deviceName": "mlx5_0", "firstPort": 20000},
            },
            {"name": "ascend", "yuanrong": {"host": "10.0.0.1", "getTimeoutSeconds": 0.5}},
        ],
        "frontend": {
            "replicas": 2,
            "service": {"type": "NodePort", "nodePort": 30080},
            "auth": {"apiKeysSecretRef": {"name": "keys"}},
            "limits": {"maxSteps": 100, "queueTimeoutSeconds": 20, "requestTimeoutSeconds": 60},
            "logStats": True,
            "adminPort": 8001,
        },
        "network": {"tls": {"secretName": "tls", "stages": [{"name": "denoiser", "secretName": "denoiser-tls"}]}},
        "monitoring": {"logLevel": "warning", "tracing": {"otlpEndpoint": "http://otel:4317", "ratio": 0.1}},
        "placement": {"colocate": [["denoiser", "vae-decoder"]]},
        "suspend": True,
    },
    {
        "model": {"source": "pvc://models"},
        "stages": [
            {"name": "a", "fake": {"behavior": "delay", "delaySeconds": 0.5, "steps": 3}},
            {"name": "b", "fake": {"behavior": "crash", "crashAt": 3}},
        ],
        "edges": [
            {
                "from": "a",
                "to": "b",
                "streaming": {"enabled": True, "chunkFrames": 4, "initialChunkFrames": 2, "leftContextFrames": 1},
            }
        ],
    },
)

JUNK = ("x", "X y", "", "2", 5, -1, 10**6, 1.5, True, [], {}, ["x"], {"x": 1}, [5], "a" * 600)


@st.composite
def damaged_specs(draw: st.DrawFn) -> dict[str, Any]:
    """Sound specs in which one value, somewhere, has been replaced by something else, or a key added."""
    spec = copy.deepcopy(draw(st.sampled_from(SOUND)))
    places = list(_places(spec))
    holder, key = draw(st.sampled_from(places))
    if isinstance(holder, dict) and draw(st.booleans()):
        key = draw(st.sampled_from(["unheardOf", "max_in_flight", "replicas", "from", "type"]))
    holder[key] = copy.deepcopy(draw(st.sampled_from(JUNK)))
    return spec


def _places(node: Any) -> Iterator[tuple[Any, Any]]:
    """Every key and index below a node, with the map or list that holds it."""
    children = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, child in list(children):
        yield node, key
        if key != "sampling":
            yield from _places(child)
