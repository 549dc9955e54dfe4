"""How Qwen-Image runs in the diffusion engine: its blocks per phase and what passes between phases."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from omni_contract.api.v1alpha1 import DiffusionPhase
from omni_contract.wire.errors import ErrorCode, OmniError
from omni_runtime.diffusion.request import ImageLimits, ImageRequest
from omni_runtime.families.protocol import Components, PhaseBlocks, Tensors

if TYPE_CHECKING:
    from diffusers.modular_pipelines import ModularPipelineBlocks

BLOCKS: Mapping[DiffusionPhase, PhaseBlocks] = {
    "encode": PhaseBlocks(before=("text_encoder",)),
    "denoise": PhaseBlocks(
        before=(
            "denoise.input",
            "denoise.prepare_latents",
            "denoise.set_timesteps",
            "denoise.prepare_rope_inputs",
        ),
        loop="denoise.denoise",
        after=("denoise.after_denoise",),
    ),
    "decode": PhaseBlocks(before=("decode.decode",), after=("decode.postprocess",)),
}
MASKS = ("prompt_embeds_mask", "negative_prompt_embeds_mask")
REQUIRED: Mapping[DiffusionPhase, tuple[str, ...]] = {
    "encode": ("prompt_embeds", "prompt_embeds_mask"),
    "denoise": ("latents",),
}
OPTIONAL: Mapping[DiffusionPhase, tuple[str, ...]] = {
    "encode": ("negative_prompt_embeds", "negative_prompt_embeds_mask"),
    "denoise": (),
}


class QwenImageDiffusion:
    pipeline = "QwenImagePipeline"
    limits = ImageLimits(
        # The VAE shrinks by 8 and the transformer reads patches of 2 × 2.
        size_multiple=16,
        # The pipeline's default; the blocks' own is 1024.
        default_sequence_length=512,
        max_sequence_length=1024,
    )

    def workflow(self) -> "ModularPipelineBlocks":
        from diffusers import QwenImageAutoBlocks

        return QwenImageAutoBlocks().get_workflow("text2image")

    def blocks(self, phase: DiffusionPhase) -> PhaseBlocks:
        return BLOCKS[phase]

    def block_inputs(self, request: ImageRequest) -> Mapping[str, object]:
        return {
            "prompt": request.prompt,
            "negative_prompt": request.negative_prompt,
            "max_sequence_length": request.max_sequence_length,
            "width": request.width,
            "height": request.height,
            "num_inference_steps": request.steps,
            "output_type": "pil",
        }

    def is_guided(self, request: ImageRequest, values: Mapping[str, object]) -> bool:
        is_encoded = values.get("prompt_embeds") is not None
        negative = values.get("negative_prompt_embeds") if is_encoded else request.negative_prompt
        return request.guidance_scale > 1 and negative is not None

    def begin_loop(self, loop_state: Any) -> None:
        loop_state.additional_cond_kwargs = {}
        for name in MASKS:
            mask = getattr(loop_state, name, None)
            # As the pipeline does: attention kernels without a mask are faster, and not byte-equal to those with one.
            if mask is not None and mask.all():
                setattr(loop_state, name, None)

    def select(self, phase: DiffusionPhase, values: Mapping[str, Any]) -> Tensors:
        if phase == "decode":
            return {"image": _rgb(values["images"][0])}
        names = REQUIRED[phase] + OPTIONAL[phase]
        return {name: values[name] for name in names if values.get(name) is not None}

    def adapt(self, phase: DiffusionPhase, tensors: Tensors) -> Mapping[str, object]:
        for name in REQUIRED[phase]:
            if name not in tensors:
                raise OmniError(ErrorCode.STAGE_FAILED, f'the payload of phase "{phase}" lacks "{name}"')
        return {name: tensors[name] for name in REQUIRED[phase] + OPTIONAL[phase] if name in tensors}

    def probe(self, phase: DiffusionPhase, components: Components) -> Tensors:
        import torch

        if phase == "denoise":
            transformer = components.transformer
            shape = (1, 8, transformer.config.joint_attention_dim)
            embeddings = torch.ones(shape, dtype=transformer.dtype, device=transformer.device)
            return {
                "prompt_embeds": embeddings,
                "prompt_embeds_mask": torch.ones(shape[:2], dtype=torch.long, device=transformer.device),
            }
        if phase == "decode":
            vae = components.vae
            return {"latents": torch.zeros((1, vae.config.z_dim, 1, 8, 8), dtype=vae.dtype, device=vae.device)}
        return {}

    def input_tokens(self, request: ImageRequest, components: Components) -> int:
        return len(components.tokenizer(request.prompt).input_ids)

    def output_tokens(self, request: ImageRequest) -> int:
        return request.width * request.height // self.limits.size_multiple**2


def _rgb(picture: Any) -> Any:
    import numpy
    import torch

    return torch.from_numpy(numpy.array(picture.convert("RGB")))
