"""What the pods of stages and of the frontend have in common: few rights, writable places, claims, environment."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from omni_contract.accelerators import ClaimMount
from omni_contract.api.v1alpha1 import TlsSpec
from omni_contract.wire import names as wire
from omni_operator import quantity
from omni_operator.objects import Manifest
from omni_operator.plan import names
from omni_operator.settings import ImageSettings

INTERPRETER = ("/opt/venv/bin/python",)
"""Where every image of ours has it; a profile that mounts its own environment says another."""

USER = 65532
TMP = "/tmp"
TMP_SIZE = "8Gi"

ENVIRONMENT = {
    "HOME": f"{TMP}/home",
    "LOGNAME": "omni",
    "PYTHONUNBUFFERED": "1",
    "USER": "omni",
    "XDG_CACHE_HOME": f"{TMP}/cache",
    "XDG_CONFIG_HOME": f"{TMP}/config",
}
"""The root file system is read-only, and user 65532 has no entry in /etc/passwd, without which getpass raises."""

FROM_POD = {
    "OMNI_POD_NAME": "metadata.name",
    "OMNI_POD_IP": "status.podIP",
    "OMNI_NAMESPACE": "metadata.namespace",
}

POD_SECURITY: Manifest = {
    "runAsNonRoot": True,
    "runAsUser": USER,
    "runAsGroup": USER,
    "seccompProfile": {"type": "RuntimeDefault"},
}

CONTAINER_SECURITY: Manifest = {
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]},
}


CERTIFICATE_FILES = (wire.TLS_CERTIFICATE, wire.TLS_KEY, wire.TLS_AUTHORITY)


@dataclass(frozen=True)
class Volume:
    """A volume and where the container sees it."""

    name: str
    path: str
    source: Manifest
    read_only: bool = True

    def in_pod(self) -> Manifest:
        return {"name": self.name, **self.source}

    def in_container(self) -> Manifest:
        mount: Manifest = {"name": self.name, "mountPath": self.path}
        return {**mount, "readOnly": True} if self.read_only else mount


def temporary() -> Volume:
    return Volume("tmp", TMP, {"emptyDir": {"sizeLimit": TMP_SIZE}}, read_only=False)


def shared_memory(size_bytes: int) -> Volume:
    """Without it a container gets 64 MiB, and torch dies of a bus error with an empty disk."""
    source = {"emptyDir": {"medium": "Memory", "sizeLimit": quantity.of_bytes(size_bytes)}}
    return Volume("shm", "/dev/shm", source, read_only=False)


def arena(size_bytes: int) -> Volume:
    """Where the connectors of one pod hand payloads over; /dev/shm is for NCCL and torch."""
    source = {"emptyDir": {"medium": "Memory", "sizeLimit": quantity.of_bytes(size_bytes)}}
    return Volume("arena", wire.ARENA_PATH, source, read_only=False)


def profiles(size_bytes: int | None) -> list[Volume]:
    """A bounded folder for profiles, if there is to be one."""
    if size_bytes is None:
        return []
    source = {"emptyDir": {"sizeLimit": quantity.of_bytes(size_bytes)}}
    return [Volume("profiles", wire.PROFILES_PATH, source, read_only=False)]


def config_map(name: str, map_name: str, path: str) -> Volume:
    return Volume(name, path, {"configMap": {"name": map_name}})


def secret(name: str, secret_name: str, path: str, keys: Iterable[str] = ()) -> Volume:
    """All keys of the Secret, or those that are named; the pod waits while one of them is missing."""
    items = [{"key": key, "path": key} for key in keys]
    return Volume(name, path, {"secret": {"secretName": secret_name, **({"items": items} if items else {})}})


def certificate(tls: TlsSpec | None, component: str) -> list[Volume]:
    """What a component of the model shows to the others, if they ask for it."""
    if tls is None:
        return []
    return [secret("tls", tls.secret_of(component), wire.TLS_PATH, CERTIFICATE_FILES)]


def certificates(tls: TlsSpec | None, stages: Iterable[str]) -> list[Volume]:
    """Of each stage of a pod, in a folder of its name."""
    if tls is None:
        return []
    return [
        secret(f"tls-{index}", tls.secret_of(stage), f"{wire.TLS_PATH}/{stage}", CERTIFICATE_FILES)
        for index, stage in enumerate(stages)
    ]


def claims(mounts: Iterable[ClaimMount]) -> list[Volume]:
    """Only `readOnly` here and in the mount keeps a pod from writing: access modes and the volume's own do not."""
    return [
        Volume(
            f"claim-{index}", mount.mount_path, {"persistentVolumeClaim": {"claimName": mount.claim, "readOnly": True}}
        )
        for index, mount in enumerate(dict.fromkeys(mounts))
    ]


def environment(*layers: Mapping[str, str]) -> list[Manifest]:
    """Every variable once, later layers over earlier ones; the pod's own facts come first, for others to refer to."""
    facts = [{"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}} for name, path in FROM_POD.items()]
    values = {name: value for layer in (ENVIRONMENT, *layers) for name, value in layer.items() if name not in FROM_POD}
    return [*facts, *({"name": name, "value": value} for name, value in sorted(values.items()))]


def command(interpreter: tuple[str, ...], module: str, arguments: Iterable[str]) -> list[str]:
    """tini reaps zombies and passes signals on: Python as process 1 ignores SIGTERM and keeps its dead children."""
    return ["tini", "--", *(interpreter or INTERPRETER), "-m", module, *arguments]


def pod_spec(container: Manifest, volumes: Iterable[Volume], grace_s: int, images: ImageSettings) -> Manifest:
    """The pod of one container, fit for Pod Security "restricted"."""
    volumes = list(volumes)
    main = {
        "name": names.CONTAINER,
        "imagePullPolicy": images.pull_policy,
        "securityContext": CONTAINER_SECURITY,
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [volume.in_container() for volume in volumes],
        **container,
    }
    spec: Manifest = {
        "containers": [main],
        "enableServiceLinks": False,
        "securityContext": POD_SECURITY,
        "terminationGracePeriodSeconds": grace_s,
        "volumes": [volume.in_pod() for volume in volumes],
    }
    if images.pull_secrets:
        spec["imagePullSecrets"] = [{"name": name} for name in images.pull_secrets]
    return spec
