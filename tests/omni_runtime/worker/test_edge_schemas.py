"""Two images of different versions must not hand each other what the other reads as something else."""

import pytest

from omni_contract.api.v1alpha1 import DiffusionEngine, FakeEngine
from omni_contract.wire.chunk import Chunk
from omni_contract.wire.errors import ErrorCode, OmniError
from omni_contract.wire.payload import Array, Payload
from omni_contract.wire.stage_file import StageFile
from omni_runtime.worker.edge_schemas import EdgeSchemas
from tests.omni_runtime.worker.stage_files import edge, stage_file

LATENTS: Payload = {"latents": Array("float32", (1, 4, 1, 2, 2), memoryview(bytes(64)))}


def denoiser(engine: DiffusionEngine | FakeEngine = DiffusionEngine(phases=("denoise",))) -> StageFile:  # noqa: B008
    file = stage_file("denoiser", family="qwen-image", outputs=(edge("denoiser", "decoder", at="denoiser"),))
    return file.model_copy(update={"engine": engine, "inputs": (edge("encoder", "denoiser", at="denoiser"),)})


def test_what_a_stage_makes_is_checked_before_it_leaves():
    schemas = EdgeSchemas(denoiser())
    schemas.check_made("denoiser->decoder", LATENTS)
    with pytest.raises(OmniError) as refused:
        schemas.check_made("denoiser->decoder", {"image": LATENTS["latents"]})
    assert refused.value.code is ErrorCode.STAGE_FAILED
    assert refused.value.message == (
        'the payload of edge "denoiser->decoder" has "image", which is none of latents; '
        "the two stages may run images of different versions"
    )


def test_what_a_stage_is_handed_is_checked_before_its_engine_sees_it():
    with pytest.raises(OmniError, match='the payload of edge "encoder->denoiser" has "latents"'):
        EdgeSchemas(denoiser()).check_taken("encoder->denoiser", LATENTS)


@pytest.mark.parametrize("edge_name", ["", "denoiser->decoder"])
def test_fake_engines_and_final_outputs_are_free(edge_name: str):
    EdgeSchemas(denoiser(FakeEngine())).check_made(edge_name, {"trail": ["denoiser"]})
    EdgeSchemas(denoiser()).check_made("", {"trail": ["denoiser"]})


def test_items_that_an_edge_has_gathered_are_checked_one_by_one():
    schemas = EdgeSchemas(denoiser())
    schemas.check_made("denoiser->decoder", Chunk((LATENTS, LATENTS), is_last=True).payload())
    with pytest.raises(OmniError, match='has "image"'):
        bad = Chunk((LATENTS, {"image": LATENTS["latents"]}), is_last=True)
        schemas.check_made("denoiser->decoder", bad.payload())
