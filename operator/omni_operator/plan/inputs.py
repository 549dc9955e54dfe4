"""Which units of a model must be rendered anew: only those about which the user said something new.

What this operator's code or the administrator's pools would make of the same words does not count, so that an upgrade
restarts nothing. The one exception is an edge: when one end is rendered anew and today's contract differs from the
recorded one, the other end follows, for old never talks to new across a changed contract.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from pydantic import JsonValue

from omni_contract.api.v1alpha1 import LogLevel, MonitoringSpec, OmniModelSpec, StageSpec
from omni_contract.presets import PRESETS
from omni_contract.resolve import ResolvedModel, device_of_master, managed_stores
from omni_contract.resolve.graph import replaces_preset
from omni_operator.plan import names
from omni_operator.plan.record import Record

RESTARTS_NO_STAGE = {"replicas", "autoscaling", "sampling"}
"""Scaling is applied to the workload, sampling defaults are in the stage table."""

SAID_FOR_ALL = {"log_level"}
"""What a stage may leave to the model: it counts as what holds in the end."""

RESTARTS_THE_FRONTEND = {"request_timeout_seconds"}
"""The one limit that its pods are made with, as their grace period; the others are in the stage table."""


@dataclass(frozen=True)
class Inputs:
    """What the user says, by unit, and what today's code makes of the edges."""

    units: Mapping[str, str]
    contracts: Mapping[str, str]
    refresh: str | None
    groups: Mapping[str, str] = field(default_factory=dict)
    """The unit of each stage that shares its pods; every other stage is a unit of its own."""

    def stale_units(self, record: Record | None) -> frozenset[str]:
        if record is None or (self.refresh is not None and self.refresh != record.refresh):
            return frozenset(self.units)
        stale = {name for name, inputs in self.units.items() if not _is_known(record, name, inputs)}
        while followers := self._followers(stale, record):
            stale |= followers
        return frozenset(stale)

    def _followers(self, stale: set[str], record: Record) -> set[str]:
        """Units at the other end of an edge whose contract changes because this end moves."""
        moved = set[str]()
        for edge, contract in self.contracts.items():
            ends = {self.groups.get(stage, stage) for stage in edge.split("->")}
            if ends & stale and record.contracts.get(edge) != contract:
                moved |= ends
        return moved - stale


def inputs_of(spec: OmniModelSpec, model: ResolvedModel, refresh: str | None) -> Inputs:
    groups = {stage: names.group_component(group) for group in model.groups for stage in group.stages}
    said = {stage.name: _of_stage(spec, model, stage.name) for stage in model.stages}
    units = {name: names.digest(names.canonical(words)) for name, words in said.items() if name not in groups}
    for group in model.groups:
        words = [said[stage] for stage in group.stages]
        units[names.group_component(group)] = names.digest(names.canonical(words))
    units[names.FRONTEND] = names.digest(names.canonical(_of_frontend(spec)))
    for connector in managed_stores(model):
        units[names.master_component(connector)] = names.digest(names.canonical(_of_master(model, connector)))
    return Inputs(units, {edge.name: edge.contract_hash for edge in model.edges}, refresh, groups)


def with_recorded_contracts(model: ResolvedModel, record: Record | None, stale: frozenset[str]) -> ResolvedModel:
    """The model with the contract that its running stages hold on every edge of which neither end moves."""
    if record is None:
        return model
    edges = tuple(
        edge
        if {names.component_of(model, edge.source), names.component_of(model, edge.target)} & stale
        else replace(edge, contract_hash=record.contracts.get(edge.name, edge.contract_hash))
        for edge in model.edges
    )
    return replace(model, edges=edges)


def _is_known(record: Record, name: str, inputs: str) -> bool:
    return name in record.units and record.units[name].inputs == inputs


def _of_stage(spec: OmniModelSpec, model: ResolvedModel, name: str) -> JsonValue:
    own = next((stage for stage in spec.stages if stage.name == name), StageSpec(name=name))
    preset, tracing = PRESETS.get(spec.family or ""), spec.monitoring.tracing
    neighbours = [edge.name for edge in model.edges if name in (edge.source, edge.target)]
    return {
        "family": spec.family,
        "replacesPreset": preset is not None and replaces_preset(spec, preset),
        "model": spec.model.model_dump(mode="json", exclude_defaults=True, exclude={"served_names"}),
        "stage": own.model_dump(mode="json", exclude_defaults=True, exclude=RESTARTS_NO_STAGE | SAID_FOR_ALL),
        "edges": [
            edge.model_dump(mode="json", exclude_defaults=True) for edge in spec.edges if name in (edge.from_, edge.to)
        ],
        "neighbours": [*sorted(neighbours)],
        **_connectors(spec, model, name),
        **_certificate(spec, name),
        **_log_level(own.log_level or spec.monitoring.log_level),
        **({} if tracing is None else {"collector": tracing.otlp_endpoint}),
    }


def _of_frontend(spec: OmniModelSpec) -> JsonValue:
    frontend, tracing = spec.frontend, spec.monitoring.tracing
    said_elsewhere = {"replicas", "autoscaling", "limits", "log_level"}
    return {
        **frontend.model_dump(mode="json", exclude_defaults=True, exclude=said_elsewhere),
        **frontend.limits.model_dump(mode="json", exclude_defaults=True, include=RESTARTS_THE_FRONTEND),
        **_certificate(spec, names.FRONTEND),
        **_log_level(frontend.log_level or spec.monitoring.log_level),
        **({} if tracing is None else {"tracing": tracing.model_dump(mode="json", exclude_defaults=True)}),
    }


def _connectors(spec: OmniModelSpec, model: ResolvedModel, name: str) -> dict[str, JsonValue]:
    """Settings that the user gives to what the stage's edges travel by; nothing where there are none."""
    used = {edge.connector for edge in model.edges if name in (edge.source, edge.target)}
    own = [connector for connector in spec.connectors if connector.name in used]
    return {"connectors": [one.model_dump(mode="json", exclude_defaults=True) for one in own]} if own else {}


def _of_master(model: ResolvedModel, connector: str) -> JsonValue:
    """It runs on the image of a stage, so that a stage that is moved to another pool may move it, too."""
    return {"connector": connector, "pool": device_of_master(model, connector).pool}


def _certificate(spec: OmniModelSpec, component: str) -> dict[str, JsonValue]:
    """Nothing where there is none: an operator that is new must not restart models that ask for none."""
    tls = spec.network.tls
    return {} if tls is None else {"certificate": tls.secret_of(component)}


def _log_level(level: LogLevel) -> dict[str, JsonValue]:
    """What holds, wherever it is said: a component with a level of its own does not restart for the model's."""
    return {} if level == MonitoringSpec().log_level else {"logLevel": level}
