from __future__ import annotations

import json
from pathlib import Path

from tests.cluster.kind.component_images import pause_image, program_of
from tests.cluster.kind.config import MODELS_IN_NODE, VOLUMES_LABEL, kind_config
from tests.cluster.kind.node_image import image_key
from tests.cluster.kind.volumes import claim_object, folders, namespace_object, volume
from tests.cluster.settings import Settings

SETTINGS = Settings(cache=Path("/cache"), venv=Path("/env"), models=Path("/data"), kind_api_port=1, kind_node_port=2)
CONTROL_PLANE, WORKER = kind_config(SETTINGS)["nodes"]


def test_the_worker_shows_the_environment_at_its_own_path_and_nothing_is_writable() -> None:
    assert WORKER["extraMounts"] == [
        {"hostPath": "/env", "containerPath": "/env", "readOnly": True},
        {"hostPath": "/data", "containerPath": MODELS_IN_NODE, "readOnly": True},
    ]


def test_ports_are_published_on_loopback_only() -> None:
    network = kind_config(SETTINGS)["networking"]

    assert network == {"apiServerAddress": "127.0.0.1", "apiServerPort": 1}
    assert WORKER["extraPortMappings"] == [{"containerPort": 30080, "hostPort": 2, "listenAddress": "127.0.0.1"}]


def test_the_api_server_writes_its_audit_log_where_the_host_reads_it() -> None:
    [patch] = CONTROL_PLANE["kubeadmConfigPatchesJSON6902"]
    added = {
        step["value"]["name"]: step["value"]["value"] for step in json.loads(patch["patch"]) if "/-" in step["path"]
    }
    mounts = {mount["containerPath"]: mount["hostPath"] for mount in CONTROL_PLANE["extraMounts"]}

    assert mounts[str(Path(added["audit-log-path"]).parent)] == "/cache/kind/omni/audit"
    assert mounts[added["audit-policy-file"]] == "/cache/kind/omni/audit-policy.json"


def test_a_volume_is_bound_to_one_claim_on_the_labelled_worker() -> None:
    spec = volume("omni", "models", "/data")["spec"]

    assert spec["claimRef"] == {"namespace": "omni", "name": "models"}
    assert spec["nodeAffinity"]["required"]["nodeSelectorTerms"][0]["matchExpressions"] == [
        {"key": VOLUMES_LABEL, "operator": "In", "values": ["here"]}
    ]
    assert WORKER["labels"] == {VOLUMES_LABEL: "here"}


def test_claim_and_volume_name_each_other_and_no_class_that_provisions() -> None:
    for claim, path in folders(Path("/env")).items():
        made, wanted = volume("omni", claim, path), claim_object("omni", claim)

        assert wanted["spec"]["volumeName"] == made["metadata"]["name"]
        assert wanted["spec"]["storageClassName"] == made["spec"]["storageClassName"] == "omni-static"


def test_two_namespaces_have_volumes_of_their_own() -> None:
    names = {volume(namespace, "venv", "/env")["metadata"]["name"] for namespace in ("one", "two")}

    assert len(names) == 2


def test_a_namespace_that_is_made_admits_restricted_pods_only() -> None:
    assert namespace_object("omni")["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"


def test_the_program_of_an_image_is_the_last_part_of_its_name() -> None:
    assert program_of("host.example/coredns/coredns:v1.14.6") == "coredns"
    assert program_of("host.example/etcd:3.7.0-0") == "etcd"


def test_the_pause_image_is_the_one_that_containerd_is_configured_with() -> None:
    assert pause_image('[x]\n  # fixed\n  sandbox_image = "host.example/pause:3.10"\n') == "host.example/pause:3.10"


def test_the_node_image_has_one_key_until_what_makes_it_changes() -> None:
    assert image_key() == image_key()
    assert len(image_key()) == 16
