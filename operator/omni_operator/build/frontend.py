"""The frontend of a model: Deployment, Service, and the account with the rights to see its stages."""

from omni_contract.api.v1alpha1 import FrontendSpec, TracingSpec
from omni_contract.resolve import ResolvedModel
from omni_contract.wire import names as wire
from omni_contract.wire.frontend_arguments import media_arguments
from omni_operator import labels
from omni_operator.build import pod
from omni_operator.objects import ROLE_BINDING, SERVICE_ACCOUNT, Manifest
from omni_operator.plan import names
from omni_operator.settings import FrontendSettings, ImageSettings

CLUSTER_ROLE = "omni-frontend"
"""Made by the chart; the operator may bind this name and no other."""

SERVICE_PORT = 80
GRACE_MARGIN_S = 30

ROUTERS_NOTICE_S = 5
"""Between the pod's end being announced and the listener's end, so that no router still sends a request."""

STAGE_TABLE_FOLDER = wire.STAGE_TABLE_PATH.rpartition("/")[0]


def frontend_manifests(model: ResolvedModel, settings: FrontendSettings, images: ImageSettings) -> list[Manifest]:
    return [
        _service_account(model.name),
        _role_binding(model.name, model.namespace),
        _service(model.name, model.frontend),
        _deployment(model, settings, images),
    ]


def _metadata(model: str) -> Manifest:
    return {
        "name": names.component_name(model, names.FRONTEND),
        "labels": labels.of_component(model, names.FRONTEND),
    }


def _service_account(model: str) -> Manifest:
    return {
        "apiVersion": SERVICE_ACCOUNT.api_version,
        "kind": SERVICE_ACCOUNT.name,
        "metadata": _metadata(model),
        "automountServiceAccountToken": False,
    }


def _role_binding(model: str, namespace: str) -> Manifest:
    account = names.component_name(model, names.FRONTEND)
    return {
        "apiVersion": ROLE_BINDING.api_version,
        "kind": ROLE_BINDING.name,
        "metadata": _metadata(model),
        "roleRef": {"apiGroup": ROLE_BINDING.group, "kind": "ClusterRole", "name": CLUSTER_ROLE},
        "subjects": [{"kind": SERVICE_ACCOUNT.name, "name": account, "namespace": namespace}],
    }


def _service(model: str, spec: FrontendSpec) -> Manifest:
    port: Manifest = {"name": "http", "port": SERVICE_PORT, "targetPort": "http", "appProtocol": "http"}
    if spec.service.node_port is not None:
        port["nodePort"] = spec.service.node_port
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": _metadata(model),
        "spec": {"type": spec.service.type, "selector": labels.selector(model, names.FRONTEND), "ports": [port]},
    }


def _deployment(model: ResolvedModel, settings: FrontendSettings, images: ImageSettings) -> Manifest:
    metadata = _metadata(model.name)
    grace_s = model.frontend.limits.request_timeout_seconds + ROUTERS_NOTICE_S + GRACE_MARGIN_S
    pod_spec = pod.pod_spec(_container(model, settings), _volumes(model, settings), grace_s, images)
    account = {"serviceAccountName": metadata["name"], "automountServiceAccountToken": True}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata,
        "spec": {
            "revisionHistoryLimit": 2,
            "selector": {"matchLabels": labels.selector(model.name, names.FRONTEND)},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
            "template": {"metadata": {"labels": metadata["labels"]}, "spec": {**pod_spec, **account}},
        },
    }


def _volumes(model: ResolvedModel, settings: FrontendSettings) -> list[pod.Volume]:
    keys = model.frontend.auth.api_keys_secret_ref
    return [
        pod.temporary(),
        pod.config_map("stage-table", names.stage_table_name(model.name), STAGE_TABLE_FOLDER),
        *pod.claims(settings.mounts),
        *([pod.secret("api-keys", keys.name, wire.API_KEYS_PATH)] if keys else []),
        *pod.certificate(model.tls, names.FRONTEND),
    ]


def _container(model: ResolvedModel, settings: FrontendSettings) -> Manifest:
    arguments = [
        *("--stage-table", wire.STAGE_TABLE_PATH),
        *("--host", "0.0.0.0"),
        *("--port", str(wire.FRONTEND_PORT)),
        *("--discovery", "kubernetes"),
        *(("--api-keys", wire.API_KEYS_PATH) if model.frontend.auth.api_keys_secret_ref else ()),
        *(("--tls", wire.TLS_PATH) if model.tls else ()),
        *media_arguments(model.frontend.media),
        *_tracing(model.monitoring.tracing),
        *(("--log-stats",) if model.frontend.log_stats else ()),
        *(("--admin-port", str(model.frontend.admin_port)) if model.frontend.admin_port else ()),
        *("--log-json", "--log-level", model.frontend_log_level),
    ]
    return {
        "image": settings.image,
        "command": pod.command(settings.command, "omni_runtime.frontend", arguments),
        "env": pod.environment(settings.env),
        "ports": [{"name": "http", "containerPort": wire.FRONTEND_PORT, "protocol": "TCP"}],
        "resources": {"requests": settings.requests, "limits": settings.limits},
        "lifecycle": {"preStop": {"sleep": {"seconds": ROUTERS_NOTICE_S}}},
        "startupProbe": _probe("/livez", period_s=1, failures=120),
        "livenessProbe": _probe("/livez", period_s=10, failures=3),
        "readinessProbe": _probe("/readyz", period_s=2, failures=2),
    }


def _tracing(asked: TracingSpec | None) -> tuple[str, ...]:
    """Requests begin here, so that this is where their share is drawn; stages follow."""
    return () if asked is None else ("--otlp-endpoint", asked.otlp_endpoint, "--trace-ratio", str(asked.ratio))


def _probe(path: str, period_s: int, failures: int) -> Manifest:
    http = {"httpGet": {"path": path, "port": "http"}}
    return {**http, "periodSeconds": period_s, "failureThreshold": failures, "timeoutSeconds": 5}
