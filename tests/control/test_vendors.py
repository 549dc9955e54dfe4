"""A model with one stage on each vendor's devices, placed by the real scheduler."""

import pytest

from tests.support.operator_models import a_spec, a_stage
from tests.support.operator_world import GROUP, World
from tests.support.operators import POOLS, Operator
from tests.support.waiting import eventually

pytestmark = pytest.mark.control

STAGES = {
    "on-nvidia": ("h200", "nvidia.com/gpu"),
    "on-rocm": ("mi300", "amd.com/gpu"),
    "on-ascend": ("ascend910", "huawei.com/Ascend910"),
    "on-cpu": ("cpu", None),
}


def test_each_stage_lands_on_its_vendor_s_nodes_and_the_model_becomes_ready(a_world: World, operator: Operator) -> None:
    stages = [a_stage(name, pool, resources={"memory": "1Gi"}) for name, (pool, _) in STAGES.items()]
    a_world.create("mixed", a_spec(*stages))
    a_world.wait_ready("mixed")
    pods = {pod["metadata"]["labels"][f"{GROUP}/component"]: pod for pod in a_world.pods("mixed").values()}
    for stage, (pool, resource) in STAGES.items():
        spec = pods[stage]["spec"]
        vendor = stage.removeprefix("on-")
        assert spec["nodeName"].startswith(f"fake-{vendor}-")
        assert spec["nodeSelector"] == POOLS[pool]["nodeSelector"]
        assert spec["containers"][0]["image"] == f"runtime-{vendor}:1"
        assert spec["containers"][0]["resources"]["limits"].get(resource or "none") == ("1" if resource else None)
        for toleration in POOLS[pool].get("tolerations", []):
            assert toleration in spec["tolerations"]


def test_a_stage_that_finds_no_devices_says_so_in_the_scheduler_s_words(a_world: World, operator: Operator) -> None:
    stage = a_stage("greedy", "h200", accelerator={"pool": "h200", "count": 64})
    a_world.create("greedy", a_spec(stage))

    def message() -> str:
        stages = a_world.model("greedy").get("status", {}).get("stages", [{}])
        said: str = stages[0].get("message", "")
        return said if "Insufficient nvidia.com/gpu" in said else ""

    assert "Pod greedy-greedy-" in eventually("the scheduler is quoted", message)
    status = a_world.model("greedy")["status"]
    assert "free devices" in status["stages"][0]["hint"]
    assert a_world.condition("greedy", "Ready") == "False"
