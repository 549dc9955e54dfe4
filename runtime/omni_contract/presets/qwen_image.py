"""Qwen-Image: text to image over a language model, a diffusion transformer and a VAE."""

from omni_contract.api.v1alpha1 import DiffusionEngine, EdgeSpec, OutputSpec, StageSpec
from omni_contract.presets.payloads import FLOATS, INTEGERS, ArrayEntry, PayloadSchema
from omni_contract.presets.preset import Preset

MASK_DTYPES = ("bool", *INTEGERS)
PROMPT = PayloadSchema(
    {
        "prompt_embeds": ArrayEntry(FLOATS, (1, "tokens", "width")),
        "prompt_embeds_mask": ArrayEntry(MASK_DTYPES, (1, "tokens")),
        "negative_prompt_embeds": ArrayEntry(FLOATS, (1, "negative tokens", "width"), is_optional=True),
        "negative_prompt_embeds_mask": ArrayEntry(MASK_DTYPES, (1, "negative tokens"), is_optional=True),
    }
)
LATENTS = PayloadSchema({"latents": ArrayEntry(FLOATS, (1, "channels", 1, "height", "width"))})

QWEN_IMAGE = Preset(
    family="qwen-image",
    modality="image",
    stages=(
        StageSpec(name="text-encoder", diffusion=DiffusionEngine(phases=("encode",))),
        StageSpec(name="denoiser", diffusion=DiffusionEngine(phases=("denoise",))),
        StageSpec(
            name="vae-decoder", diffusion=DiffusionEngine(phases=("decode",)), output=OutputSpec(modality="image")
        ),
    ),
    edges=(EdgeSpec(from_="text-encoder", to="denoiser"), EdgeSpec(from_="denoiser", to="vae-decoder")),
    sampling={"width": 1024, "height": 1024, "steps": 50, "guidance_scale": 4.0},
    parameters={
        "width": "integer",
        "height": "integer",
        "steps": "integer",
        "guidance_scale": "number",
        "seed": "integer",
        "max_sequence_length": "integer",
    },
    transforms=(),
    endpoints=("/v1/images/generations",),
    payloads={"encode": PROMPT, "denoise": LATENTS},
)
