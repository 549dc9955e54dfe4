"""The stage file in vLLM's words: engine arguments and environment. Pure; vLLM itself is not imported."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omni_contract.accelerators import Vendor
from omni_contract.api.quantity import quantity
from omni_contract.api.v1alpha1 import ArEngine as ArBlock
from omni_contract.wire.stage_file import StageFile
from omni_runtime.engines.protocol import UnusableEngineError
from omni_runtime.families.protocol import ArFamily, ArModel
from omni_runtime.families.registry import ar_family

CPU_KV_CACHE = "1Gi"
"""vLLM's own default would be most of the host's memory."""
SLEEPING_VENDORS = frozenset({Vendor.NVIDIA, Vendor.ROCM})
"""Where vLLM itself can give the device's memory back and take it again."""
LORA_RANKS = (8, 16, 32, 64, 128, 256, 320, 512)
COMPAT_WORKER = "omni_runtime.engines.ar.compat_worker"
MODELS_KEY = "omni_models"
"""In vLLM's additional configuration: classes of ours by the name of their architecture."""
LAYERS_KEY = "omni_layers"
"""There, too: layers inside the model whose states leave."""
UNCOMPILED_GRAPHS: Mapping[str, object] = {
    "mode": 0,
    "cudagraph_mode": "FULL_DECODE_ONLY",
    "cudagraph_capture_sizes": [1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512],
}
"""A step of one token each is one graph of the model's own operators. A compiler would not see what is taken between
the operators."""
WITH_PROMPTS: Mapping[str, object] = {"cudagraph_mode": "FULL"}
"""Parts of prompts, too. It takes an attention that is planned as it was captured (`compat_attention`): NVIDIA's."""
WHOLE_MODEL = ArModel()
"""Without a family: any model that vLLM knows."""

ENVIRONMENT: Mapping[str, str] = {
    "VLLM_NO_USAGE_STATS": "1",
    # Its lines go the way of ours; from which level on, the compat modules say.
    "VLLM_CONFIGURE_LOGGING": "0",
    # Forking a process with gRPC's and torch's threads in it would copy locks that nobody opens.
    "VLLM_WORKER_MULTIPROC_METHOD": "spawn",
}
CPU_ENVIRONMENT: Mapping[str, str] = {
    # Else each engine pins itself to the first core, which then they all share.
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
}
EAGER_ENVIRONMENT: Mapping[str, str] = {
    # Parts of the sampler compile themselves at their first use, during which no request moves for many seconds.
    "TORCHDYNAMO_DISABLE": "1",
}
LAST_LAYER = (-1,)
RUNNER_ENVIRONMENT: Mapping[str, str] = {
    # States of other layers than the last are taken, and rows put in, at a place that only this model runner has.
    "VLLM_USE_V2_MODEL_RUNNER": "0",
}


