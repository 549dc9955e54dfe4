"""The Deployment of a stage: one worker process per pod, on the devices of its pool."""

from collections.abc import Iterator, Mapping
from math import ceil

from omni_contract.accelerators import ClaimMount
from omni_contract.resolve.resolved import ResolvedDevice, ResolvedDiagnostics, ResolvedModel, ResolvedStage
from omni_contract.wire import names as wire
from omni_operator import labels, quantity
from omni_operator.build import pod
from omni_operator.merge import merge
from omni_operator.objects import Manifest
from omni_operator.plan import names
from omni_operator.settings import ImageSettings

STAGE_FILE_FOLDER = wire.STAGE_FILE_PATH.rpartition("/")[0]

DRAIN_MARGIN_S = 15
"""What a worker needs beyond its drain deadline to say goodbye before the kubelet kills it."""

PULL_ALLOWANCE_S = 900
"""A first start also pulls an image of several gigabytes, which must not count as a failed rollout."""

STARTUP_PERIOD_S = 2

LIBRARIES = {
    "HF_HOME": f"{pod.TMP}/huggingface",
    "HF_HUB_OFFLINE": "1",
    "NUMBA_CACHE_DIR": f"{pod.TMP}/numba",
    "TORCHINDUCTOR_CACHE_DIR": f"{pod.TMP}/torchinductor",
    "TRITON_CACHE_DIR": f"{pod.TMP}/triton",
    "VLLM_CACHE_ROOT": f"{pod.TMP}/vllm",
    "VLLM_CONFIG_ROOT": f"{pod.TMP}/vllm-config",
}
"""Where engines' libraries write; a profile may say otherwise."""


def stage_deployment(model: ResolvedModel, stage: ResolvedStage, file_map: Manifest, images: ImageSettings) -> Manifest:
    """Without replicas: they are no part of what a stage was rendered to, so that scaling restarts nothing."""
    revision = labels.with_revision(labels.of_component(model.name, stage.name), _revision_of(file_map))
    ours = {"metadata": {"labels": revision}, "spec": _pod_spec(model, stage, file_map["metadata"]["name"], images)}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": names.component_name(model.name, stage.name), "labels": revision},
        "spec": {
            "progressDeadlineSeconds": startup_budget_s(stage) + PULL_ALLOWANCE_S,
            "revisionHistoryLimit": 2,
            "selector": {"matchLabels": labels.selector(model.name, stage.name)},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
            "template": merge(dict(stage.template), ours),
        },
    }


def _revision_of(manifest: Manifest) -> str:
    revision: str = manifest["metadata"]["labels"][wire.LABEL_REVISION]
    return revision


def _pod_spec(model: ResolvedModel, stage: ResolvedStage, file_map: str, images: ImageSettings) -> Manifest:
    model_mount = ClaimMount(claim=model.source.claim, mount_path=f"{wire.VOLUMES_ROOT}/{model.source.claim}")
    volumes = [
        pod.temporary(),
        pod.shared_memory(stage.shm_bytes),
        *pod.profiles(stage.diagnostics.profile_bytes),
        pod.config_map("stage-file", file_map, STAGE_FILE_FOLDER),
        *pod.certificate(model.tls, stage.name),
        *pod.claims((model_mount, *stage.device.mounts)),
    ]
    container = _container(stage, has_tls=model.tls is not None)
    spec = pod.pod_spec(container, volumes, stage.drain_timeout_s + DRAIN_MARGIN_S, images)
    return {**spec, "automountServiceAccountToken": False, **placement(stage.device)}


