"""Engine blocks: which engine a stage runs and how. Exactly one block is set on a stage."""

from typing import Annotated, ClassVar, Literal, TypeAlias

from pydantic import Field, JsonValue, StringConstraints

from omni_contract.api.v1alpha1.base import ApiModel, ListMap, Quantity, StageName

DiffusionPhase = Literal["encode", "denoise", "decode"]
DIFFUSION_PHASES: tuple[DiffusionPhase, ...] = ("encode", "denoise", "decode")
HiddenLayer = Annotated[int, Field(ge=-1, le=1000)]
RELATIVE_PATH = r"^[A-Za-z0-9_][-._A-Za-z0-9]*(/[A-Za-z0-9_][-._A-Za-z0-9]*)*$"
"""No way out of the folder that it starts from."""


class ArLimits(ApiModel):
    """How many media items one prompt may have."""

    image: Annotated[int, Field(ge=0, le=1000)] = Field(16, description="Pictures per prompt at most.")
    audio: Annotated[int, Field(ge=0, le=1000)] = Field(16, description="Sound clips per prompt at most.")
    video: Annotated[int, Field(ge=0, le=1000)] = Field(4, description="Videos per prompt at most.")


class LoraSpec(ApiModel):
    """An adapter that requests may ask for by its name."""

    name: Annotated[str, StringConstraints(min_length=1, max_length=63, pattern=r"^[A-Za-z0-9]([-._A-Za-z0-9]*)$")] = (
        Field(description="What the parameter lora of a request says.")
    )
    path: Annotated[str, StringConstraints(min_length=1, max_length=255, pattern=RELATIVE_PATH)] = Field(
        description="The adapter's folder, inside the model's own."
    )


class ArParallelism(ApiModel):
    """How a replica spreads one model over its devices; their number is tensor times pipeline times data."""

    tensor: Annotated[int, Field(ge=1, le=64)] = Field(1, description="Devices that share each layer.")
    pipeline: Annotated[int, Field(ge=1, le=64)] = Field(1, description="Groups of layers, each on devices of its own.")
    data: Annotated[int, Field(ge=1, le=64)] = Field(1, description="Copies of the model that take turns.")
    expert: bool = Field(False, description="Whether the experts of a layer are spread over the tensor and data ranks.")


class ArEngine(ApiModel):
    """An autoregressive model's stage, token by token, on vLLM."""

    kind: ClassVar[Literal["ar"]] = "ar"

    backend: Literal["vllm", "transformers"] = Field(
        "vllm",
        description="What computes the tokens: vLLM, or the layers of transformers: exact, slow, ready within seconds, "
        "and with a token of one request in a step, but for talkers, which take up to maxSequences. It "
        "refuses loras, quantization, parallelism and extraArgs; fields about memory and prefixes mean nothing to it.",
    )

    part: StageName | None = Field(
        None,
        description="The part of the family's model that this stage runs, for example thinker; left out, the part that "
        "has the stage's name. Without a family, the stage runs the whole model.",
    )
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = Field(
        "auto", description="Number format of the weights in memory; auto takes the checkpoint's own."
    )
    quantization: Annotated[str, StringConstraints(min_length=1, max_length=32, pattern=r"^[a-z0-9_-]+$")] | None = (
        Field(None, description="Quantization method of vLLM; left out, what the checkpoint says.")
    )
    max_model_length: Annotated[int, Field(ge=8, le=16_777_216)] | None = Field(
        None, description="Most tokens of a prompt and its answer together; left out, what the model allows."
    )
    max_sequences: Annotated[int, Field(ge=1, le=4096)] = Field(
        64, description="Most sequences that one step decodes together; maxInFlight follows it if left out."
    )
    max_batched_tokens: Annotated[int, Field(ge=8, le=1_048_576)] | None = Field(
        None, description="Most tokens that one step computes, prompts included; left out, vLLM's own figure."
    )
    kv_cache_size: Quantity | None = Field(
        None,
        description="Memory for the key-value cache; left out, 1Gi on CPUs, and on a device what memoryUtilization "
        "leaves beside the weights.",
    )
    memory_utilization: Annotated[float, Field(ge=0.01, le=1)] = Field(
        0.9,
        description="Part of the device's memory that the stage may use, at most its accelerator.memoryFraction; a CPU "
        "stage is bounded by kvCacheSize.",
    )
    prefix_caching: bool = Field(
        True, description="Keep what was computed for a prompt, for later ones that begin in the same way."
    )
    chunked_prefill: bool = Field(
        True, description="Compute long prompts in parts, between the steps of other requests."
    )
    eager: bool | None = Field(
        None,
        description="Run without torch.compile and device graphs: a faster start and slower steps; left out, true on "
        "CPUs and false elsewhere.",
    )
    hidden_layers: Annotated[tuple[HiddenLayer, ...], Field(max_length=16)] = Field(
        (),
        description="Layers whose states leave with each token for the next stage: 0 for the input embeddings, k for "
        "what layer k makes, -1 for the last one after its norm. A family sets them itself.",
    )
    media_per_prompt: ArLimits = Field(ArLimits(), description="How many media items one prompt may have.")
    parallelism: ArParallelism = Field(ArParallelism(), description="How a replica spreads over its devices.")
    loras: Annotated[tuple[LoraSpec, ...], Field(max_length=64), ListMap(("name",))] = Field(
        (), description="Adapters that requests may ask for."
    )
    max_lora_rank: Annotated[int, Field(ge=1, le=512)] = Field(16, description="Highest rank of the adapters in loras.")
    extra_args: Annotated[dict[str, JsonValue], Field(max_length=64)] = Field(
        {},
        description="Further engine arguments of vLLM by their names in its EngineArgs, passed on as they are; a name "
        "that it does not know, or that a field here sets, is refused as the stage starts.",
    )


