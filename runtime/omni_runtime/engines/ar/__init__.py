"""The `ar` engine: autoregressive models, token by token, on vLLM."""
