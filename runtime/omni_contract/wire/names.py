"""Names that several processes must spell alike: ports, paths, labels, metrics."""

GROUP = "serving.omnimodel.dev"
VERSION = "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"
KIND = "OmniModel"
PLURAL = "omnimodels"

FIELD_MANAGER = "omni-operator"

STAGE_PORT = 50051
HEALTH_PORT = 50052
"""In the clear, for the kubelet's probes, where STAGE_PORT speaks TLS."""
PIPE_PORT_DISTANCE = 2
PIPE_PORT = STAGE_PORT + PIPE_PORT_DISTANCE
"""Where a worker takes frontends' pipes: so far above the port at which it listens, unless it is told another one."""
GROUP_HEALTH_PORT = 50050
"""Of a pod of several stages: what it answers is true of all of them."""
GROUP_PORT_STEP = 10
"""Between the ports of one stage of such a pod and those of the next."""
FRONTEND_PORT = 8000
METRICS_PORT = 9090
MASTER_PORT, MASTER_ADMIN_PORT = 50051, 9003
"""Of the master of a managed store, in a pod of its own."""

STAGE_FILE_PATH = "/etc/omni/stage.json"
STAGE_TABLE_PATH = "/etc/omni/stage-table.json"
GROUP_FILE_PATH = "/etc/omni/group.json"
STAGE_TABLE_KEY = "stage-table.json"
API_KEYS_PATH = "/etc/omni/api-keys"
TLS_PATH = "/etc/omni/tls"
TLS_CERTIFICATE, TLS_KEY, TLS_AUTHORITY = "tls.crt", "tls.key", "ca.crt"
"""Files of a folder, keys of a Secret."""
VOLUMES_ROOT = "/var/lib/omni/volumes"
PROFILES_PATH = "/var/lib/omni/profiles"
ARENA_PATH = "/var/lib/omni/arena"

LABEL_MODEL = f"{GROUP}/model"
LABEL_COMPONENT = f"{GROUP}/component"
"""A stage's name, or "frontend"."""
LABEL_REVISION = f"{GROUP}/revision"
LABEL_MANAGED_BY = "app.kubernetes.io/managed-by"

HEALTH_STARTUP = "startup"
HEALTH_LIVE = "live"
HEALTH_READY = "ready"
"""Services of grpc.health.v1 that the kubelet's probes ask for; "" equals ready."""

REQUEST_ID_HEADER = "x-request-id"
REFUSAL_KEY = "omni-refusal"
"""Metadata of a refused control call: the stable code of the refusal, which is finer than the call's status."""

METRIC_PREFIX = "omni"

FRONTEND_REQUESTS = "omni_frontend_requests"
FRONTEND_REQUEST_SECONDS = "omni_frontend_request_seconds"
FRONTEND_SESSIONS = "omni_frontend_sessions"
FRONTEND_RETRIES = "omni_frontend_retries"
FRONTEND_WAITING = "omni_frontend_waiting"
"""Gauge by `stage`: how deep its queue is."""
FRONTEND_QUEUE_LIMIT = "omni_frontend_queue_limit"
FRONTEND_RUNNING = "omni_frontend_running"
FRONTEND_REPLICAS = "omni_frontend_replicas"
FRONTEND_SERVABLE = "omni_frontend_servable"
"""Gauge by `modality`: 0 while a stage that the output needs is away."""
FRONTEND_E2E_REQUESTS = "omni_frontend_e2e_requests"
"""Counter by `outcome`: "finished" or an error code."""
FRONTEND_E2E_SECONDS = "omni_frontend_e2e_seconds"
FRONTEND_E2E_TOKENS = "omni_frontend_e2e_tokens"
FRONTEND_STAGE_WALL_SECONDS = "omni_frontend_stage_wall_seconds"
"""Summary by `stage`; so are the next three, the last one a counter by `direction`, too: "in" or "out"."""
FRONTEND_STAGE_QUEUE_SECONDS = "omni_frontend_stage_queue_seconds"
FRONTEND_STAGE_COMPUTE_SECONDS = "omni_frontend_stage_compute_seconds"
FRONTEND_STAGE_TOKENS = "omni_frontend_stage_tokens"
FRONTEND_IMAGES = "omni_frontend_images"
FRONTEND_AUDIO_FRAMES = "omni_frontend_audio_frames"
FRONTEND_AUDIO_SECONDS = "omni_frontend_audio_seconds"
FRONTEND_FIRST_OUTPUT_SECONDS = "omni_frontend_first_output_seconds"
FRONTEND_EDGE_IN_FLIGHT_SECONDS = "omni_frontend_edge_in_flight_seconds"
"""Summary by `edge`."""
FRONTEND_STATS_REQUESTS = "omni_frontend_stats_requests"
"""Counter by `outcome`: "written" or "lost"."""