class DiffusionEngine(ApiModel):
    """A diffusion model's stage: a contiguous part of encode, denoise, decode."""

    kind: ClassVar[Literal["diffusion"]] = "diffusion"

    phases: Annotated[tuple[DiffusionPhase, ...], Field(min_length=1, max_length=3)] = Field(
        DIFFUSION_PHASES,
        description="The part of encode, denoise, decode that this stage runs, in that order and without a gap; all "
        "three make a fused stage.",
    )
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = Field(
        "auto", description="Number format of the weights in memory; auto takes the checkpoint's own."
    )


class GenerationEngine(ApiModel):
    """A codec's stage: codes to sound, several requests in a step, in chunks if its edge streams."""

    kind: ClassVar[Literal["generation"]] = "generation"

    dtype: Literal["auto", "float32", "bfloat16", "float16"] = Field(
        "auto", description="Number format of the weights in memory; auto takes the one that the family asks for."
    )


class FakeEngine(ApiModel):
    """A stage without a model, for protocol, load and fault tests; only where the administrator allows it."""

    kind: ClassVar[Literal["fake"]] = "fake"

    behavior: Literal["echo", "delay", "burst", "follow", "relay", "stall", "crash", "leak"] = Field(
        "echo",
        description="What the stage does with a request: hand it on (echo), hand it on later (delay), make an item in "
        "each step (burst), the same, but taking in an item before each step for as long as any come (follow), hand on "
        "items as they come (relay), never answer (stall), end its process (crash), or keep what it should free "
        "(leak).",
    )
    delay_seconds: Annotated[float, Field(ge=0, le=3600)] = Field(0.0, description="How long each step takes.")
    steps: Annotated[int, Field(ge=1, le=10_000)] = Field(
        1,
        description="Number of steps per request, unless its parameter steps asks for another one; a cancel takes "
        "effect between two of them.",
    )
    items_per_step: Annotated[int, Field(ge=1, le=100_000)] = Field(
        1, description="Most items of one chunk that a step of behavior relay hands on together."
    )
    serial: bool = Field(
        False, description="Whether the steps of concurrent requests take turns, as they do on one device."
    )
    crash_at: Annotated[int, Field(ge=0, le=1_000_000)] | None = Field(
        None, description="The request, counted from 0, at which a stage with behavior crash ends its process."
    )


# In a stage file a block is told by its fields. Those of a generation stage are among the others' too, so it is first.
EngineBlock: TypeAlias = GenerationEngine | ArEngine | DiffusionEngine | FakeEngine
EngineKind: TypeAlias = Literal["ar", "diffusion", "generation", "fake"]
ENGINE_FIELDS: tuple[EngineKind, ...] = ("ar", "diffusion", "generation", "fake")
"""The stage's fields of which exactly one is set."""
