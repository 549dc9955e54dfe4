"""A pod of several stages: one container, in which a supervisor runs a worker for each; one Deployment for all."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from omni_contract.accelerators import ClaimMount, ConfigModel
from omni_contract.api.quantity import quantity as amount_of
from omni_contract.resolve import ResolvedGroup, ResolvedModel, ResolvedStage, stage_file, stage_revision
from omni_contract.resolve.group_ports import WorkerPorts
from omni_contract.wire import names as wire
from omni_contract.wire.group_file import GroupFile, GroupMember
from omni_operator import labels, quantity
from omni_operator.build import deployment, pod
from omni_operator.build.service import stage_service
from omni_operator.merge import merge
from omni_operator.objects import Manifest
from omni_operator.plan import names
from omni_operator.settings import ImageSettings

FOLDER, _, GROUP_FILE_KEY = wire.GROUP_FILE_PATH.rpartition("/")

SUPERVISOR_MARGIN_S = 10
"""What the supervisor gives workers beyond their own drain, and needs itself to end."""

ARENA_MARGIN_BYTES = 16 * 2**20
"""Leases and page tables beside the payloads."""


@dataclass(frozen=True)
class Member:
    """A stage of the group, and where its worker listens: the processes of a pod share its ports."""

    stage: ResolvedStage
    ports: WorkerPorts


def group_manifests(model: ResolvedModel, group: ResolvedGroup, images: ImageSettings) -> list[Manifest]:
    members = [Member(model.stage(name), WorkerPorts(index)) for index, name in enumerate(group.stages)]
    files = _files(model, group, members)
    component = names.group_component(group)
    services = [stage_service(model.name, one.stage.name, component, one.ports.stage) for one in members]
    return [files, *services, _deployment(model, group, members, files, images)]


def group_revision(model: ResolvedModel, group: ResolvedGroup) -> str:
    return names.digest(names.canonical([stage_revision(model, name) for name in group.stages]))


def _files(model: ResolvedModel, group: ResolvedGroup, members: Sequence[Member]) -> Manifest:
    """Immutable and named by its content, like the file of a stage that is alone."""
    component = names.group_component(group)
    data = {GROUP_FILE_KEY: _text(GroupFile(members=tuple(_member(model, group, one) for one in members)))}
    for one in members:
        revision = stage_revision(model, one.stage.name)
        data[f"{one.stage.name}.json"] = _text(stage_file(model, one.stage.name, revision, wire.VOLUMES_ROOT))
    revised = labels.with_revision(labels.of_component(model.name, component), group_revision(model, group))
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": names.stage_file_name(model.name, component, names.canonical(dict(data))),
            "labels": revised,
        },
        "immutable": True,
        "data": data,
    }


def _text(document: ConfigModel) -> str:
    return names.canonical(document.model_dump(mode="json", by_alias=True)) + "\n"


def _member(model: ResolvedModel, group: ResolvedGroup, member: Member) -> GroupMember:
    numbers = group.devices[member.stage.name]
    visible = group.visible_devices_variable
    return GroupMember(
        name=member.stage.name,
        arguments=tuple(_arguments(member, has_tls=model.tls is not None)),
        environment={visible: ",".join(map(str, numbers))} if visible and numbers else {},
        health=f"127.0.0.1:{member.ports.health}",
        drain_timeout_s=member.stage.drain_timeout_s,
    )


def _arguments(member: Member, has_tls: bool) -> Iterator[str]:
    """Address and name of the pod a worker knows from its environment."""
    yield from ("--stage-file", f"{FOLDER}/{member.stage.name}.json")
    yield from ("--listen", f"0.0.0.0:{member.ports.stage}")
    yield from ("--health-port", str(member.ports.health))
    yield from ("--metrics-port", str(member.ports.metrics))
    yield from ("--shared-memory", wire.ARENA_PATH)
    if has_tls:
        yield from ("--tls", f"{wire.TLS_PATH}/{member.stage.name}")
    yield from deployment.diagnostics(member.stage.diagnostics)


def _deployment(
    model: ResolvedModel, group: ResolvedGroup, members: Sequence[Member], files: Manifest, images: ImageSettings
) -> Manifest:
    """Without replicas, as that of a stage."""
    component = names.group_component(group)
    revised = files["metadata"]["labels"]
    ours = {
        "metadata": {"labels": revised},
        "spec": _pod_spec(model, group, members, files["metadata"]["name"], images),
    }
    template: Manifest = {}
    for one in members:
        template = merge(template, dict(one.stage.template))
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": names.component_name(model.name, component), "labels": revised},
        "spec": {
            "progressDeadlineSeconds": _startup_budget_s(members) + deployment.PULL_ALLOWANCE_S,
            "revisionHistoryLimit": 2,
            "selector": {"matchLabels": labels.selector(model.name, component)},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
            "template": merge(template, ours),
        },
    }


def _pod_spec(
    model: ResolvedModel, group: ResolvedGroup, members: Sequence[Member], files: str, images: ImageSettings
) -> Manifest:
    stages = [one.stage for one in members]
    device = stages[0].device
    profiles = sum(stage.diagnostics.profile_bytes or 0 for stage in stages)
    arena_bytes = _arena_bytes(model, group)
    checkpoint = ClaimMount(claim=model.source.claim, mount_path=f"{wire.VOLUMES_ROOT}/{model.source.claim}")
    volumes = [
        pod.temporary(),
        pod.shared_memory(sum(stage.shm_bytes for stage in stages)),
        pod.arena(arena_bytes),
        *pod.profiles(profiles or None),
        pod.config_map("stage-files", files, FOLDER),
        *pod.certificates(model.tls, group.stages),
        *pod.claims((checkpoint, *device.mounts)),
    ]
    drain_s = max(stage.drain_timeout_s for stage in stages)
    grace_s = drain_s + deployment.DRAIN_MARGIN_S + SUPERVISOR_MARGIN_S
    spec = pod.pod_spec(_container(group, members, arena_bytes), volumes, grace_s, images)
    return {**spec, "automountServiceAccountToken": False, **deployment.placement(device)}


def _container(group: ResolvedGroup, members: Sequence[Member], arena_bytes: int) -> Manifest:
    stages = [one.stage for one in members]
    device = stages[0].device
    in_memory = arena_bytes + sum(stage.shm_bytes for stage in stages)
    arguments = ("--group-file", wire.GROUP_FILE_PATH, "--health-port", str(wire.GROUP_HEALTH_PORT))
    return {
        "image": device.image,
        "command": pod.command(device.command, "omni_runtime.local.group", arguments),
        "env": pod.environment(deployment.LIBRARIES, device.env),
        "ports": [
            *(deployment.port_named(f"grpc-{one.ports.index}", one.ports.stage) for one in members),
            *(deployment.port_named(f"pipe-{one.ports.index}", one.ports.pipe) for one in members),
            *(deployment.port_named(f"metrics-{one.ports.index}", one.ports.metrics) for one in members),
            deployment.port_named("health", wire.GROUP_HEALTH_PORT),
        ],
        **deployment.resources(device, group.device_count, _amounts(stages), in_memory),
        **deployment.probes(_startup_budget_s(members), wire.GROUP_HEALTH_PORT),
    }


def _amounts(stages: Sequence[ResolvedStage]) -> Mapping[str, Mapping[str, str]]:
    """What the stages ask for together; bounded only where each of them is."""
    asked = {
        name: quantity.total(stage.requests[name] for stage in stages if name in stage.requests)
        for name in ("cpu", "memory")
        if any(name in stage.requests for stage in stages)
    }
    bounded = all("memory" in stage.limits for stage in stages)
    return {"requests": asked, "limits": {"memory": asked["memory"]} if bounded else {}}


def _arena_bytes(model: ResolvedModel, group: ResolvedGroup) -> int:
    """One arena of every stage that puts payloads into shared memory, for each connector over it."""
    sizes = {one.name: int(amount_of(one.shm.size)) for one in model.connectors if one.shm is not None}
    producers = {
        (edge.source, name)
        for edge in model.edges
        if edge.shares_memory and edge.source in group.stages
        for name in (("shm",) if edge.connector == "auto" else (edge.connector,))
        if name in sizes
    }
    return ARENA_MARGIN_BYTES + sum(sizes[name] for _, name in producers)


def _startup_budget_s(members: Sequence[Member]) -> int:
    return max(deployment.startup_budget_s(one.stage) for one in members)
