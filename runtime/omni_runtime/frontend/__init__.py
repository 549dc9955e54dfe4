"""The model's OpenAI-compatible endpoint: HTTP here, the way through the stages in `omni_runtime.orchestrator`."""