def _container(stage: ResolvedStage, has_tls: bool) -> Manifest:
    arguments = [
        *("--stage-file", wire.STAGE_FILE_PATH),
        *("--listen", f"0.0.0.0:{wire.STAGE_PORT}"),
        *("--advertise", f"$(OMNI_POD_IP):{wire.STAGE_PORT}"),
        *("--replica", "$(OMNI_POD_NAME)"),
        *("--metrics-port", str(wire.METRICS_PORT)),
        *(("--tls", wire.TLS_PATH, "--health-port", str(wire.HEALTH_PORT)) if has_tls else ()),
        *diagnostics(stage.diagnostics),
    ]
    return {
        "image": stage.device.image,
        "command": pod.command(stage.device.command, "omni_runtime.worker", arguments),
        "env": pod.environment(LIBRARIES, stage.device.env),
        "ports": [
            port_named("grpc", wire.STAGE_PORT),
            port_named("pipe", wire.PIPE_PORT),
            port_named("metrics", wire.METRICS_PORT),
            *([port_named("health", wire.HEALTH_PORT)] if has_tls else ()),
        ],
        **_resources(stage),
        **probes(startup_budget_s(stage), wire.HEALTH_PORT if has_tls else wire.STAGE_PORT),
    }


def diagnostics(asked: ResolvedDiagnostics) -> Iterator[str]:
    """The admin port stays on the worker's default, the pod's loopback address: it asks nobody who he is."""
    if asked.otlp_endpoint is not None:
        yield from ("--otlp-endpoint", asked.otlp_endpoint)
    if asked.profile_bytes is not None:
        yield from ("--profile-dir", wire.PROFILES_PATH)
    if asked.admin_port is not None:
        yield from ("--admin-port", str(asked.admin_port))
    yield from ("--log-json", "--log-level", asked.log_level)


def port_named(name: str, number: int) -> Manifest:
    return {"name": name, "containerPort": number, "protocol": "TCP"}


def _resources(stage: ResolvedStage) -> Manifest:
    """Pages of /dev/shm are charged to the container, so its memory is asked for on top of the stage's own."""
    return resources(
        stage.device, stage.device.count, {"requests": stage.requests, "limits": stage.limits}, stage.shm_bytes
    )


def resources(
    device: ResolvedDevice, count: int, sides: Mapping[str, Mapping[str, str]], memory_bytes: int
) -> Manifest:
    """Of a container that asks for devices, and for volumes in memory on top of what its processes need."""
    devices = {device.resource: str(count)} if device.resource and count else {}
    summed = {side: {**_with_shared_memory(amounts, memory_bytes), **devices} for side, amounts in sides.items()}
    stated = {side: amounts for side, amounts in summed.items() if amounts}
    return {"resources": stated} if stated else {}


def _with_shared_memory(amounts: Mapping[str, str], shm_bytes: int) -> dict[str, str]:
    summed = dict(amounts)
    if "memory" in summed:
        summed["memory"] = quantity.plus_bytes(summed["memory"], shm_bytes)
    return summed


def probes(budget_s: int, port: int) -> Manifest:
    """Loading may take the whole start-up budget; only afterwards does the heartbeat of the engine count.

    The kubelet knows no TLS for gRPC, so that a worker with TLS answers it on a port of its own.
    """

    def probe(service: str, period_s: int, failures: int, timeout_s: int) -> Manifest:
        return {
            "grpc": {"port": port, "service": service},
            "periodSeconds": period_s,
            "failureThreshold": failures,
            "timeoutSeconds": timeout_s,
        }

    return {
        "startupProbe": probe(wire.HEALTH_STARTUP, STARTUP_PERIOD_S, ceil(budget_s / STARTUP_PERIOD_S), 5),
        "livenessProbe": probe(wire.HEALTH_LIVE, 10, 3, 5),
        "readinessProbe": probe(wire.HEALTH_READY, 2, 2, 2),
    }


def startup_budget_s(stage: ResolvedStage) -> int:
    return ceil(stage.startup_timeout_s * stage.device.startup_factor)


def placement(device: ResolvedDevice) -> Manifest:
    placement: Manifest = {}
    if device.node_selector:
        placement["nodeSelector"] = dict(device.node_selector)
    if device.tolerations:
        placement["tolerations"] = [item.model_dump(mode="json", exclude_none=True) for item in device.tolerations]
    if device.runtime_class_name:
        placement["runtimeClassName"] = device.runtime_class_name
    return placement
