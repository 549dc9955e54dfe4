"""The CRD on a real API server: it is accepted, refuses what must be refused, and explains itself."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings

from omni_contract.api.crd import crd
from omni_contract.api.parse import parse
from omni_contract.api.v1alpha1.status import Condition, OmniModelStatus, StageStatus
from omni_contract.resolve import resolve
from tests.cluster.control import ControlPlane
from tests.cluster.errors import CommandFailed
from tests.cluster.rest import CallRefused
from tests.omni_contract.api.bad_files import AGAINST_RULES, AGAINST_THE_SCHEMA, BAD_FILES, BadFile
from tests.support.model_files import catalog, fake_file, model_file
from tests.support.spec_strategies import damaged_specs, specs

pytestmark = pytest.mark.control

MODELS = "/apis/serving.omnimodel.dev/v1alpha1/namespaces/default/omnimodels"
NAME = "omnimodels.serving.omnimodel.dev"


@pytest.fixture(scope="module")
def server(api_server: ControlPlane) -> Iterator[ControlPlane]:
    api_server.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=yaml.safe_dump(crd()))
    api_server.kubectl("wait", "--for=condition=Established", "--timeout=30s", f"crd/{NAME}")
    yield api_server
    api_server.kubectl("delete", "omnimodels", "--all", "--wait=false")


def test_the_server_finds_nothing_wrong_with_the_schema(server: ControlPlane) -> None:
    conditions = json.loads(server.kubectl("get", "crd", NAME, "-o", "json"))["status"]["conditions"]

    states = {condition["type"]: condition["status"] for condition in conditions}

    assert states["Established"] == "True"
    assert states.get("NonStructuralSchema", "False") == "False"


@pytest.mark.case("operator:H07", "operator:O02")
@pytest.mark.parametrize("bad", AGAINST_RULES, ids=[bad.title for bad in AGAINST_RULES])
def test_the_server_says_of_a_broken_rule_what_we_say(server: ControlPlane, bad: BadFile) -> None:
    refusal = _refusal(server, bad)

    assert bad.message in refusal


@pytest.mark.case("operator:A29")
@pytest.mark.parametrize("bad", AGAINST_THE_SCHEMA, ids=[bad.title for bad in AGAINST_THE_SCHEMA])
def test_the_server_refuses_what_the_schema_forbids(server: ControlPlane, bad: BadFile) -> None:
    refusal = _refusal(server, bad)

    assert bad.server is not None
    assert bad.server in refusal


def test_at_least_twenty_bad_files_are_tried() -> None:
    assert len(BAD_FILES) >= 20


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(spec=specs() | damaged_specs())
def test_we_and_the_server_accept_the_same_files(server: ControlPlane, spec: dict[str, Any]) -> None:
    document = model_file() | {"spec": spec}

    model, problems = parse(document)
    refusal = _refusal_by_rest(server, document)

    assert (model is None) == (refusal is not None), (problems, refusal)


def test_a_refused_file_leaves_nothing_behind(server: ControlPlane) -> None:
    _refusal(server, AGAINST_RULES[4])

    assert (
        server.kubectl("get", "omnimodels", "--ignore-not-found", AGAINST_RULES[4].document["metadata"]["name"]) == ""
    )


def test_what_the_server_stores_resolves_to_the_same_model_as_the_file(server: ControlPlane) -> None:
    changes = {
        "metadata.name": "stored",
        "spec.frontend": None,
        "spec.stages[1]": {"name": "denoiser", "replicas": 3, "sampling": {"steps": 20}, "resources": {"cpu": 2}},
        "spec.stages[1].template": {"spec": {"priorityClassName": "high", "nodeName": None}},
        "spec.stages[1].accelerator": {"pool": "h100"},
        "spec.stages[0].accelerator": {"pool": "cpu"},
        "spec.stages[2].accelerator": {"pool": "mi300"},
    }
    written = model_file(changes)

    stored = _stored(server, written)

    assert _resolved(stored) == _resolved(written)


def test_the_server_writes_frontend_defaults_but_none_that_a_preset_gives(server: ControlPlane) -> None:
    spec = _stored(server, model_file({"metadata.name": "defaulted"}))["spec"]

    assert spec["frontend"]["limits"]["queueTimeoutSeconds"] == 30
    assert spec["stages"][0] == {"name": "text-encoder"}


@pytest.mark.case("operator:Q11")
def test_the_server_keeps_every_field_of_the_status(server: ControlPlane) -> None:
    status = _full_status()
    server.kubectl("apply", "-f", "-", stdin=yaml.safe_dump(fake_file({"metadata.name": "reported"})))

    server.kubectl("patch", "omnimodel", "reported", "--subresource=status", "--type=merge", "-p", _patch(status))

    kept = json.loads(server.kubectl("get", "omnimodel", "reported", "-o", "json"))["status"]
    assert OmniModelStatus.model_validate(kept) == status


def test_kubectl_get_shows_phase_ready_stages_and_url(server: ControlPlane) -> None:
    server.kubectl("apply", "-f", "-", stdin=yaml.safe_dump(fake_file({"metadata.name": "listed"})))
    server.kubectl("patch", "om", "listed", "--subresource=status", "--type=merge", "-p", _patch(_full_status()))

    header, row = server.kubectl("get", "om", "listed").splitlines()

    assert header.split() == ["NAME", "PHASE", "READY", "STAGES", "URL", "AGE"]
    assert row.split()[:5] == ["listed", "Starting", "False", "1/2", "http://listed.default.svc:8000/v1"]


def test_kubectl_get_all_lists_models(server: ControlPlane) -> None:
    assert "all" in crd()["spec"]["names"]["categories"]
    assert "omnimodels" in server.kubectl("api-resources", "--categories=all", "-o", "name")


def test_kubectl_explains_a_stage_in_whole_sentences(server: ControlPlane) -> None:
    said = " ".join(server.kubectl("explain", "omnimodel.spec.stages").split())

    for sentence in (
        "The parts of the model, each in processes of its own, on its own accelerator.",
        'Short name, unique in the model; "frontend" is taken.',
        "Run a part of a diffusion model. One engine block at most; the family's preset may give it.",
        "Number of replicas of the stage. Default: 1.",
        "The devices of each replica.",
        "Longest time from a replica's start to its first readiness: loading, warm-up and self-test. Default: 600.",
    ):
        assert sentence in said


def test_kubectl_explains_every_field(server: ControlPlane) -> None:
    said = server.kubectl("explain", "omnimodel", "--recursive")

    assert "<no description>" not in said.split("FIELDS:")[0]
    assert "startupTimeoutSeconds" in said


def _refusal(server: ControlPlane, bad: BadFile) -> str:
    with pytest.raises(CommandFailed) as refused:
        server.kubectl("create", "-f", "-", stdin=json.dumps(bad.document))
    return str(refused.value)


def _refusal_by_rest(server: ControlPlane, document: dict[str, Any]) -> str | None:
    """The server's answer to a trial run, without kubectl's start-up time; None if it would take the file."""
    try:
        server.rest.call("POST", f"{MODELS}?dryRun=All&fieldValidation=Strict", document)
    except CallRefused as refused:
        assert refused.status in {400, 422}
        return str(refused)
    return None


def _stored(server: ControlPlane, document: dict[str, Any]) -> dict[str, Any]:
    server.kubectl("apply", "--server-side", "-f", "-", stdin=json.dumps(document))
    stored: dict[str, Any] = json.loads(server.kubectl("get", "om", document["metadata"]["name"], "-o", "json"))
    return stored


def _resolved(document: dict[str, Any]) -> object:
    model, problems = parse({key: document[key] for key in ("apiVersion", "kind", "metadata", "spec")})
    assert model is not None, problems
    return resolve("stored", "default", model.spec, catalog())


def _full_status() -> OmniModelStatus:
    now = "2026-11-30T12:00:00Z"
    return OmniModelStatus.model_validate(
        {
            "observedGeneration": 1,
            "phase": "Starting",
            "conditions": (
                Condition(
                    type="Ready",
                    status="False",
                    reason="Loading",
                    message="first is loading",
                    last_transition_time=now,
                    observed_generation=1,
                ),
            ),
            "stages": (
                StageStatus(
                    name="first",
                    kind="fake",
                    revision="abc",
                    desired=2,
                    updated=2,
                    ready=1,
                    message="loading 1/2",
                    hint="wait",
                ),
            ),
            "stagesReady": "1/2",
            "endpoints": {"url": "http://listed.default.svc:8000/v1", "nodePort": 30080},
            "revision": "listed-abc",
        }
    )


def _patch(status: OmniModelStatus) -> str:
    return json.dumps({"status": status.model_dump(mode="json", by_alias=True, exclude_none=True)})