WORKER_INFO = "omni_worker_info"
"""1, with `model`, `stage`, `revision` and `replica`: the labels that the other series of the process do without."""
WORKER_LOAD_SECONDS = "omni_worker_load_seconds"
WORKER_WEIGHTS_BYTES = "omni_worker_weights_bytes"
WORKER_GENERATION_SECONDS = "omni_worker_generation_seconds"
WORKER_POSTPROCESS_SECONDS = "omni_worker_postprocess_seconds"
WORKER_BATCH_SIZE = "omni_worker_batch_size"
WORKER_TOKENS = "omni_worker_tokens"
"""Counter by `direction`: "in" or "out"."""
WORKER_EDGE_TX_SECONDS = "omni_worker_edge_tx_seconds"
WORKER_EDGE_RX_DECODE_SECONDS = "omni_worker_edge_rx_decode_seconds"
"""Summaries by `edge`."""
WORKER_STREAM_BYTES = "omni_worker_stream_bytes"
WORKER_STREAM_CHUNKS = "omni_worker_stream_chunks"
"""Counters by `edge` and `direction`."""

WORKER_REQUESTS = "omni_worker_requests"
"""Counter by `outcome`: "finished" or an error code."""
WORKER_RUNNING = "omni_worker_running"
WORKER_WAITING = "omni_worker_waiting"
WORKER_FRONTENDS = "omni_worker_frontends"
WORKER_PAYLOADS = "omni_worker_payloads"
WORKER_PAYLOAD_BYTES = "omni_worker_payload_bytes"
WORKER_ARENA_BYTES = "omni_worker_arena_bytes"
"""Gauge by `connector` and `what`: "size" or "used"."""
WORKER_ARENA_BLOCKS = "omni_worker_arena_blocks"
"""Gauge by `connector` and `what`: "used" or "lingering"."""
WORKER_CONNECTOR_EVENTS = "omni_worker_connector_events"
"""Counter by `connector` and `what`: "puts", "gets", "retries", "detours" or "errors"."""
WORKER_CONNECTOR_BYTES = "omni_worker_connector_bytes"
"""Counter by `connector` and `what`: "put" or "got"."""
WORKER_CONNECTOR_HEALTHY = "omni_worker_connector_healthy"
"""Gauge by `connector`: 0 while it has trouble."""
WORKER_REQUEST_SECONDS = "omni_worker_request_seconds"
WORKER_STEP_SECONDS = "omni_worker_step_seconds"
WORKER_CANCEL_SECONDS = "omni_worker_cancel_seconds"
"""From the cancel's arrival until everything of the request is freed."""
WORKER_TRANSFER_BYTES = "omni_worker_transfer_bytes"
"""Counter by `edge` and `direction`: "in" or "out"."""
WORKER_HEARTBEAT_AGE_SECONDS = "omni_worker_heartbeat_age_seconds"
WORKER_READY = "omni_worker_ready"
WORKER_ASLEEP = "omni_worker_asleep"
WORKER_CERTIFICATE_EXPIRES = "omni_worker_certificate_expires_timestamp_seconds"
FRONTEND_CERTIFICATE_EXPIRES = "omni_frontend_certificate_expires_timestamp_seconds"
"""Unix time, so that "expires - time()" is what is left; only with TLS."""

FRONTEND = "frontend"
"""The component that is no stage."""

FINAL = ""
"""The edge name of a stage's final output and of the client's request."""


def certificate_name(component: str, model: str, namespace: str) -> str:
    """The DNS name that a component's certificate is made out to.

    Not the one of its Service, since workers are dialled by address; a wildcard of it covers one model and no other.
    """
    return f"{component}.{model}.{namespace}.omni"


def edge_name(source: str, target: str) -> str:
    return f"{source}->{target}"


def stage_table_config_map(model: str) -> str:
    """The ConfigMap of a model's namespace that holds its stage table under STAGE_TABLE_KEY; frontends watch it."""
    return f"{model}-stage-table"
