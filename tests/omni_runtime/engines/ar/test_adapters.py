"""LoRA adapters by name."""

from pathlib import Path

import pytest

from omni_contract.api.v1alpha1.engines import LoraSpec
from omni_contract.wire.errors import ErrorCode, OmniError
from omni_runtime.engines.ar.adapters import Adapter, Adapters

ADAPTERS = Adapters(Path("/models/big"), (LoraSpec(name="poet", path="loras/poet"), LoraSpec(name="judge", path="j")))


def test_an_adapter_is_a_folder_in_the_models_own():
    assert ADAPTERS.asked_for("judge") == Adapter("judge", 2, Path("/models/big/j"))
    assert ADAPTERS.asked_for(None) is None


@pytest.mark.case("runtime:A29")
def test_an_unknown_adapter_is_not_found():
    with pytest.raises(OmniError, match='the adapters are: "poet", "judge"') as caught:
        ADAPTERS.asked_for("painter")
    assert (caught.value.code, caught.value.param) == (ErrorCode.MODEL_NOT_FOUND, "lora")


@pytest.mark.case("runtime:Q5")
@pytest.mark.parametrize("path", ["../other", "/etc", "a/../../b", "a//b", "", "./a"])
def test_no_path_leads_out_of_the_models_folder(path):
    with pytest.raises(ValueError, match="path"):
        LoraSpec(name="poet", path=path)
