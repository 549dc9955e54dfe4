"""The keys of a stage in an old stage file. `becomes` counts from the stage: ar.eager is spec.stages[].ar.eager."""

from omni_contract.convert.file_keys import THRESHOLD
from omni_contract.convert.keys import ENGINE, Key, table

FUNCTION = (
    "dotted function paths are not accepted: what one stage makes of another's output is the business of the model's "
    "family"
)
CLASS = "dotted class paths are not accepted: a stage names an engine kind, which has its worker and its scheduler"
SET_KIND = f"remove it, and set engine_args.worker_type: {ENGINE}"
TOKENS = "a codec takes its input as it comes and has no budget of tokens"
CACHE = "a codec has no key-value cache"
VLLM = "it is an argument of vLLM, which runs no codec"

STAGE = table(
    Key("stage_id", "integer", "the order of the stages; edges name stages by their names"),
    Key("runtime", "map", "what its keys become"),
    Key("engine_args", "map", "what its keys become"),
    Key("engine_input_source", "ids", "spec.edges[].from and to"),
    Key("custom_process_input_func", "text", refused=FUNCTION),
    Key("is_comprehension", "bool", "nothing: the family knows which stage reads the prompt"),
    Key("requires_multimodal_data", "bool", "nothing: the family takes media to the stages that need them"),
    Key("final_output", "bool", "output"),
    Key("final_output_type", "text", "output.modality"),
    Key("default_sampling_params", "map", "sampling"),
    Key("output_connectors", "map", "spec.edges[].connector"),
    Key("input_connectors", "map", "spec.edges[].connector"),
    Key("tts_args", "map", "what its keys become"),
    Key(
        "stage_connector_config",
        "map",
        refused="the old launcher put it there itself",
        instead="declare the connector under runtime.connectors",
    ),
    THRESHOLD,
)

STAGE_RUNTIME = table(
    Key(
        "process",
        "bool",
        "nothing: each stage runs in processes of its own",
        only=(True,),
        refused="each stage runs in processes of its own",
    ),
    Key("devices", "devices", "accelerator.count, or accelerator.devices of stages that share some"),
    Key("max_batch_size", "integer", "maxBatchSize"),
    Key("max_inflight", "integer", "maxInFlight"),
)

ENGINE_ARGS = table(
    Key("model_stage", "text", "name, and ar.part if the name has to differ"),
    Key("model_arch", "text", "spec.family"),
    Key("worker_type", "text", "the engine block: ar or generation"),
    Key("worker_cls", "text", refused=CLASS, instead=SET_KIND),
    Key("scheduler_cls", "text", refused=CLASS, instead=SET_KIND),
    Key("custom_process_next_stage_input_func", "text", refused=FUNCTION),
    Key("engine_output_type", "text", "output.modality, if final_output_type is not set; latent: nothing"),
    Key("hf_config_name", "text", "nothing: the family knows the part's configuration"),
    Key("load_format", "text", "spec.model.loadFormat"),
    Key(
        "trust_remote_code",
        "bool",
        "nothing: code of a checkpoint does not run",
        only=(False,),
        refused="code of a checkpoint does not run here, and no family needs it",
    ),
    Key("gpu_memory_utilization", "number", "accelerator.memoryFraction and ar.memoryUtilization"),
    Key("dtype", "text", "ar.dtype or generation.dtype"),
    Key("quantization", "text", "ar.quantization", codec=VLLM),
    Key("enforce_eager", "bool", "ar.eager", codec="a codec runs eagerly in any case"),
    Key("enable_prefix_caching", "bool", "ar.prefixCaching", codec=CACHE),
    Key("enable_chunked_prefill", "bool", "ar.chunkedPrefill", codec=TOKENS),
    Key("max_model_len", "integer", "ar.maxModelLength", codec=TOKENS),
    Key("max_num_batched_tokens", "integer", "ar.maxBatchedTokens", codec=TOKENS),
    Key("max_num_seqs", "integer", "ar.maxSequences", codec="maxBatchSize bounds what a codec takes in one step"),
    Key("kv_cache_memory_bytes", "integer", "ar.kvCacheSize", codec=CACHE),
    Key("limit_mm_per_prompt", "map", "ar.mediaPerPrompt", codec=VLLM),
    Key("tensor_parallel_size", "integer", "ar.parallelism.tensor", codec="a codec runs on one device"),
    Key("pipeline_parallel_size", "integer", "ar.parallelism.pipeline", codec="a codec runs on one device"),
    Key("data_parallel_size", "integer", "ar.parallelism.data", codec="a codec runs on one device"),
    Key("enable_expert_parallel", "bool", "ar.parallelism.expert", codec="a codec runs on one device"),
    Key(
        "distributed_executor_backend",
        "text",
        "nothing: a process for each device",
        only=("mp", "uni"),
        refused="a stage runs in a process for each of its devices, without Ray",
    ),
    Key("enable_sleep_mode", "bool", "nothing: every stage sleeps when told to"),
    Key("disable_log_stats", "bool", "nothing: what a stage did is counted as metrics"),
    Key("skip_mm_profiling", "bool", "ar.extraArgs", codec=VLLM),
    Key("seed", "integer", "ar.extraArgs", codec=VLLM),
    Key("block_size", "integer", "ar.extraArgs", codec=VLLM),
    Key("hf_overrides", "map", "ar.extraArgs", codec=VLLM),
    Key("mm_processor_kwargs", "map", "ar.extraArgs", codec=VLLM),
    Key("mm_processor_cache_gb", "number", "ar.extraArgs", codec=VLLM),
    Key("kv_cache_dtype", "text", "ar.extraArgs", codec=VLLM),
    Key("cpu_offload_gb", "number", "ar.extraArgs", codec=VLLM),
    Key("compilation_config", "any", "ar.extraArgs", codec=VLLM),
    Key("async_scheduling", "bool", "ar.extraArgs", codec=VLLM),
    Key("generation_config", "text", "ar.extraArgs", codec=VLLM),
)

TTS_ARGS = table(
    Key(
        "max_instructions_length",
        "integer",
        refused="instructions of speech have no limit of their own; frontend.limits.maxPromptCharacters bounds them "
        "with the rest of the prompt",
    ),
)

SAMPLING_OF_CODEC = "a codec does not sample"
SAMPLING = table(
    Key("temperature", "number", "sampling.temperature"),
    Key("top_p", "number", "sampling.top_p"),
    Key("top_k", "integer", "sampling.top_k"),
    Key("min_p", "number", "sampling.min_p"),
    Key("max_tokens", "integer", "sampling.max_tokens"),
    Key("min_tokens", "integer", "sampling.min_tokens"),
    Key("seed", "integer", "sampling.seed"),
    Key("presence_penalty", "number", "sampling.presence_penalty"),
    Key("frequency_penalty", "number", "sampling.frequency_penalty"),
    Key("repetition_penalty", "number", "sampling.repetition_penalty"),
    Key("stop", "list", "sampling.stop"),
    Key("stop_token_ids", "list", "sampling.stop_token_ids"),
    Key("ignore_eos", "bool", "sampling.ignore_eos"),
    Key("detokenize", "bool", "nothing: a stage makes text of its tokens where its family says so"),
    Key("skip_special_tokens", "bool", "nothing: a stage makes text of its tokens where its family says so"),
)
