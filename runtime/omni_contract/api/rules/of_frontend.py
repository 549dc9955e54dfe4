"""Rules about the frontend."""

from omni_contract.api.rules.rule import FieldRule, Rule
from omni_contract.wire.names import FRONTEND_PORT

FRONTEND_RULES: tuple[Rule, ...] = (
    FieldRule(
        at=("spec", "frontend"),
        pointer="adminPort",
        cel=f"!has(self.adminPort) || self.adminPort != {FRONTEND_PORT}",
        holds=lambda frontend: frontend.admin_port != FRONTEND_PORT,
        message=f"adminPort {FRONTEND_PORT} is the port of the endpoint itself; choose another adminPort",
    ),
    FieldRule(
        at=("spec", "frontend", "service"),
        pointer="nodePort",
        cel="!has(self.nodePort) || self.type == 'NodePort'",
        holds=lambda service: service.node_port is None or service.type == "NodePort",
        message='nodePort {self.nodePort} needs a Service of type NodePort, but type is "{self.type}"; '
        "set type: NodePort or remove nodePort",
    ),
    FieldRule(
        at=("spec", "frontend", "limits"),
        pointer="queueTimeoutSeconds",
        cel="self.queueTimeoutSeconds <= self.requestTimeoutSeconds",
        holds=lambda limits: limits.queue_timeout_seconds <= limits.request_timeout_seconds,
        message="queueTimeoutSeconds ({self.queueTimeoutSeconds}) is above requestTimeoutSeconds "
        "({self.requestTimeoutSeconds}), so a waiting request would never see it; lower it",
    ),
)
