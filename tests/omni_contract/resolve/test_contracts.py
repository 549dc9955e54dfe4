import pytest
from hypothesis import given
from hypothesis import strategies as st

from omni_contract.api.v1alpha1 import (
    ConnectorSpec,
    DiffusionEngine,
    EdgeSpec,
    EngineBlock,
    FakeEngine,
    ModelSource,
    StreamingSpec,
)
from omni_contract.resolve.contracts import Ends, canonical_hash, contract_hash

ENCODER, DENOISER = DiffusionEngine(phases=("encode",)), DiffusionEngine(phases=("denoise",))
MODEL = ModelSource(source="pvc://models/qwen-image")
EDGE = EdgeSpec(from_="text-encoder", to="denoiser")

SCALARS = st.none() | st.booleans() | st.integers() | st.text(max_size=5)
MAPS = st.dictionaries(st.text(max_size=5), SCALARS | st.dictionaries(st.text(max_size=3), SCALARS, max_size=3))


def _hash(
    family: str = "qwen-image",
    model: ModelSource = MODEL,
    edge: EdgeSpec = EDGE,
    ends: tuple[EngineBlock, EngineBlock] = (ENCODER, DENOISER),
) -> str:
    return contract_hash(family, model, edge, Ends(*ends))


@given(MAPS)
def test_the_order_of_keys_does_not_change_a_hash(value: dict) -> None:
    assert canonical_hash(dict(reversed(value.items())), 16) == canonical_hash(value, 16)


def test_the_contract_of_an_edge_is_frozen() -> None:
    """A change here makes old and new workers refuse each other at the next upgrade: it must be meant."""
    assert _hash() == "81b49d9454f7e485"


@pytest.mark.parametrize(
    "changed",
    [
        {"family": "other"},
        {"model": MODEL.model_copy(update={"source": "pvc://models/other"})},
        {"model": MODEL.model_copy(update={"revision": "abc"})},
        {"model": MODEL.model_copy(update={"load_format": "dummy"})},
        {"edge": EDGE.model_copy(update={"transform": "tokens"})},
        {"ends": (DiffusionEngine(phases=("encode",), dtype="float32"), DENOISER)},
        {"ends": (ENCODER, DiffusionEngine())},
        {"ends": (ENCODER, FakeEngine())},
    ],
)
def test_what_both_ends_must_agree_on_changes_the_contract(changed: dict) -> None:
    assert _hash(**changed) != _hash()


@pytest.mark.parametrize(
    "changed",
    [
        {"model": MODEL.model_copy(update={"served_names": ("other",)})},
        {"edge": EDGE.model_copy(update={"connector": "grpc"})},
        {"edge": EDGE.model_copy(update={"retain": "terminal"})},
        {"edge": EDGE.model_copy(update={"streaming": StreamingSpec(chunk_frames=25)})},
    ],
)
def test_what_the_ends_need_not_agree_on_does_not(changed: dict) -> None:
    assert _hash(**changed) == _hash()


def test_a_connector_with_settings_must_be_the_same_at_both_ends() -> None:
    def over(name: str, **shm: str) -> str:
        connector = ConnectorSpec.model_validate({"name": name, "shm": shm})
        return contract_hash("qwen-image", MODEL, EDGE, Ends(ENCODER, DENOISER, connector))

    assert over("fast") == over("fast", size="256Mi")
    assert len({_hash(), over("fast"), over("other"), over("fast", size="1Gi")}) == 4


def test_how_slow_a_fake_is_does_not_matter_to_its_peer() -> None:
    slow = FakeEngine(behavior="delay", delay_seconds=1)

    assert _hash(ends=(slow, DENOISER)) == _hash(ends=(FakeEngine(), DENOISER))
