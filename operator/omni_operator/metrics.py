"""The operator's metrics. Names start like the runtime's; labels are few and bounded."""

from prometheus_client import Counter, Gauge, Histogram

from omni_contract.wire.names import METRIC_PREFIX

_PREFIX = f"{METRIC_PREFIX}_operator"

RECONCILES = Counter(f"{_PREFIX}_reconciles", "Passes over one model, by how they ended.", ["result"])
RECONCILE_SECONDS = Histogram(f"{_PREFIX}_reconcile_seconds", "How long a pass took.")
WRITES = Counter(f"{_PREFIX}_writes", "Objects written.", ["verb", "kind"])
API_CALLS = Counter(f"{_PREFIX}_api_calls", "Calls answered by the API server.", ["method", "status"])
QUEUE_LENGTH = Gauge(f"{_PREFIX}_queue_length", "Models that wait to be looked at.")
RELISTS = Counter(f"{_PREFIX}_lists", "Full lists of a kind: the first, and one for every broken stream.", ["kind"])
WATCH_SEEN = Gauge(f"{_PREFIX}_watch_seen_timestamp_seconds", "When a kind's stream last said something.", ["kind"])
IS_LEADER = Gauge(f"{_PREFIX}_is_leader", "1 while this process holds the lease.")
