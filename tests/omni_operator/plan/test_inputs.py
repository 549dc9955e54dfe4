"""Which units are rendered anew after an edit, and which stay as they are."""

import pytest

from omni_operator.objects import Manifest
from omni_operator.plan.inputs import Inputs, with_recorded_contracts
from omni_operator.plan.record import Record
from tests.support.operator_models import a_model, a_record, a_spec, a_stage, inputs, resolved, some_settings

STAGES = ("encoder", "denoiser", "decoder")


def edited(field: str, value: object, stage: str = "denoiser") -> Manifest:
    """The toy model with one field of one stage changed."""
    stages = [a_stage(name, **({field: value} if name == stage else {})) for name in STAGES]
    return a_model(a_spec(*stages))


@pytest.fixture
def record() -> Record:
    return a_record(a_model())


def test_a_new_model_renders_everything() -> None:
    assert inputs(a_model()).stale_units(None) == {*STAGES, "frontend"}


def test_nothing_is_stale_if_nothing_was_edited(record: Record) -> None:
    assert inputs(a_model()).stale_units(record) == frozenset()


@pytest.mark.case("operator:C16")
@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("maxBatchSize", 4),
        ("maxInFlight", 3),
        ("startupTimeoutSeconds", 30),
        ("resources", {"memory": "1Gi"}),
        ("shm", {"size": "1Gi"}),
        ("drain", {"timeoutSeconds": 5}),
        ("template", {"metadata": {"annotations": {"a": "b"}}}),
        ("fake", {"behavior": "delay"}),
    ],
)
def test_editing_a_stage_makes_that_stage_stale_and_no_other(record: Record, field: str, value: object) -> None:
    assert inputs(edited(field, value)).stale_units(record) == {"denoiser"}


@pytest.mark.case("operator:B11")
@pytest.mark.case("operator:B12")
@pytest.mark.parametrize(("field", "value"), [("replicas", 5), ("sampling", {"steps": 4})])
def test_scaling_and_sampling_make_nothing_stale(record: Record, field: str, value: object) -> None:
    assert inputs(edited(field, value)).stale_units(record) == frozenset()


@pytest.mark.parametrize(
    "frontend",
    [{"replicas": 3}, {"limits": {"maxSteps": 100, "maxQueueLength": 7, "queueTimeoutSeconds": 3}}],
)
def test_limits_and_replicas_of_the_frontend_make_nothing_stale(record: Record, frontend: dict[str, object]) -> None:
    assert inputs(a_model(a_spec(frontend=frontend))).stale_units(record) == frozenset()


def test_mutual_tls_makes_everything_stale_and_a_stage_s_own_certificate_only_that_stage() -> None:
    def with_tls(**fields: object) -> Manifest:
        return a_model(a_spec(network={"tls": {"secretName": "toy-tls", **fields}}))

    assert inputs(with_tls()).stale_units(a_record(a_model())) == {*STAGES, "frontend"}
    own = with_tls(stages=[{"name": "denoiser", "secretName": "denoiser-tls"}])
    assert inputs(own).stale_units(a_record(with_tls())) == {"denoiser"}


@pytest.mark.case("operator:D13")
def test_a_model_without_a_certificate_reads_as_it_did_before_there_were_any(record: Record) -> None:
    assert inputs(a_model(a_spec(network={}))).stale_units(record) == frozenset()


@pytest.mark.parametrize("frontend", [{"service": {"type": "NodePort"}}, {"limits": {"requestTimeoutSeconds": 77}}])
def test_other_fields_of_the_frontend_make_only_it_stale(record: Record, frontend: dict[str, object]) -> None:
    assert inputs(a_model(a_spec(frontend=frontend))).stale_units(record) == {"frontend"}


def test_a_new_checkpoint_makes_every_stage_stale_but_not_the_frontend(record: Record) -> None:
    spec = {**a_spec(), "model": {"source": "pvc://models/other"}}
    assert inputs(a_model(spec)).stale_units(record) == set(STAGES)


def test_an_edited_edge_makes_its_two_ends_stale(record: Record) -> None:
    spec = a_spec()
    spec["edges"][0]["connector"] = "grpc"
    assert inputs(a_model(spec)).stale_units(record) == {"encoder", "denoiser"}


@pytest.mark.case("operator:D11")
def test_a_refresh_that_is_taken_away_again_makes_nothing_stale() -> None:
    record = a_record(a_model()).model_copy(update={"refresh": "monday"})
    assert inputs(a_model(), refresh="monday").stale_units(record) == frozenset()
    assert inputs(a_model(), refresh=None).stale_units(record) == frozenset()
    assert inputs(a_model(), refresh="tuesday").stale_units(record) == {*STAGES, "frontend"}


def test_writing_a_default_down_makes_nothing_stale(record: Record) -> None:
    assert inputs(edited("maxBatchSize", 1)).stale_units(record) == frozenset()


@pytest.mark.case("operator:C28")
def test_the_other_end_of_a_changed_contract_moves_along(record: Record) -> None:
    now = inputs(edited("maxBatchSize", 4))
    changed = Inputs(now.units, {**now.contracts, "denoiser->decoder": "another"}, now.refresh)
    assert changed.stale_units(record) == {"denoiser", "decoder"}