@dataclass(frozen=True)
class ArSettings:
    """What the engine is made of."""

    stage: str
    block: ArBlock
    folder: Path
    vendor: Vendor
    is_dummy: bool
    max_in_flight: int
    family: ArFamily | None = None
    part: str = ""
    """Of the family's model."""

    @property
    def model(self) -> ArModel:
        return WHOLE_MODEL if self.family is None else self.family.models[self.part]

    memory_fraction: float | None = None
    """Of the device; None: all of it."""

    @property
    def is_on_cpu(self) -> bool:
        return self.vendor is Vendor.CPU

    @property
    def environment(self) -> Mapping[str, str]:
        """For this process, before it imports vLLM, and for those that vLLM starts."""
        on_cpu = CPU_ENVIRONMENT if self.is_on_cpu else {}
        eager = EAGER_ENVIRONMENT if self._is_eager else {}
        return {**ENVIRONMENT, **on_cpu, **eager, **(RUNNER_ENVIRONMENT if self._needs_first_runner else {})}

    @property
    def _needs_first_runner(self) -> bool:
        """vLLM's V1. A family's stages are also told where media are, which only this one knows."""
        is_last_alone = self.hidden_layers == LAST_LAYER and self.family is None and not self.is_on_cpu
        return self.model.takes_rows or (bool(self.hidden_layers) and not is_last_alone)

    @property
    def hidden_layers(self) -> tuple[int, ...]:
        """Layers whose states leave with the tokens."""
        own = self.model.hidden_layers
        return self.block.hidden_layers or (own(self.folder) if callable(own) else own)

    @property
    def _inner_layers(self) -> list[int]:
        return [layer for layer in self.hidden_layers if layer > 0]

    @property
    def _is_eager(self) -> bool:
        return self.is_on_cpu if self.block.eager is None else self.block.eager

    @property
    def _is_uncompiled(self) -> bool:
        """Rows come a few at a time, each time as a short prompt."""
        return not self._is_eager and (bool(self._inner_layers) or self.model.takes_rows)

    @property
    def vllm_sleeps(self) -> bool:
        return self.vendor in SLEEPING_VENDORS

    @property
    def _world(self) -> int:
        return self.block.parallelism.tensor * self.block.parallelism.pipeline

    def engine_arguments(self) -> dict[str, object]:
        """By their names in vLLM's EngineArgs. Raises UnusableEngineError if fields do not go together."""
        self._check_hidden_layers()
        self._check_rows()
        arguments = (
            self._model_arguments() | self._part_arguments() | self._memory_arguments() | self._parallel_arguments()
        )
        if twice := sorted(arguments.keys() & self.block.extra_args.keys()):
            raise UnusableEngineError(f"extraArgs sets {', '.join(twice)}, which fields of ar set; remove them there")
        return {**arguments, **self.block.extra_args}

    def _check_hidden_layers(self) -> None:
        if self.hidden_layers and self.block.parallelism.pipeline > 1:
            raise UnusableEngineError("hidden states come from one process; set parallelism.pipeline to 1")

    def _check_rows(self) -> None:
        if self.model.implementation and self._world > 1 and not self.model.refines:
            raise UnusableEngineError(f'part "{self.part}" runs on one device; remove parallelism')
        if self.model.takes_rows and self.max_in_flight > self.block.max_sequences:
            # A request that waits for its next row keeps its place among those that run.
            text = f"maxInFlight is {self.max_in_flight} and maxSequences {self.block.max_sequences}"
            raise UnusableEngineError(f"{text}; requests that wait for input would keep others from running")

    def _model_arguments(self) -> dict[str, object]:
        block = self.block
        arguments: dict[str, object] = {
            "model": str(self.folder),
            "load_format": "dummy" if self.is_dummy else "auto",
            "dtype": block.dtype,
            "enforce_eager": self._is_eager,
            "enable_prefix_caching": block.prefix_caching,
            "enable_chunked_prefill": block.chunked_prefill,
            "max_num_seqs": block.max_sequences,
            "limit_mm_per_prompt": block.media_per_prompt.model_dump(),
            "enable_sleep_mode": self.vllm_sleeps,
            "enable_lora": bool(block.loras),
            "disable_log_stats": True,
            "use_tqdm_on_load": False,
            "worker_extension_cls": f"{COMPAT_WORKER}.WorkerExtension",
        }
        optional = {
            "max_model_len": block.max_model_length,
            "max_num_batched_tokens": block.max_batched_tokens,
            "quantization": block.quantization,
            "max_loras": self._lora_slots or None,
            "max_lora_rank": _room_for_rank(block.max_lora_rank) if block.loras else None,
        }
        return arguments | {name: value for name, value in optional.items() if value is not None}

    @property
    def _lora_slots(self) -> int:
        """On CPUs vLLM takes the last slot for requests without an adapter, beside others with one: it stays empty."""
        adapters = len(self.block.loras)
        return adapters + 1 if adapters and self.is_on_cpu else adapters

    def _part_arguments(self) -> dict[str, object]:
        """What the family says of the part; what it leaves out is as for any model."""
        model = self.model
        arguments: dict[str, object] = {}
        additional: dict[str, object] = {}
        if model.config is not None:
            arguments["hf_overrides"] = model.config
        if model.architecture is not None and model.implementation is not None and self._world == 1:
            additional[MODELS_KEY] = {model.architecture: model.implementation}
        if self.hidden_layers:
            additional[LAYERS_KEY] = self._inner_layers
        if additional:
            arguments["additional_config"] = additional
        if self._is_uncompiled:
            with_prompts = WITH_PROMPTS if self.vendor is Vendor.NVIDIA else {}
            arguments["compilation_config"] = {**UNCOMPILED_GRAPHS, **with_prompts}
        if model.takes_rows:
            # Its tokens say nothing of its input, and the checkpoint's tokenizer and defaults are for others.
            arguments |= {"enable_prompt_embeds": True, "enable_prefix_caching": False}
            arguments |= {"skip_tokenizer_init": True, "generation_config": "vllm"}
        return arguments

    def _memory_arguments(self) -> dict[str, object]:
        size = self.block.kv_cache_size or (CPU_KV_CACHE if self.is_on_cpu else None)
        sized: dict[str, object] = {} if size is None else {"kv_cache_memory_bytes": int(quantity(size))}
        part = min(self.block.memory_utilization, self.memory_fraction or 1.0)
        return {"gpu_memory_utilization": part, **sized}

    def _parallel_arguments(self) -> dict[str, object]:
        parallelism = self.block.parallelism
        arguments: dict[str, object] = {
            "tensor_parallel_size": parallelism.tensor,
            "pipeline_parallel_size": parallelism.pipeline,
            "data_parallel_size": parallelism.data,
            "enable_expert_parallel": parallelism.expert,
        }
        executor = "OneProcess" if self._world == 1 else "ProcessPerDevice"
        return arguments | {"distributed_executor_backend": f"{COMPAT_WORKER}.{executor}"}


def _room_for_rank(rank: int) -> int:
    """vLLM makes room in a few sizes only."""
    return next(size for size in LORA_RANKS if size >= rank)


def settings_of(file: StageFile) -> ArSettings:
    """Raises UnusableEngineError if the family has no such part."""
    if not isinstance(file.engine, ArBlock):
        raise TypeError(f'stage "{file.stage}" has a {type(file.engine).__name__} block, not an ar one')
    return ArSettings(
        stage=file.stage,
        block=file.engine,
        folder=Path(file.model_path),
        vendor=file.vendor,
        is_dummy=file.load_format == "dummy",
        memory_fraction=file.memory_fraction,
        max_in_flight=file.max_in_flight,
        **_part_of(file.family, file.engine.part or file.stage),
    )


def _part_of(name: str | None, part: str) -> dict[str, Any]:
    if name is None:
        return {}
    family = ar_family(name)
    if part not in family.models:
        known = ", ".join(f'"{known}"' for known in family.models)
        text = f'family "{name}" has no part "{part}" for an ar engine; set ar.part to one of: {known}'
        raise UnusableEngineError(text)
    return {"family": family, "part": part}