@pytest.mark.case("operator:D13")
def test_a_contract_that_only_this_operator_computes_otherwise_moves_nothing(record: Record) -> None:
    now = inputs(a_model())
    upgraded = Inputs(now.units, dict.fromkeys(now.contracts, "another"), now.refresh)
    assert upgraded.stale_units(record) == frozenset()


def test_edges_between_stages_that_stay_keep_their_recorded_contract(record: Record) -> None:
    recorded = record.model_copy(update={"contracts": dict.fromkeys(record.contracts, "as recorded")})
    model = with_recorded_contracts(resolved(a_model()), recorded, frozenset({"encoder"}))
    contracts = {edge.name: edge.contract_hash for edge in model.edges}
    assert contracts["denoiser->decoder"] == "as recorded"
    assert contracts["encoder->denoiser"] == record.contracts["encoder->denoiser"]


@pytest.mark.case("operator:D13")
@pytest.mark.case("operator:D12")
def test_an_operator_with_other_images_renders_nothing_anew(record: Record) -> None:
    upgraded = some_settings(
        accelerators={
            "profiles": {"cpu": {"vendor": "cpu", "image": "runtime-cpu:2"}},
            "pools": {"cpu": {"profile": "cpu"}},
            "allowFakeEngine": True,
        },
        frontend={"image": "frontend:2"},
    )
    assert a_record(a_model(), before=record, settings=upgraded) == record


def stale(before: Manifest, after: Manifest) -> frozenset[str]:
    return inputs(after).stale_units(a_record(before))


def with_levels(model: str = "info", frontend: str | None = None, denoiser: str | None = None) -> Manifest:
    stages = [a_stage(name, **({"logLevel": denoiser} if denoiser and name == "denoiser" else {})) for name in STAGES]
    own = {} if frontend is None else {"frontend": {"logLevel": frontend}}
    return a_model(a_spec(*stages, monitoring={"logLevel": model}, **own))


def test_a_level_of_its_own_restarts_one_component_and_the_model_s_those_that_have_none() -> None:
    assert stale(a_model(), with_levels(denoiser="debug")) == {"denoiser"}
    assert stale(a_model(), with_levels(frontend="debug")) == {"frontend"}
    own = {"frontend": "warning", "denoiser": "debug"}
    assert stale(with_levels(**own), with_levels("error", **own)) == {"encoder", "decoder"}


def test_saying_a_level_at_another_place_restarts_nothing() -> None:
    assert stale(a_model(), with_levels("info", "info", "info")) == frozenset()
    assert stale(with_levels("debug"), with_levels("debug", frontend="debug", denoiser="debug")) == frozenset()


def test_a_collector_makes_everything_stale_and_the_share_of_requests_only_the_frontend() -> None:
    def traced(**fields: object) -> Manifest:
        return a_model(a_spec(monitoring={"tracing": {"otlpEndpoint": "http://otel:4317", **fields}}))

    assert stale(a_model(), traced()) == {*STAGES, "frontend"}
    assert stale(traced(), traced(ratio=0.1)) == {"frontend"}


@pytest.mark.parametrize(("field", "value"), [("profiles", {}), ("adminPort", 50060)])
def test_a_folder_for_profiles_or_an_admin_port_makes_its_stage_stale(
    record: Record, field: str, value: object
) -> None:
    assert inputs(edited(field, value)).stale_units(record) == {"denoiser"}


@pytest.mark.parametrize("asked", [{"logStats": True}, {"adminPort": 8001}, {"media": {"maxBytes": 4096}}])
def test_tables_of_statistics_an_admin_port_or_other_media_make_the_frontend_stale(asked: dict[str, object]) -> None:
    assert stale(a_model(), a_model(a_spec(frontend=asked))) == {"frontend"}


def with_connector(**settings: object) -> Manifest:
    """The first edge travels by a store with these settings, the second as it likes."""
    spec = a_spec(connectors=[{"name": "store", "mooncakeStore": {"managed": True, **settings}}])
    spec["edges"][0]["connector"] = "store"
    return a_model(spec)


def test_settings_of_a_connector_make_both_ends_of_its_edges_stale_and_not_its_master() -> None:
    assert stale(with_connector(), with_connector(segmentSize="1Gi")) == {"encoder", "denoiser"}


def test_a_new_store_has_a_master_to_be_rendered() -> None:
    assert stale(a_model(), with_connector()) == {"encoder", "denoiser", "connector-store-master"}


def together(**denoiser: object) -> Manifest:
    stages = [a_stage(name, **(denoiser if name == "denoiser" else {})) for name in STAGES]
    return a_model(a_spec(*stages, placement={"colocate": [["denoiser", "decoder"]]}))


GROUP = "colocation-with-denoiser"


def test_stages_that_share_a_pod_are_one_unit() -> None:
    assert inputs(together()).stale_units(None) == {"encoder", GROUP, "frontend"}
    assert stale(together(), together(maxBatchSize=4)) == {GROUP}


def test_moving_stages_into_one_pod_touches_no_other() -> None:
    assert stale(a_model(), together()) == {GROUP}
    assert stale(together(), a_model()) == {"denoiser", "decoder"}


@pytest.mark.case("operator:C28")
def test_a_changed_contract_moves_the_pod_that_holds_its_other_end() -> None:
    now = inputs(together(maxBatchSize=4))
    changed = Inputs(now.units, {**now.contracts, "encoder->denoiser": "another"}, now.refresh, now.groups)
    assert changed.stale_units(a_record(together())) == {"encoder", GROUP}
